"""Limits on clients that connect and do not ask: how long a request may take to arrive, how many connections are open.

It knows nothing of routes, or of what a request asks.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 20.0
"""How long a client has to send a whole request, its body included."""

CONNECTIONS = 512
"""How many connections are open at a time; those beyond are closed at once."""

_RECEIVED = frozenset({h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR})

_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class PatientProtocol(H11Protocol):
    """Answers 408 and closes a connection whose request is not there in time, and closes connections beyond a number.

    The time starts when the connection is made, or with the first byte of a later request on it.
    """

    def __init__(self, *args: Any, request_s: float, connections: int, **kwargs: Any) -> None:  # noqa: ANN401 (uvicorn's)
        super().__init__(*args, **kwargs)
        self._request_s, self._most = request_s, connections
        self.waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to wait for a request, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > self._most:
            transport.abort()
            return
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what arrived, and stop waiting once a request is whole."""
        super().data_received(data)
        if self.conn.their_state in _RECEIVED:
            self._stop_waiting()
        elif self.waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self.waiting = self.loop.call_later(self._request_s, self._end)

    def _stop_waiting(self) -> None:
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def _end(self) -> None:
        self.waiting = None
        if not self.transport.is_closing():
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                self.transport.write(_LATE)
            self.transport.close()
