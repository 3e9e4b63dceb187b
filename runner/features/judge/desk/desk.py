"""The state of one assessor's desk: the next pair, what a keystroke changes, and progress.

Every keystroke goes to the journal first. Pages and the server are elsewhere.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from statistics import median

from runner.features.judge.desk.journal import (
    Action,
    Assessment,
    AssessorJournal,
    JournalEntry,
    list_journals,
    load_journals,
)
from runner.features.judge.desk.merging import Dispute, list_disputes
from runner.features.judge.desk.pairs import DeskPair, DeskPool
from runner.features.judge.desk.queue import PairQueue, list_taken
from runner.features.judge.judging import PairIds
from runner.features.judge.order import PairOrder

LONGEST_S = 300.0
"""A pair that was shown for longer counts as this long: the assessor was away."""

_RECENT = 50

_FEWEST_TIMES = 10
"""The fewest decisions from which the remaining time is estimated."""


class DeskError(ValueError):
    """A request that the desk cannot follow: an unknown pair, or a grade outside the scale."""


@dataclass(frozen=True)
class DeskSettings:
    """How an assessor works: see `conf/judge.yaml`. `goal` None: the whole pool."""

    order: PairOrder = "decisive"
    seed: int = 0
    overlap: float = 0.2
    goal: int | None = None


@dataclass(frozen=True)
class DeskProgress:
    """How many pairs the assessor has decided, of how many, and how many the pool has beyond them.

    `seconds_left` is None before the first grades.
    """

    decided: int
    total: int
    beyond: int
    skipped: int
    unsure: int
    seconds_left: float | None


@dataclass(frozen=True)
class DeskView:
    """What the page shows: a pair, None if nothing is left; its note; the grade of a near-duplicate, if it has one."""

    pair: DeskPair | None
    note: str
    duplicate_grade: int | None
    progress: DeskProgress
    can_undo: bool


class Desk:
    """The desk of one assessor; its methods may be called from several threads."""

    def __init__(self, pool: DeskPool, journal: AssessorJournal, settings: DeskSettings) -> None:
        self.pool, self.journal, self.settings = pool, journal, settings
        self.goal = settings.goal
        self._queue = PairQueue(pool, settings.order, settings.seed, journal.assessor)
        self._returned: list[int] = []  # pairs that undos brought back; the last is shown first
        self._shown: tuple[int, float] | None = None
        self._others: tuple[object, dict[str, Assessment]] = (None, {})
        self._lock = threading.RLock()

    @property
    def assessments(self) -> dict[str, Assessment]:
        """Return what each assessor has decided, read again if another one's journal has grown."""
        folder, own = self.journal.file.parent, self.journal.assessor
        state = [(file.name, file.stat().st_size) for file in list_journals(folder) if file.stem != own]
        with self._lock:
            if self._others[0] != state:
                self._others = (state, load_journals(folder, self.pool.greatest))
            return self._others[1] | {own: self.journal.assessment}

    def list_damaged(self) -> list[str]:
        """Return the lines of all journals that are skipped, each with what is wrong."""
        return [line for own in self.assessments.values() for line in own.damaged]

    def view(self) -> DeskView:
        """Return the pair to judge now, and the progress."""
        with self._lock:
            place = self._find_current()
            progress = self._measure_progress()
            own = self.journal.assessment
            can_undo = bool(own.order)
            if place is None:
                return DeskView(None, "", None, progress, can_undo)
            if self._shown is None or self._shown[0] != place:
                self._shown = (place, time.monotonic())
            pair = self.pool.read_pair(place)
            alike = [own.grades.get(self.pool.ids[member]) for member in self._queue.group_of(place) if member != place]
            grades = [grade for grade in alike if grade is not None]
            return DeskView(pair, own.notes.get(pair.ids, ""), grades[-1] if grades else None, progress, can_undo)

    def decide(self, action: Action, pair: PairIds, grade: int | None = None, note: str | None = None) -> None:
        """Write a decision on a pair to the journal, once if the same form is sent twice.

        Raises `DeskError`, also for another decision on a pair that was decided since the form was shown,
        `ConfigError` if another process has the journal, and `OSError` if the journal cannot be written.
        """
        with self._lock:
            self.journal.open()
            place = self._find_place(pair)
            if action in ("grade", "settle") and (grade is None or not 0 <= grade <= self.pool.greatest):
                raise DeskError(f"the grade {grade} is outside the scale from 0 to {self.pool.greatest}")
            own = self.journal.assessment
            is_new_note = note is not None and note != own.notes.get(pair, "")
            decided = own.decisions.get(pair)
            if action in ("grade", "skip", "unsure") and decided is not None and decided.action != "skip":
                if is_new_note or (action, grade) != (decided.action, decided.grade):
                    raise DeskError(_describe_decided(decided))
                return
            if is_new_note:
                self.journal.append("note", pair, note=note or "")
            if action == "note":
                return
            seconds = None
            if self._shown and self._shown[0] == place:
                seconds = round(min(time.monotonic() - self._shown[1], LONGEST_S), 1)
            self.journal.append(action, pair, grade, seconds=seconds)
            if place in self._returned:
                self._returned.remove(place)

    def undo(self) -> None:
        """Take back the last decision; its pair is shown next, followed by those of earlier undos."""
        with self._lock:
            self.journal.open()
            if order := self.journal.assessment.order:
                self.journal.append("undo", order[-1].pair)
                place = self.pool.places.get(order[-1].pair)
                if place is not None and order[-1].action != "settle":
                    self._returned = [*(other for other in self._returned if other != place), place]

    def extend_goal(self, more: int) -> None:
        """Set the goal to the pairs decided so far and this many more."""
        with self._lock:
            self.goal = self._measure_progress().decided + more

    def list_disputes(self) -> list[Dispute]:
        """Return the pairs of this pool that assessors have to settle."""
        return [dispute for dispute in list_disputes(self.assessments) if dispute.pair in self.pool.places]

    def _find_place(self, pair: PairIds) -> int:
        if pair not in self.pool.places:
            raise DeskError(f"query {pair[0]!r} and document {pair[1]!r} are not in the pool of this desk")
        return self.pool.places[pair]

    def _find_current(self) -> int | None:
        if self._returned:
            return self._returned[-1]
        own = self.journal.assessment
        progress = self._measure_progress()
        if progress.decided >= progress.total:
            return None
        places = self.pool.places
        decided = {places[pair]: entry.action for pair, entry in own.decisions.items() if pair in places}
        grades = self.pool.known.copy()
        for taken, grade in self._list_taken().items():
            grades[taken] = grade
        for pair, grade in own.grades.items():
            if pair in places:
                grades[places[pair]] = grade
        place = self._queue.find_next(grades, decided.keys())
        if place is None:  # skipped pairs come last, the first one first
            skipped = [places[e.pair] for e in own.order if decided.get(places.get(e.pair, -1)) == "skip"]
            latest = list(dict.fromkeys(reversed(skipped)))
            place = latest[-1] if latest else None
        return place

    def _list_taken(self) -> dict[int, int]:
        others = {n: own.grades for n, own in self.assessments.items() if n != self.journal.assessor}
        taken = list_taken(self.pool, others, self.settings.seed, self.settings.overlap)
        mine = self.journal.assessment.decisions
        return {place: grade for place, grade in taken.items() if self.pool.ids[place] not in mine}

    def _measure_progress(self) -> DeskProgress:
        own, places = self.journal.assessment, self.pool.places
        actions = [entry.action for pair, entry in own.decisions.items() if pair in places]
        decided = len(actions) - actions.count("skip")
        available = len(self.pool) - len(self._list_taken())
        total = min(max(self.goal, 0), available) if self.goal is not None else available
        times = [e.seconds for e in own.order if e.seconds is not None and e.action != "skip"][-_RECENT:]
        left = median(times) * max(total - decided, 0) if len(times) >= _FEWEST_TIMES else None
        return DeskProgress(decided, total, available - total, actions.count("skip"), actions.count("unsure"), left)


def _describe_decided(decided: JournalEntry) -> str:
    before = "marked that document unsure" if decided.grade is None else f"graded that document {decided.grade}"
    return f"this page was out of date. You had {before} already; undo (z), once or several times, leads back to it"
