"""Lays out an agent's path through the files of a task: steps across, files down in order of first sight.

It computes positions and words, which a template draws. Knows nothing of how a page looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from runner.features.traces.events.records import EventDocument, EventRecord
from runner.features.traces.measures.trail import Trail, build_trail
from runner.pages.numbers import duration, gist

MarkKind = Literal["read", "search", "write"]

KINDS: Mapping[str, MarkKind] = {"file_read": "read", "file_write": "write"}
"""The mark of a category; all others are searches."""

WIDTH, LEFT, ROW, TOP, BOTTOM = 760, 244, 17, 22, 22
"""In pixels: the whole width, that of the names, the height of a file, the space above and below the files."""

MAX_ROWS, MAX_MISSED, MAX_LISTED, MAX_NAME = 20, 8, 30, 33
"""The most visited files and missed gold files with rows of their own, the most files listed where several share a row,
and the longest name."""

MAX_EVENTS, MAX_FILES, MAX_TEXT = 400, 20, 300
"""The most tool calls of a task that are listed, the most files of each, and the most characters of its arguments."""

_PRIORITY: Mapping[MarkKind, int] = {"search": 0, "read": 1, "write": 2}
_MAX_TICKS = 8


@dataclass(frozen=True)
class Mark:
    """A visit to a file: its position across, its kind, whether by a subagent, and its tooltip."""

    x: float
    kind: MarkKind
    subagent: bool
    tooltip: str


@dataclass(frozen=True)
class TimelineRow:
    """One file or several: a short name, the full names as a tooltip, whether it is gold, and its visits."""

    name: str
    tooltip: str
    gold: bool
    marks: Sequence[Mark]


@dataclass(frozen=True)
class Timeline:
    """The layout of a task. `calls` are the positions of all events; `first` marks the first gold file."""

    name: str
    rows: Sequence[TimelineRow]
    ticks: Sequence[tuple[float, str]]
    calls: Sequence[float]
    first: Mark | None

    @property
    def height(self) -> int:
        """Return the height in pixels."""
        return TOP + ROW * len(self.rows) + BOTTOM


def build_timeline(name: str, document: EventDocument) -> Timeline:
    """Lay out a document of events.

    Gold files get a row first, then files that were opened or written; all others share one. Missed gold files come
    last. Marks at the same pixel are merged into the one with the greatest effect.
    """
    trail = build_trail(document)
    last = max((event["step_index"] for event in trail.events), default=0)
    marks = _group_marks(trail, last)
    gold = {*trail.gold}
    used = {*trail.read, *trail.written}
    own = {*sorted(trail.visited, key=lambda file: (file not in gold, file not in used))[:MAX_ROWS]}
    others = [file for file in trail.visited if file not in own]
    rows = [TimelineRow(shorten(file), file, file in gold, marks[file]) for file in trail.visited if file in own]
    if others:
        merged = _merge_marks(mark for file in others for mark in marks[file])
        rows.append(TimelineRow(f"{len(others):,} other files", _list_names(others), False, merged))
    rows += _build_missed([file for file in trail.gold if file not in marks])
    calls = sorted({_locate(event, last) for event in trail.events})
    first = trail.first_gold
    return Timeline(name, rows, _ticks(last), calls, _mark_first(first, last) if first else None)


def list_events(document: EventDocument, hide: Callable[[str], str]) -> list[dict[str, object]]:
    """Return the tool calls of a task for JSON, in order: step, tool, time, arguments, and files (1: a gold file).

    `hide` replaces the secrets in a text.
    """
    events: list[dict[str, object]] = []
    for event in document["events"][:MAX_EVENTS]:
        gold = {*event.get("matched_ground_truth_files", ())}
        named = document["ground_truth"].get("matches", {})
        files = event["target_files"]
        entry: dict[str, object] = {
            "step": event["step_index"] + 1,
            "tool": f"{event['tool_name']}{' (subagent)' if _by_subagent(event) else ''}",
            "kind": KINDS.get(event["tool_category"], "search"),
            "files": [[file, int(named.get(file, file) in gold)] for file in files[:MAX_FILES]],
            "others": max(len(files) - MAX_FILES, 0),
        }
        if (clock := event.get("elapsed_seconds")) is not None:
            entry["time"] = duration(clock)
        if arguments := event.get("arguments"):
            text = ", ".join(f"{key}={value}" for key, value in arguments.items())
            entry["text"] = gist(hide(text[: 4 * MAX_TEXT]), MAX_TEXT)
        events.append(entry)
    return events


def shorten(path: str, longest: int = MAX_NAME) -> str:
    """Return a path, without its beginning if it is too long."""
    return path if len(path) <= longest else f"\N{HORIZONTAL ELLIPSIS}{path[1 - longest :]}"


def _group_marks(trail: Trail, last: int) -> dict[str, list[Mark]]:
    marks: dict[str, list[Mark]] = {}
    for visit in trail.visits:
        event = trail.events[visit.event]
        kind = KINDS.get(event["tool_category"], "search")
        own = Mark(_locate(event, last), kind, _by_subagent(event), _describe_event(event))
        marks.setdefault(visit.file, []).append(own)
    return {file: _merge_marks(own) for file, own in marks.items()}


def _merge_marks(marks: Iterable[Mark]) -> list[Mark]:
    """Return one mark per pixel."""
    places: dict[int, Mark] = {}
    for mark in marks:
        other = places.get(round(mark.x))
        if other is None or _PRIORITY[mark.kind] > _PRIORITY[other.kind]:
            places[round(mark.x)] = mark
    return [places[x] for x in sorted(places)]


def _build_missed(files: Sequence[str]) -> list[TimelineRow]:
    rows = [TimelineRow(shorten(file), f"{file}: never seen", True, ()) for file in files[:MAX_MISSED]]
    more = len(files) - len(rows)
    rest = f"never seen:\n{_list_names(files[MAX_MISSED:])}"
    return [*rows, TimelineRow(f"{more:,} more gold files", rest, True, ())] if more else rows


def _list_names(files: Sequence[str]) -> str:
    more = len(files) - MAX_LISTED
    return "\n".join([*files[:MAX_LISTED], *([f"and {more:,} more"] if more > 0 else [])])


def _mark_first(event: EventRecord, last: int) -> Mark:
    clock = event.get("elapsed_seconds")
    tooltip = f"gold at step {event['step_index'] + 1}" + ("" if clock is None else f", {duration(clock)}")
    return Mark(_locate(event, last), KINDS.get(event["tool_category"], "search"), _by_subagent(event), tooltip)


def _describe_event(event: EventRecord) -> str:
    by = " (subagent)" if _by_subagent(event) else ""
    return f"step {event['step_index'] + 1}: {event['tool_name']}{by}"


def _by_subagent(event: EventRecord) -> bool:
    return event.get("is_subagent", False)


def _ticks(last: int) -> list[tuple[float, str]]:
    """Return the labelled steps: round numbers at even distances, counted from 1."""
    apart: int = next(
        n * 10**power for power in range(12) for n in (1, 2, 5) if (last + 1) / (n * 10**power) <= _MAX_TICKS
    )
    steps = [1, *range(apart, last + 2, apart)] if apart > 1 else list(range(1, last + 2))
    return [(_locate_step(step - 1, last), f"{step:,}") for step in dict.fromkeys(steps)]


def _locate(event: EventRecord, last: int) -> float:
    return _locate_step(event["step_index"], last)


def _locate_step(step: int, last: int) -> float:
    return round(LEFT + (step + 0.5) * (WIDTH - LEFT - 10) / (last + 1), 1)
