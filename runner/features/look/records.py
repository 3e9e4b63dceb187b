"""What a sweep recorded when it ended: its combinations, the selection of its winner, its search, and its race."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from runner.comparison.race import RACE, parse_race
from runner.comparison.search import SEARCH, parse_search
from runner.comparison.selection import WinnerSelection, parse_selection
from runner.evaluation.result import DatasetSummary, Result
from runner.sweep.boards import SweepCourse
from runner.tracking.fetching import Runs
from runner.tracking.logged import Run

Record = TypeVar("Record")


class SweepRecords:
    """The records among the artifacts of a sweep; there are none before its end. Raises `ConfigError`."""

    def __init__(self, sweep: Run, runs: Runs, has_ended: bool) -> None:
        self._sweep, self._runs = sweep, runs
        self._files = runs.list_files(sweep) if has_ended else []

    def select_ranked(self, finished: Sequence[Run]) -> list[Run]:
        """Return the combinations that the report ranks, by default all; others were evaluated to select the winner."""
        names = [name for name in self._files if name.startswith("leaderboard") and name.endswith(".csv")]
        tables = [csv.DictReader(self._runs.read_file(self._sweep, name).splitlines()) for name in names]
        ranked = {row.get("run", "") for table in tables for row in table}
        return [run for run in finished if run.id in ranked] or list(finished)

    def read_course(self, results: Mapping[str, Result]) -> SweepCourse:
        """Return how the sweep went, given the results of combinations by the ids of their runs."""
        datasets = {result.dataset.fingerprint: result.dataset for result in results.values()}
        return SweepCourse(
            {run: run for run in results},
            {name: selection for name, dataset in datasets.items() if (selection := self._find_selection(dataset))},
            self._read(SEARCH, parse_search),
            self._read(RACE, parse_race),
            self._sweep.id,
        )

    def _find_selection(self, dataset: DatasetSummary) -> WinnerSelection | None:
        """Return the selection on a dataset; None if the winner was not selected on it."""
        for name in (f"selection-{dataset.name}-{dataset.fingerprint[:6]}.json", "selection.json"):
            selection = self._read(name, parse_selection)
            if selection and (selection.dataset, selection.split) == (dataset.name, dataset.split):
                return selection
        return None

    def _read(self, name: str, parse: Callable[[str], Record]) -> Record | None:
        """Return a record, None if there is none or another version of the program wrote it."""
        try:
            return parse(self._runs.read_file(self._sweep, name)) if name in self._files else None
        except ValueError:
            return None
