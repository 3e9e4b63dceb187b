"""Runs the server: its socket is bound before anything is loaded, its log is lines of JSON, and it stops gracefully."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from runner.config.objects import ConfigError
from runner.web.middleware import JsonLines
from runner.web.timeouts import CONNECTIONS, REQUEST_S, TimeoutProtocol

STYLE = Path(__file__).with_name("style.css")
"""The style of pages that are served and are not reports."""

GRACE_S = 5
"""Seconds to finish running requests when the server stops."""


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address, with port 0 for any free port; raises `ConfigError` if that fails."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise ConfigError(
            f"host={host}: cannot be resolved ({error.strerror}); set an address of this machine, such as 127.0.0.1"
        ) from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of an earlier server may linger
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port={port}: already in use on {host}; stop that server, or set another port: port={port + 1}"
            ) from error
        raise ConfigError(
            f"host={host} port={port}: the server cannot listen on this address ({error.strerror})"
        ) from error
    return listener


def format_address(listener: socket.socket) -> str:
    """Return the URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"


def serve(
    app: ASGIApp,
    listener: socket.socket,
    ready: Callable[[], None],
    request_s: float = REQUEST_S,
    connections: int = CONNECTIONS,
) -> None:
    """Serve an application until Ctrl-C or SIGTERM; call `ready` when it accepts requests.

    A request must arrive within `request_s` seconds. At most `connections` connections are open at a time.
    """
    _log_json_lines()
    protocol: Any = partial(TimeoutProtocol, request_s=request_s, connections=connections)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, lifespan="off", timeout_graceful_shutdown=GRACE_S,
        http=protocol,
    )  # fmt: skip
    with suppress(KeyboardInterrupt):  # the normal way to stop
        _Server(config, ready).run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that calls `ready` when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def _log_json_lines() -> None:
    """Make the application and the server log to standard error, as lines of JSON."""
    lines = logging.StreamHandler()
    lines.setFormatter(JsonLines())
    for name, level in (("runner.features.serve", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [lines], False
        logger.setLevel(level)
