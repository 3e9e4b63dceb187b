"""Limits on idle clients: the time to receive a request, and the number of open connections."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 20.0
"""Seconds in which a complete request must arrive."""

CONNECTIONS = 512
"""The largest number of open connections; further ones are closed at once."""

_RECEIVED = frozenset({h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR})

_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class TimeoutProtocol(H11Protocol):
    """Replies 408 and closes connections whose requests do not arrive in time; closes surplus connections.

    The time starts with the connection, or with the first byte of a later request on it.
    """

    def __init__(self, *args: Any, request_s: float, connections: int, **kwargs: Any) -> None:  # noqa: ANN401 (uvicorn's)
        super().__init__(*args, **kwargs)
        self._request_s, self._max_connections = request_s, connections
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Start the timer, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > self._max_connections:
            transport.abort()
            return
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Process received data, and stop the timer when a request is complete."""
        super().data_received(data)
        if self.conn.their_state in _RECEIVED:
            self._stop_timer()
        elif self.timer is None:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self.timer = self.loop.call_later(self._request_s, self._time_out)

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _time_out(self) -> None:
        self.timer = None
        if not self.transport.is_closing():
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                self.transport.write(_LATE)
            self.transport.close()
