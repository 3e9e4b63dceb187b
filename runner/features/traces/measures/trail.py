"""An agent's path through the files of a task: its events in order, with one name for each file.

A file of the ground truth has its name from there; any other file has its name from the events.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from runner.features.traces.events.gold_matching import distinct_names
from runner.features.traces.events.own_files import OwnFiles
from runner.features.traces.events.records import EventDocument, EventRecord
from runner.features.traces.events.tools import Category


@dataclass(frozen=True)
class Visit:
    """One file of an event: its name, its path in the event, and the position of the event."""

    file: str
    path: str
    event: int


@dataclass(frozen=True)
class GoldLines:
    """A gold line range of a file, both ends included."""

    file: str
    start: int
    end: int


@dataclass(frozen=True)
class ShownLines:
    """Lines of a file that an event showed, both ends included, and the position of the event."""

    file: str
    start: int
    end: float
    event: int


@dataclass(frozen=True)
class Trail:
    """The events of a task, their visits to files, and the gold files.

    `edits` are the files to change, empty if unknown. `has_trace` is false if no trace could be read, so that the
    absence of visits means nothing.
    """

    gold: Sequence[str]
    edits: Sequence[str]
    chunks: Sequence[GoldLines]
    events: Sequence[EventRecord]
    visits: Sequence[Visit]
    shown: Sequence[ShownLines]
    has_trace: bool

    @property
    def visited(self) -> tuple[str, ...]:
        """Return the files of all events, including those that the agent wrote, in order of first sight."""
        return tuple(dict.fromkeys(visit.file for visit in self.visits))

    @cached_property
    def retrieved(self) -> tuple[str, ...]:
        """Return the files that the agent saw before it wrote them, in order of first sight."""
        return tuple(dict.fromkeys(visit.file for visit in self._retrievals))

    @cached_property
    def read(self) -> Mapping[str, int]:
        """Return the files that were opened, each with the position of the first event that opened it."""
        return self._first_events("file_read")

    @cached_property
    def written(self) -> Mapping[str, int]:
        """Return the files that were written, each with the position of the first event that wrote it."""
        return self._first_events("file_write")

    @cached_property
    def categories(self) -> Counter[str]:
        """Return the number of events of each category."""
        return Counter(event["tool_category"] for event in self.events)

    @cached_property
    def shown_unchanged(self) -> Sequence[ShownLines]:
        """Return the lines that were shown before the agent wrote their file, which may have moved its lines."""
        return [lines for lines in self.shown if lines.event < self.written.get(lines.file, math.inf)]

    def count_unknown_reads(self, files: Collection[str]) -> int:
        """Return how often one of these files was read, before the agent wrote it, without a record of the lines."""
        known = {(lines.file, lines.event) for lines in self.shown}
        reads = {(visit.file, visit.event) for visit in self.visits if visit.file in files and self._is_read(visit)}
        return sum(event < self.written.get(file, math.inf) for file, event in reads - known)

    @property
    def uses_mcp(self) -> bool:
        """Return whether any event comes from a tool of a server."""
        return any(event["is_mcp"] for event in self.events)

    @property
    def first_gold(self) -> EventRecord | None:
        """Return the first event that retrieves a gold file."""
        gold = {*self.gold}
        return next((self.events[visit.event] for visit in self._retrievals if visit.file in gold), None)

    @cached_property
    def _retrievals(self) -> Sequence[Visit]:
        own = OwnFiles()
        categories = (self.events[visit.event]["tool_category"] for visit in self.visits)
        return [v for v, category in zip(self.visits, categories, strict=True) if own.is_retrieval(v.file, category)]

    def _is_read(self, visit: Visit) -> bool:
        return self.events[visit.event]["tool_category"] == "file_read"

    def _first_events(self, category: Category) -> dict[str, int]:
        first: dict[str, int] = {}
        for visit in self.visits:
            if self.events[visit.event]["tool_category"] == category:
                first.setdefault(visit.file, visit.event)
        return first


def build_trail(document: EventDocument) -> Trail:
    """Return the trail of a document whose files are matched with its ground truth.

    Letter case is ignored.
    """
    truth, coverage, events = document["ground_truth"], document["coverage"], document["events"]
    matches = truth.get("matches", {})
    spellings: dict[str, str] = {}

    def name_file(path: str) -> str:
        return matches.get(path) or spellings.setdefault(path.lower(), path)

    return Trail(
        gold=distinct_names(truth["files"] if coverage["has_ground_truth"] else ()),
        edits=tuple(dict.fromkeys(truth.get("expected_edit_files", ()))),
        chunks=tuple(
            GoldLines(chunk["file"], chunk["line_start"], chunk["line_end"]) for chunk in truth.get("chunks", ())
        ),
        events=events,
        visits=tuple(
            Visit(name_file(path), path, position)
            for position, event in enumerate(events)
            for path in event["target_files"]
        ),
        shown=tuple(
            ShownLines(name_file(lines["file"]), lines["line_start"], lines["line_end"] or math.inf, position)
            for position, event in enumerate(events)
            for lines in event.get("target_lines", ())
        ),
        has_trace=coverage["trace_source"] is not None,
    )
