"""The open-loop generator: sends each request when it is due, whether or not earlier ones are answered.

Latency counts from the time when a request is due, so that a service that stalls is charged for all requests that
wait meanwhile (no coordinated omission). The clock and the network are those of a `Service`.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from runner.features.load.schedule import Schedule

OPEN, ANSWERED, FAILED, TIMED_OUT = range(4)
"""The states of a request; one that is still open when a test stops is not counted."""

FEWEST = 20
"""The number of finished requests from which the share of failures can stop a test."""


@dataclass(frozen=True)
class Failure:
    """Why a request has no usable reply."""

    reason: str


Reply = object
"""A reply as the service returns it, read only after the test; or a `Failure`."""


class Service(Protocol):
    """Sends requests without waiting for their replies. Times are seconds of its own clock."""

    def now(self) -> float:
        """Return the time."""
        ...

    def send(self, number: int, query: int) -> bool:
        """Start a request for a query, given by position; return False if no connection is free."""
        ...

    def receive(self, until: float) -> Sequence[tuple[int, Reply]]:
        """Wait for replies until a time at most; return those that are there, by the number of their request."""
        ...

    def abandon(self, number: int) -> None:
        """Give up a request whose reply is no longer wanted."""
        ...


@dataclass(eq=False)
class LoadTraffic:
    """What became of the requests of a schedule; times are seconds from its start, NaN if there is none.

    `reached` is when the generator turned to a request, `sent` when a connection was free, `finished` when its reply
    was complete, it failed, or it timed out. `stopped` says why the test ended early. `cpu_s` is the processor time of
    the generator.
    """

    schedule: Schedule
    states: NDArray[np.int8] = field(init=False)
    reached: NDArray[np.float64] = field(init=False)
    sent: NDArray[np.float64] = field(init=False)
    finished: NDArray[np.float64] = field(init=False)
    replies: dict[int, Reply] = field(default_factory=dict)
    stopped: str = ""
    seconds: float = 0.0
    cpu_s: float = 0.0

    def __post_init__(self) -> None:
        n = len(self.schedule)
        self.states = np.full(n, OPEN, dtype=np.int8)
        self.reached, self.sent, self.finished = (np.full(n, np.nan) for _ in range(3))

    @property
    def latencies(self) -> NDArray[np.float64]:
        """Return the seconds from when each request was due to its end."""
        return np.asarray(self.finished - self.schedule.due)


class OpenLoop:
    """Sends the requests of a schedule until all have ended, or a limit stops it.

    A request times out `timeout_s` after it was due. The test stops when more than `max_failed` of the finished
    requests failed or timed out, at the time `end` of the service's clock, and at Ctrl-C.
    """

    def __init__(self, schedule: Schedule, service: Service, timeout_s: float, max_failed: float, end: float) -> None:
        self._service, self._timeout_s, self._max_failed, self._end = service, timeout_s, max_failed, end
        self._traffic = LoadTraffic(schedule)
        self._waiting: deque[int] = deque()  # for a free connection
        self._open: dict[int, None] = {}  # in the order in which they were sent
        self._next, self._finished, self._failures = 0, 0, 0
        self._start = service.now()
        self._due = (self._start + schedule.due).tolist()  # by the clock of the service
        self._queries = schedule.queries.tolist()

    def run(self) -> LoadTraffic:
        """Send the requests and return what became of them."""
        traffic, cpu = self._traffic, time.process_time()
        try:
            while self._next < len(self._due) or self._open or self._waiting:
                self._advance()
                if traffic.stopped:
                    break
        except KeyboardInterrupt:
            traffic.stopped = "interrupted"
        for number in self._open:
            self._service.abandon(number)
        traffic.seconds, traffic.cpu_s = self._service.now() - self._start, time.process_time() - cpu
        for times in (traffic.reached, traffic.sent, traffic.finished):
            times -= self._start
        return traffic

    def _advance(self) -> None:
        """Send what is due, give up what is late, and wait for the next reply or for the next of these."""
        service, due, now = self._service, self._due, self._service.now()
        while self._next < len(due) and due[self._next] <= now:
            self._traffic.reached[self._next] = now
            self._waiting.append(self._next)
            self._next += 1
        self._give_up(now)
        while self._waiting and service.send(self._waiting[0], self._queries[self._waiting[0]]):
            number = self._waiting.popleft()
            self._traffic.sent[number] = now
            self._open[number] = None
        oldest = next(iter(self._open), self._waiting[0] if self._waiting else None)
        replies = service.receive(
            min(
                self._end,
                due[self._next] if self._next < len(due) else math.inf,
                due[oldest] + self._timeout_s if oldest is not None else math.inf,
            )
        )
        now = service.now()
        for number, reply in replies:
            if number in self._open:  # otherwise it was given up
                del self._open[number]
                self._traffic.replies[number] = reply
                self._finish(number, FAILED if isinstance(reply, Failure) else ANSWERED, now)
        if now >= self._end:
            self._traffic.stopped = "load.max_seconds"

    def _give_up(self, now: float) -> None:
        """End the requests that have timed out, whether or not they were sent."""
        due, wait = self._due, self._timeout_s
        while (number := next(iter(self._open), None)) is not None and due[number] + wait <= now:
            del self._open[number]
            self._service.abandon(number)
            self._finish(number, TIMED_OUT, due[number] + wait)
        while self._waiting and due[self._waiting[0]] + wait <= now:
            number = self._waiting.popleft()
            self._finish(number, TIMED_OUT, due[number] + wait)

    def _finish(self, number: int, state: int, now: float) -> None:
        self._traffic.states[number], self._traffic.finished[number] = state, now
        self._finished += 1
        self._failures += state != ANSWERED
        if self._finished >= FEWEST and self._failures > self._max_failed * self._finished:
            self._traffic.stopped = "load.max_failed"
