"""A server with one queue and known service times: `python -m benchmarks.stand_in.queue KIND COUNT`.

It prints its address. Requests are answered in the order in which they arrive, one after the other; the i-th takes
`draw_times(KIND, COUNT)[i]` seconds, whatever this process does meanwhile.
"""

from __future__ import annotations

import asyncio
import select
import selectors
import sys
import time

import numpy as np
from numpy.typing import NDArray

MEAN_S = 0.03
"""The mean service time: the server answers 33 requests per second at most."""

STALL_S = 2.0

REPLY = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 34\r\n\r\n{"hits":[{"id":"d0","score":1.0}]}'
)


def draw_times(kind: str, count: int) -> NDArray[np.float64]:
    """Return the service times: exponential, bimodal, constant with one stall, or none at all."""
    rng = np.random.default_rng(7)
    if kind == "exponential":
        return rng.exponential(MEAN_S, count)
    if kind == "bimodal":
        return np.where(rng.random(count) < 0.9, MEAN_S / 2, 5.5 * MEAN_S)
    times = np.full(count, MEAN_S if kind == "stall" else 0.0)
    times[count // 2] += STALL_S if kind == "stall" else 0.0
    return times


WAKE_S = 0.001
"""How long before a time the process is awake: a sleeping processor wakes some tenths of a millisecond late."""


class _Selector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]  # its class depends on the system
    """Waits to the microsecond, where epoll counts milliseconds."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            select.select([self.fileno()], [], [])
        elif timeout > 0:
            end = time.monotonic() + timeout
            ready = select.select([self.fileno()], [], [], max(timeout - WAKE_S, 0))[0]
            while not ready and time.monotonic() < end:
                ready = select.select([self.fileno()], [], [], 0)[0]
        return super().select(0)


def main(kind: str, count: int) -> None:
    """Serve until the process is ended."""
    times, free, number = draw_times(kind, count).tolist(), 0.0, 0
    loop = asyncio.SelectorEventLoop(_Selector())

    class Queue(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            nonlocal free, number
            taken, number = times[number % count], number + 1
            free = max(free, loop.time()) + taken
            if taken:
                loop.call_at(free, self.reply)
            else:
                self.reply()

        def reply(self) -> None:
            self.transport.write(REPLY)  # type: ignore[attr-defined]  # of TCP

    server = loop.run_until_complete(loop.create_server(Queue, "127.0.0.1", 0))
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    loop.run_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
