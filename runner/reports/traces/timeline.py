"""An agent's way through the files of a task, laid out to be drawn: steps across, files down in order of first sight.

Knows nothing of how a page looks: positions and words, which a template draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from runner.agents.measures.trail import Trail, trail_of
from runner.reports.rendering.numbers import duration

Kind = Literal["read", "search", "write"]

KINDS: Mapping[str, Kind] = {"file_read": "read", "file_write": "write"}
"""What a category is drawn as; all others are searches."""

WIDTH, LEFT, ROW, TOP, BOTTOM = 760, 244, 17, 22, 22
"""Pixels: of the whole, of the names, of a file, above and below the files."""

MOST_ROWS, MOST_MISSED, MOST_LISTED, LONGEST_NAME = 20, 8, 30, 33
"""How many files have a row of their own, how many gold ones that were never seen do, how many are listed where several
share a row, and how long a name is."""

_STRONGER: Mapping[Kind, int] = {"search": 0, "read": 1, "write": 2}
_MOST_TICKS = 8


@dataclass(frozen=True)
class Mark:
    """Something done with a file: where across, what, whether by a subagent, and at which step in words."""

    x: float
    kind: Kind
    subagent: bool
    told: str


@dataclass(frozen=True)
class Row:
    """A file, or several: a name for it, what that stands for in full, whether it is gold, and what was done."""

    name: str
    told: str
    gold: bool
    marks: Sequence[Mark]


@dataclass(frozen=True)
class Timeline:
    """A task as it is drawn. `calls` are where events are, with files or without; `first` is where gold is first."""

    name: str
    rows: Sequence[Row]
    ticks: Sequence[tuple[float, str]]
    calls: Sequence[float]
    first: Mark | None

    @property
    def height(self) -> int:
        """Return how high it is, in pixels."""
        return TOP + ROW * len(self.rows) + BOTTOM


def timeline(name: str, document: Mapping[str, Any]) -> Timeline:
    """Lay out a document of events.

    Rows go to gold files first, then to those that were opened or written. What has none is in one row together; gold
    files that were never seen stand last. However long a trace is, there is one mark where several would lie on one
    another, that of what changes most.
    """
    trail = trail_of(document)
    last = max((event["step_index"] for event in trail.events), default=0)
    marks = _marks(trail, last)
    gold = {*trail.gold}
    used = {*trail.read, *trail.written}
    own = {*sorted(trail.visited, key=lambda file: (file not in gold, file not in used))[:MOST_ROWS]}
    others = [file for file in trail.visited if file not in own]
    rows = [Row(shortened(file), file, file in gold, marks[file]) for file in trail.visited if file in own]
    if others:
        merged = _merged(mark for file in others for mark in marks[file])
        rows.append(Row(f"{len(others):,} other files", _listed(others), False, merged))
    rows += _missed([file for file in trail.gold if file not in marks])
    calls = sorted({_x(event, last) for event in trail.events})
    first = trail.first_gold
    return Timeline(name, rows, _ticks(last), calls, _first(first, last) if first else None)


def shortened(path: str, longest: int = LONGEST_NAME) -> str:
    """Return a path that is too long without its beginning."""
    return path if len(path) <= longest else f"\N{HORIZONTAL ELLIPSIS}{path[1 - longest :]}"


def _marks(trail: Trail, last: int) -> dict[str, list[Mark]]:
    found: dict[str, list[Mark]] = {}
    for visit in trail.visits:
        event = trail.events[visit.event]
        kind = KINDS.get(event["tool_category"], "search")
        found.setdefault(visit.file, []).append(Mark(_x(event, last), kind, _by_subagent(event), _told(event)))
    return {file: _merged(marks) for file, marks in found.items()}


def _merged(marks: Iterable[Mark]) -> list[Mark]:
    """Return one mark for each place, by the pixel."""
    places: dict[int, Mark] = {}
    for mark in marks:
        other = places.get(round(mark.x))
        if other is None or _STRONGER[mark.kind] > _STRONGER[other.kind]:
            places[round(mark.x)] = mark
    return [places[x] for x in sorted(places)]


def _missed(files: Sequence[str]) -> list[Row]:
    named = [Row(shortened(file), f"{file}: never seen", True, ()) for file in files[:MOST_MISSED]]
    more = len(files) - len(named)
    rest = f"never seen:\n{_listed(files[MOST_MISSED:])}"
    return [*named, Row(f"{more:,} more gold files", rest, True, ())] if more else named


def _listed(files: Sequence[str]) -> str:
    more = len(files) - MOST_LISTED
    return "\n".join([*files[:MOST_LISTED], *([f"and {more:,} more"] if more > 0 else [])])


def _first(event: Mapping[str, Any], last: int) -> Mark:
    clock = event.get("elapsed_seconds")
    told = f"gold at step {event['step_index'] + 1}" + ("" if clock is None else f", {duration(clock)}")
    return Mark(_x(event, last), KINDS.get(event["tool_category"], "search"), _by_subagent(event), told)


def _told(event: Mapping[str, Any]) -> str:
    by = " (subagent)" if _by_subagent(event) else ""
    return f"step {event['step_index'] + 1}: {event['tool_name']}{by}"


def _by_subagent(event: Mapping[str, Any]) -> bool:
    return bool(event.get("is_subagent"))


def _ticks(last: int) -> list[tuple[float, str]]:
    """Return some steps to be named across, evenly and in round numbers, counted from 1."""
    apart = next(n * 10**power for power in range(12) for n in (1, 2, 5) if (last + 1) / (n * 10**power) <= _MOST_TICKS)
    steps = [1, *range(apart, last + 2, apart)] if apart > 1 else list(range(1, last + 2))
    return [(_x({"step_index": step - 1}, last), f"{step:,}") for step in dict.fromkeys(steps)]


def _x(event: Mapping[str, Any], last: int) -> float:
    step: int = event["step_index"]
    return round(LEFT + (step + 0.5) * (WIDTH - LEFT - 10) / (last + 1), 1)
