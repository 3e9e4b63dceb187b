"""The process that serves: a socket that is ours before anything is loaded, a log of JSON lines, a graceful end.

It knows nothing of what is served.
"""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from runner.config.objects import ConfigError
from runner.serving.edge import JsonLines
from runner.serving.patience import CONNECTIONS, REQUEST_S, PatientProtocol

ENDING_S = 5
"""How long requests under way have to be answered once the server is to stop."""


def bound(host: str, port: int) -> socket.socket:
    """Return a socket at an address; raises `ConfigError` where it cannot be had. Port 0 is one that is free."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise ConfigError(f"host={host}: is no address of this machine ({error.strerror})") from error
    ours = socket.socket(family, kind, protocol)
    try:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # an earlier server's last connections may linger
        ours.bind(address)
    except OSError as error:
        ours.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port={port}: is in use on {host}; stop what listens there, or take another: port={port + 1}"
            ) from error
        raise ConfigError(f"host={host} port={port}: cannot be had ({error.strerror})") from error
    return ours


def address_of(ours: socket.socket) -> str:
    """Return where a bound socket is reached."""
    host, port = ours.getsockname()[:2]
    return f"http://[{host}]:{port}" if ours.family == socket.AF_INET6 else f"http://{host}:{port}"


def serve(
    app: ASGIApp,
    ours: socket.socket,
    ready: Callable[[], None],
    request_s: float = REQUEST_S,
    connections: int = CONNECTIONS,
) -> None:
    """Serve an application until Ctrl-C or SIGTERM; `ready` is called when it answers.

    A client has `request_s` to send a request, and so many `connections` are open at a time.
    """
    _log_json_lines()
    protocol: Any = partial(PatientProtocol, request_s=request_s, connections=connections)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, lifespan="off", timeout_graceful_shutdown=ENDING_S,
        http=protocol,
    )  # fmt: skip
    with suppress(KeyboardInterrupt):  # which is how a server ends
        _Server(config, ready).run(sockets=[ours])


class _Server(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def _log_json_lines() -> None:
    """Write what the application and the server log to standard error, a line of JSON each."""
    lines = logging.StreamHandler()
    lines.setFormatter(JsonLines())
    for name, level in (("runner.serving", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [lines], False
        logger.setLevel(level)
