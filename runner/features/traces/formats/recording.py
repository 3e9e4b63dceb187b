"""Collect what a reader reports about a trace: calls, results, usage, times, and what it could not read.

Each call is observed as soon as its result arrives, and both are then dropped, so a trace may be larger than memory.
Readers need not check types: a wrong type is counted as a loss and never raises.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Generic, NamedTuple

import orjson

from runner.features.traces.trace import Observer, Seen, Step, ToolCall, Trace, TraceSource

_MOST_PENDING = 1000
"""How many calls may wait for their results; an agent that works in parallel has a few dozen."""
DEEPEST = 100
"""The deepest nesting that is read. Deeper nesting means damage and could exhaust the stack of code that walks it."""
_NAME = re.compile(r"[\w.:/@ -]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH).total_seconds()


class _PendingCall(NamedTuple):
    """A call that still waits for its result."""

    position: int
    id: str
    call: ToolCall
    subagent: bool
    elapsed_s: float | None
    tokens: int | None
    time: float | None


class Recording(Generic[Seen]):
    """A trace under construction. Call `set_time` and `count_tokens` before the calls of a step, which record both.

    `model`, `harness`, `total_tokens`, `seconds` and `cost` describe the whole trace; a reader sets those that the
    trace records. By default, total tokens and seconds come from the running total and the clock.
    """

    def __init__(self, observe: Observer[Seen]) -> None:
        self.model: str | None = None
        self.harness: str | None = None
        self.total_tokens: int | None = None
        self.seconds: float | None = None
        self.cost: float | None = None
        self.tokens: int | None = None
        self._observe = observe
        self._steps: list[Step[Seen] | None] = []  # None until the call's result arrives
        self._pending: dict[str, _PendingCall] = {}
        self._known: dict[str, int | None] = {}  # a hash of each id's call; None for a call that was skipped
        self._losses: Counter[str] = Counter()
        self._cwds: dict[str, None] = {}
        self._usage: dict[str, int] = {}
        self._now: float | None = None
        self._first: float | None = None
        self._last: float | None = None

    def count_loss(self, what: str, times: int = 1) -> None:
        """Count something that could not be read, described by a plural noun: "lines that are not JSON objects"."""
        if times:
            self._losses[what] += times

    def add_cwd(self, folder: object) -> None:
        """Record a working directory of the agent."""
        if isinstance(folder, str) and folder:
            self._cwds[folder] = None

    def set_time(self, time: object) -> None:
        """Set the time of the next calls: ISO 8601 (UTC if without a zone), seconds since 1970, or None if unknown."""
        self._now = self._parse_time(time)
        if self._now is not None:
            self._first = self._now if self._first is None else self._first
            self._last = self._now if self._last is None else max(self._last, self._now)

    def count_tokens(self, message: object, tokens: int | None) -> None:
        """Count the tokens of a message once: its parts, which repeat or correct its usage, share its id."""
        if tokens is None:
            return
        key = message if isinstance(message, str) and message else f"#{len(self._usage)}"
        before = self._usage.get(key, 0)
        self._usage[key] = max(before, tokens)
        self.tokens = (self.tokens or 0) + self._usage[key] - before

    def has_call(self, identifier: object) -> bool:
        """Return whether a call with this id was added."""
        return isinstance(identifier, str) and identifier in self._known

    def add_call(self, identifier: object, name: object, arguments: object, *, subagent: bool = False) -> str:
        """Add a call, and return the key under which its result is added: its id, if it has one."""
        index = len(self._steps)
        known = identifier if isinstance(identifier, str) else ""
        key = known or f"#{index}"
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.count_loss("calls with a malformed name")
            self._known[key] = None
            return key
        call = ToolCall(name, self._parse_arguments(arguments), None)
        content = hash((name, repr(call.arguments)))
        if known and self._known.get(key) == content:
            self.count_loss("repeated calls")
            return key
        self._settle(key)  # another call has taken the id of one without a result
        self._known[key] = content
        self._steps.append(None)
        self._pending[key] = _PendingCall(index, known, call, subagent, self._compute_elapsed(), self.tokens, self._now)
        if len(self._pending) > _MOST_PENDING:
            self._settle(next(iter(self._pending)))
        return key

    def add_result(self, key: object, text: str) -> None:
        """Add the result of a call."""
        if isinstance(key, str) and key in self._pending:
            self._settle(key, text)
        elif not self.has_call(key):
            self.count_loss("results without a call")
        elif self._known[str(key)] is not None:
            self.count_loss("repeated or late results")

    def build_trace(self, source: TraceSource) -> Trace[Seen]:
        """Return the trace. Calls that still have no result are observed without one."""
        for key in list(self._pending):
            self._settle(key)
        seconds = None if self._first is None or self._last is None else self._last - self._first
        return Trace(
            source=source,
            steps=[step for step in self._steps if step is not None],
            cwds=list(self._cwds),
            losses=dict(self._losses),
            model=self.model,
            harness=self.harness,
            total_tokens=self.tokens if self.total_tokens is None else self.total_tokens,
            seconds=seconds if self.seconds is None else self.seconds,
            cost=self.cost,
        )

    def _settle(self, key: str, result: str | None = None) -> None:
        waiting = self._pending.pop(key, None)
        if waiting is None:
            return
        if result is None:
            self.count_loss("calls without a result")
        seen = self._observe(ToolCall(waiting.call.name, waiting.call.arguments, result))
        self._steps[waiting.position] = Step(
            waiting.position, waiting.id, seen, waiting.subagent, waiting.elapsed_s, waiting.tokens, waiting.time
        )

    def _compute_elapsed(self) -> float | None:
        if self._now is None or self._first is None:
            return None
        if self._now < self._first:
            self.count_loss("times before the agent's first step")
            return None
        return self._now - self._first

    def _parse_time(self, time: object) -> float | None:
        if time is None:
            return None
        try:
            seconds = time if isinstance(time, int | float) else _since_epoch(datetime.fromisoformat(str(time)))
        except ValueError:
            seconds = math.nan
        if 0 <= seconds <= _LATEST:
            return float(seconds)
        self.count_loss("unreadable times")
        return None

    def _parse_arguments(self, arguments: object) -> Mapping[str, object]:
        if isinstance(arguments, str):  # some agents encode JSON within JSON
            try:
                arguments = orjson.loads(arguments)
            except orjson.JSONDecodeError:
                arguments = arguments or None
        if arguments is None:
            return {}
        if not isinstance(arguments, dict):
            self.count_loss("arguments that are not an object")
            return {}
        if is_nested_deeper(arguments, DEEPEST):
            self.count_loss(f"arguments nested deeper than {DEEPEST}")
            return {}
        return arguments


def _since_epoch(time: datetime) -> float:
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH).total_seconds()


def is_nested_deeper(value: object, levels: int) -> bool:
    """Return whether a JSON value is nested deeper than a number of levels."""
    level = [value]
    for _ in range(levels):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True
