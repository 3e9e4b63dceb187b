"""What every trace is, whatever its format: the tool calls of an agent, in the order in which it made them.

A trace may be far larger than memory, most of it what tools returned. So a reader hands each call over as soon as its
result is there, and keeps only what the one who looks at it made of it. It knows nothing of files, tools or gold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

Seen = TypeVar("Seen")
"""What is kept of a call: whatever the one who looks at it returns."""

Source = Literal["trajectory", "transcript", "merged"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the trace has it. `result` is the text that came back, None where the trace has none."""

    name: str
    arguments: Mapping[str, Any]
    result: str | None


Look = Callable[[ToolCall], Seen]


@dataclass(frozen=True, slots=True)
class Step(Generic[Seen]):
    """One tool call's place in a trace, and what was seen in it.

    `index` counts the calls of the trace from 0. `tokens` is the running total of prompt and completion up to this
    call, cached tokens counted once; by the trace's own clock, `elapsed_s` is since the agent's first step and `time`
    since 1970, both in seconds. Each is None where the trace does not say. `id` is "" where it has none.
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
    """The steps of a trace, what they are from, and what could not be read of it: in words, and how often.

    `cwds` are the folders that the agent was in. `total_tokens`, `seconds` and `cost` (in dollars) are of the whole
    trace where it says.
    """

    source: Source | None
    steps: Sequence[Step[Seen]] = ()
    cwds: Sequence[str] = ()
    losses: Mapping[str, int] = field(default_factory=dict)
    model: str | None = None
    harness: str | None = None
    total_tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
