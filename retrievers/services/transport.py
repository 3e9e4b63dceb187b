"""HTTP transport with a total time limit: a server cannot outlast it by sending one byte now and then.

httpx limits each read and write. Here each of them may only take the time that is left for the whole request. The
module builds on the public network backends of httpcore; proxies come from the environment, as in httpx.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from retrievers.base import RetrieverError

MAX_CONNECTIONS, MAX_IDLE, IDLE_S = 100, 20, 5.0
"""The most open connections, the most idle ones, and their idle time in seconds: the defaults of httpx."""

_LOCAL = threading.local()


@contextmanager
def limit_total_time(seconds: float) -> Iterator[None]:
    """Limit the requests of this thread to a total time; after that they raise `httpx.TimeoutException`."""
    _LOCAL.seconds, _LOCAL.deadline = seconds, time.monotonic() + seconds
    try:
        yield
    finally:
        del _LOCAL.seconds, _LOCAL.deadline


class LimitedTransport(httpx.BaseTransport):
    """A transport to one address that respects `limit_total_time`. Threads may share it."""

    def __init__(self, url: httpx.URL, ssl_context: ssl.SSLContext) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context,
            proxy=_resolve_proxy(url),
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_IDLE,
            keepalive_expiry=IDLE_S,
            network_backend=_Backend(),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its response, whose body is still to be read."""
        assert isinstance(request.stream, httpx.SyncByteStream)  # noqa: S101 (the client is not an asynchronous one)
        target = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        with _translate_errors():
            response = self._pool.handle_request(
                httpcore.Request(
                    request.method,
                    target,
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response), extensions=response.extensions
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    """The body of a response, which raises the errors of httpx."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        with _translate_errors():
            yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise the error of httpx with the same name in place of an error of httpcore."""
    try:
        yield
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError) as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error


def _resolve_proxy(url: httpx.URL) -> httpcore.Proxy | None:
    """Return the proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY name for an address, if any."""
    addresses = getproxies()
    address = addresses.get(url.scheme) or addresses.get("all")
    if not address or proxy_bypass(url.netloc.decode("ascii")):
        return None
    proxy = httpx.Proxy(address if "://" in address else f"http://{address}")
    if proxy.url.scheme.startswith("socks") and find_spec("socksio") is None:
        raise RetrieverError(
            "the environment sets a SOCKS proxy, which needs socksio; run `pip install socksio`, or unset the proxy"
        )
    place = httpcore.URL(scheme=proxy.url.raw_scheme, host=proxy.url.raw_host, port=proxy.url.port, target=b"/")
    return httpcore.Proxy(place, auth=proxy.raw_auth)


def _limit(timeout: float | None, error: type[httpcore.TimeoutException]) -> float | None:
    """Return the seconds that an operation may take; raises `error` if none are left."""
    deadline: float | None = getattr(_LOCAL, "deadline", None)
    if deadline is None:
        return timeout
    rest = deadline - time.monotonic()
    if rest <= 0:
        raise error(f"timed out after {_LOCAL.seconds:g} s in total")
    return rest if timeout is None else min(timeout, rest)


class _Stream(httpcore.NetworkStream):
    """A connection whose operations end at the deadline."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _limit(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _limit(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _limit(timeout, httpcore.ConnectTimeout)))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 (httpcore's own signature)
        return self._stream.get_extra_info(info)


class _Backend(httpcore.SyncBackend):
    """Opens connections whose operations end at the deadline."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        limit = _limit(timeout, httpcore.ConnectTimeout)
        return _Stream(super().connect_tcp(host, port, limit, local_address, socket_options))
