"""What an agent did with files, in the order in which it did: the events of a task, with each file under one name.

A file of the ground truth is called as that calls it, any other as the events do. Knows nothing of measures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runner.agents.events.own_files import OwnFiles
from runner.agents.truth.paths import File, match_names, named_file, short

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Visit:
    """That an event, by its position, has a file: its name, and its path as the event has it."""

    file: str
    path: str
    event: int


@dataclass(frozen=True)
class Trail:
    """The events of a task, the files that they opened, wrote or named, and those that are gold.

    `edits` are the files that are to be edited, none where that is not known; `chunks` those of the gold line ranges,
    one for each. `traced` is false where no trace could be read: that nothing was visited then means nothing.
    """

    gold: Sequence[str]
    edits: Sequence[str]
    chunks: Sequence[str]
    events: Sequence[Event]
    visits: Sequence[Visit]
    traced: bool

    @property
    def visited(self) -> tuple[str, ...]:
        """Return the files that any event has, those that the agent wrote among them, in order of first sight."""
        return tuple(dict.fromkeys(visit.file for visit in self.visits))

    @cached_property
    def retrieved(self) -> tuple[str, ...]:
        """Return the files that the agent saw and had not written itself, in order of first sight."""
        return tuple(dict.fromkeys(visit.file for visit in self._retrievals))

    @cached_property
    def read(self) -> Mapping[str, int]:
        """Return the files that were opened, and the position of the event that first did."""
        return self._first("file_read")

    @cached_property
    def written(self) -> Mapping[str, int]:
        """Return the files that were written, and the position of the event that first did."""
        return self._first("file_write")

    @cached_property
    def categories(self) -> Counter[str]:
        """Return how many events there are of each category."""
        return Counter(event["tool_category"] for event in self.events)

    @property
    def by_mcp(self) -> bool:
        """Tell whether any event is of a tool that a server offers."""
        return any(event["is_mcp"] for event in self.events)

    @property
    def first_gold(self) -> Event | None:
        """Return the event that first retrieves a gold file."""
        gold = {*self.gold}
        return next((self.events[visit.event] for visit in self._retrievals if visit.file in gold), None)

    @cached_property
    def _retrievals(self) -> Sequence[Visit]:
        own = OwnFiles()
        categories = (self.events[visit.event]["tool_category"] for visit in self.visits)
        return [v for v, category in zip(self.visits, categories, strict=True) if own.is_retrieval(v.file, category)]

    def _first(self, category: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for visit in self.visits:
            if self.events[visit.event]["tool_category"] == category:
                found.setdefault(visit.file, visit.event)
        return found


def trail_of(document: Mapping[str, Any]) -> Trail:
    """Return the trail of a document of events, of any version 1.x. Case tells no two files apart."""
    truth, coverage, events = document["ground_truth"], document["coverage"], document["events"]
    gold = _distinct(truth["files"] if coverage["has_ground_truth"] else ())
    wanted = [*(truth.get("expected_edit_files") or ()), *(chunk["file"] for chunk in truth.get("chunks") or ())]
    called = match_names(wanted, [*gold.values()])
    others = _distinct(name for name in wanted if name not in called)
    called = called | match_names((name for name in wanted if name not in called), [*others.values()])
    paths = dict.fromkeys(path for event in events for path in event["target_files"])
    stored = truth.get("matches")  # a document of version 1.0 has none
    seen = match_names(paths, [*gold.values()]) if stored is None or not gold else _renamed(stored, gold)
    seen = seen | match_names((path for path in paths if path not in seen), [*others.values()])
    spelt: dict[str, str] = {}
    return Trail(
        gold=tuple(gold.values()),
        edits=tuple(dict.fromkeys(called.get(name, name) for name in truth.get("expected_edit_files") or ())),
        chunks=tuple(called.get(chunk["file"], chunk["file"]) for chunk in truth.get("chunks") or ()),
        events=events,
        visits=tuple(
            Visit(seen.get(path) or spelt.setdefault(path.lower(), path), path, position)
            for position, event in enumerate(events)
            for path in event["target_files"]
        ),
        traced=coverage["trace_source"] is not None,
    )


def _distinct(names: Iterable[str]) -> dict[File, str]:
    """Return files with their names; of two names that mean the same file, the first."""
    distinct: dict[File, str] = {}
    for name in names:
        distinct.setdefault(_identity(name), name)
    return distinct


def _renamed(stored: Mapping[str, str], gold: Mapping[File, str]) -> dict[str, str]:
    """Return the matches of a document, each gold file under the first of its names."""
    return {path: gold[_identity(name)] for path, name in stored.items() if _identity(name) in gold}


def _identity(name: str) -> File:
    file = named_file(name)
    return File(file.path.lower(), file.repo and short(file.repo))
