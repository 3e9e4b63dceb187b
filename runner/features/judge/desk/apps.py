"""The desks of `look`: one for each choice of runs, built when its tab is opened, and closed when the server stops.

A desk writes nothing before its first decision. The grades of those that have decisions are written at the end, as
`judge by=hand` does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from runner.config.consent import Consent
from runner.features.judge.desk.app import create_desk_app
from runner.features.judge.desk.desk import Desk, DeskSettings
from runner.features.judge.desk.journal import AssessorJournal
from runner.features.judge.desk.results import build_desk_pool, load_rankings, name_judged
from runner.features.judge.desk.session import find_assessor, report_grades
from runner.results.lookup import list_combinations
from runner.tracking.fetching import Runs
from runner.tracking.logged import Run
from runner.web.guard import LoopbackAccess

FOLDER = Path("mlruns/judgments")
"""Where `judge by=hand` writes by default, so that it and `look` share journals."""


@contextmanager
def open_desks(
    config: Mapping[str, Any], runs: Runs, consent: Consent, access: LoopbackAccess
) -> Iterator[Callable[[Sequence[Run]], ASGIApp]]:
    """Yield a function that returns the desk of a choice of runs; at the end, write the grades that were given.

    `config` has the `depth` of pools and the `assessor`, None for the login name. The function raises `ConfigError`,
    `DatasetError` or `ResultError`.
    """
    desks = _Desks(runs, consent, config["depth"], config["assessor"], access)
    try:
        yield desks.open
    finally:
        desks.close()


class _Desks:
    """The desks of an assessor, by runs; a pool has the runs that were finished when its desk was opened."""

    def __init__(self, runs: Runs, consent: Consent, depth: int, assessor: str | None, access: LoopbackAccess) -> None:
        self._runs, self._consent, self._depth = runs, consent, depth
        self._assessor, self._access = assessor, access
        self._apps: dict[tuple[str, ...], ASGIApp] = {}
        self._opened: list[tuple[Desk, Path]] = []
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the journals, then write and show the grades of the desks that have some."""
        changed = [(desk, folder) for desk, folder in self._opened if desk.journal.is_open]
        for desk, _ in changed:
            desk.journal.close()
        for desk, folder in changed:
            if any(assessor.grades for assessor in desk.assessments.values()):
                report_grades(desk.pool, folder)

    def open(self, shown: Sequence[Run]) -> ASGIApp:
        """Return the desk of some runs."""
        with self._lock:
            key = tuple(run.id for run in shown)
            if key not in self._apps:
                self._apps[key] = self._create(shown)
            return self._apps[key]

    def _create(self, shown: Sequence[Run]) -> ASGIApp:
        is_sweep = len(shown) == 1 and shown[0].kind == "sweep"
        results = [self._runs.record(run) for run in (list_combinations(shown[0], self._runs) if is_sweep else shown)]
        ranked = load_rankings(results, self._depth, self._consent)
        pool = build_desk_pool(results, ranked, self._depth)
        folder = FOLDER / name_judged([run.id for run in shown]) / "by_hand"
        journal = AssessorJournal(folder / "journals", find_assessor(self._assessor), pool.greatest)
        desk = Desk(pool, journal, DeskSettings())
        self._opened.append((desk, folder))
        return create_desk_app(desk, folder, self._access)
