"""A service with a virtual clock: servers that take requests in order, with known service times."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from runner.features.load.generator import Reply


class VirtualService:
    """`times` are the seconds that each request takes, by its number; `answer` makes its reply."""

    def __init__(
        self,
        times: Sequence[float],
        servers: int = 1,
        connections: int = 1_000_000,
        answer: Callable[[int, int], Reply] = lambda number, query: [f"d{query}"],
        interrupt_at: float = float("inf"),
    ) -> None:
        self._times, self._answer, self._connections, self._interrupt_at = times, answer, connections, interrupt_at
        self._free = [0.0] * servers
        self._ends: list[tuple[float, int, int]] = []
        self._open: set[int] = set()
        self.time, self.received = 0.0, 0

    def now(self) -> float:
        return self.time

    def send(self, number: int, query: int) -> bool:
        if len(self._open) == self._connections:
            return False
        self._open.add(number)
        start = max(heapq.heappop(self._free), self.time)
        end = start + self._times[self.received]
        heapq.heappush(self._free, end)
        heapq.heappush(self._ends, (end, number, query))
        self.received += 1
        return True

    def receive(self, until: float) -> list[tuple[int, Reply]]:
        if min(until, self._ends[0][0] if self._ends else until) >= self._interrupt_at:
            self.time = self._interrupt_at
            raise KeyboardInterrupt
        if not self._ends or self._ends[0][0] > until:
            self.time = until
            return []
        self.time, number, query = heapq.heappop(self._ends)
        self._open.discard(number)
        return [(number, self._answer(number, query))]

    def abandon(self, number: int) -> None:
        self._open.discard(number)


def simulate_queue(due: NDArray[np.float64], times: Sequence[float]) -> NDArray[np.float64]:
    """Return the latency of each request to a single server, by Lindley's recursion."""
    latencies, wait, before = [], 0.0, 0.0
    for at, taken in zip(due.tolist(), times, strict=False):
        wait = max(wait - (at - before), 0.0)
        latencies.append(wait := wait + taken)
        before = at
    return np.array(latencies)
