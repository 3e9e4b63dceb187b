"""The common form of a trace in any format: the tool calls of an agent, in the order in which it made them.

A trace may be far larger than memory, and tool results are most of it. A reader therefore passes each call to an
observer as soon as its result has arrived, and keeps only what the observer returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

Seen = TypeVar("Seen")
"""What an observer returns, and all that is kept of a call."""

TraceSource = Literal["trajectory", "transcript", "merged"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the trace records it. `result` is the text that it returned, None if the trace has none."""

    name: str
    arguments: Mapping[str, object]
    result: str | None


Observer = Callable[[ToolCall], Seen]


@dataclass(frozen=True, slots=True)
class Step(Generic[Seen]):
    """One tool call's place in a trace, and the observer's result for it.

    `index` counts the calls of the trace from 0. `tokens` is the running total of prompt and completion tokens up to
    this call, with cached tokens counted once. By the clock of the trace, `elapsed_s` is the time since the first step
    of the agent and `time` the time since 1970, both in seconds. Each is None if the trace does not record it. `id` is
    "" if the call has none.
    """

    index: int
    id: str
    seen: Seen
    subagent: bool = False
    elapsed_s: float | None = None
    tokens: int | None = None
    time: float | None = None


@dataclass(frozen=True)
class Trace(Generic[Seen]):
    """The steps of a trace, the kind of file they come from, and counts of what could not be read, by description.

    `cwds` are the agent's working directories. `total_tokens`, `seconds` and `cost` (in dollars) are those of the whole
    trace, None if it does not record them.
    """

    source: TraceSource | None
    steps: Sequence[Step[Seen]] = ()
    cwds: Sequence[str] = ()
    losses: Mapping[str, int] = field(default_factory=dict)
    model: str | None = None
    harness: str | None = None
    total_tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
