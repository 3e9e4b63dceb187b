"""The desks of a server: one for each choice of runs, built when its tab is opened, and closed when the server stops.

A desk writes nothing before its first decision. The grades of those that have decisions are written at the end, as
`judge by=hand` does.
"""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

from starlette.types import ASGIApp

from runner.features.judge.desk.app import create_desk_app
from runner.features.judge.desk.desk import Desk, DeskSettings
from runner.features.judge.desk.journal import AssessorJournal
from runner.features.judge.desk.results import build_desk_pool, load_rankings, name_judged
from runner.features.judge.desk.session import find_assessor, report_grades
from runner.features.look.results import StoredResults
from runner.features.look.shown import ShownRuns
from runner.results.lookup import list_combinations
from runner.web.guard import LoopbackAccess

FOLDER = Path("mlruns/judgments")
"""Where `judge by=hand` writes by default, so that it and `look` share journals."""


class Desks:
    """The desks of an assessor, by runs; a pool has the runs that were finished when its desk was opened."""

    def __init__(
        self, results: StoredResults, settings: DeskSettings, depth: int, assessor: str | None, access: LoopbackAccess
    ) -> None:
        self._results, self._settings, self._depth = results, settings, depth
        self._assessor, self._access = assessor, access
        self._apps: dict[str, ASGIApp] = {}
        self._opened: list[tuple[Desk, Path]] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Desks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        changed = [(desk, folder) for desk, folder in self._opened if desk.journal.is_open]
        for desk, _ in changed:
            desk.journal.close()
        for desk, folder in changed:
            if any(assessor.grades for assessor in desk.assessments.values()):
                report_grades(desk.pool, folder)

    def open(self, shown: ShownRuns) -> ASGIApp:
        """Return the desk of some runs; raises `ConfigError`, `DatasetError` or `ResultError`."""
        with self._lock:
            if shown.key not in self._apps:
                self._apps[shown.key] = self._create(shown)
            return self._apps[shown.key]

    def _create(self, shown: ShownRuns) -> ASGIApp:
        runs = shown.runs if shown.kind != "sweep" else list_combinations(shown.runs[0], self._results.runs)
        results = [self._results.runs.record(run) for run in runs]
        ranked = load_rankings(results, self._depth, self._results.consent)
        pool = build_desk_pool(results, ranked, self._depth)
        folder = FOLDER / name_judged([run.id for run in shown.runs]) / "by_hand"
        journal = AssessorJournal(folder / "journals", find_assessor(self._assessor), pool.greatest)
        desk = Desk(pool, journal, self._settings)
        self._opened.append((desk, folder))
        return create_desk_app(desk, folder, self._access)
