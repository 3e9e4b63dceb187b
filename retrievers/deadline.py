"""Total time limits for HTTP requests: a time-out that a server cannot outlast by sending one byte now and then.

httpx limits each read, so that a reply that drips in may take for ever. Here the time left until a deadline limits
every read and write of the thread that set it. Knows nothing of what is sent.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

_LOCAL = threading.local()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit the network operations of this thread to a total time; beyond it they raise httpx's time-outs."""
    _LOCAL.seconds, _LOCAL.until = seconds, time.monotonic() + seconds
    try:
        yield
    finally:
        del _LOCAL.seconds, _LOCAL.until


def limit_total_time(client: httpx.Client) -> None:
    """Make a client respect `within`.

    httpx has no public way to set the network backend and keep its proxies: `_transport`, `_mounts` and `_pool` are
    private, of httpx 0.28 and httpcore 1.0. A test holds that the limit works.
    """
    for transport in (client._transport, *client._mounts.values()):
        if isinstance(transport, httpx.HTTPTransport):
            transport._pool._network_backend = _Backend(transport._pool._network_backend)


def _left(timeout: float | None, late: type[httpcore.TimeoutException]) -> float | None:
    """Return the seconds that an operation may take."""
    until: float | None = getattr(_LOCAL, "until", None)
    if until is None:
        return timeout
    left = until - time.monotonic()
    if left <= 0:
        raise late(f"timed out after {_LOCAL.seconds:g} s in all")
    return left if timeout is None else min(timeout, left)


class _Stream(httpcore.NetworkStream):
    """A connection whose operations end at the deadline."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _left(timeout, httpcore.ConnectTimeout)))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 (httpcore's own signature)
        return self._stream.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    """Opens connections whose operations end at the deadline."""

    def __init__(self, backend: httpcore.NetworkBackend) -> None:
        self._backend = backend

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        limit = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._backend.connect_tcp(host, port, limit, local_address, socket_options))
