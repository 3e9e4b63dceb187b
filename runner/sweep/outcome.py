"""The outcome of a sweep: its results and failures so far, the best result, and the exit code."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from runner.comparison.leaderboard import FailedCombination, find_mean
from runner.comparison.race import RaceRecord
from runner.evaluation.result import QueryTable, Result

Answer = Result | FailedCombination

FAILED, INTERRUPTED = 1, 130
"""Exit codes of a sweep with a failed combination or query, and of one that the user stopped."""


@dataclass
class SweepOutcome:
    """The results and failures of a sweep so far, by combination; `reused` results were computed by earlier commands.

    Results keep their rankings only with `rankings`. `race` is the course of the race, if there was one. `work` counts
    the pieces of work done, by kind, without those that were in the store. `unlogged` is the number of results still to
    be logged.
    """

    rankings: bool = False
    results: dict[str, Result] = field(default_factory=dict)
    failures: dict[str, FailedCombination] = field(default_factory=dict)
    reused: int = 0
    interrupted: bool = False
    unlogged: int = 0
    work: Counter[str] = field(default_factory=Counter)
    race: RaceRecord | None = None
    best: str = ""
    _best_mean: float = 0.0
    _queries: dict[str, QueryTable] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """Return the exit code of the sweep."""
        if self.interrupted:
            return INTERRUPTED
        failed = self.failures or self.unlogged or any(result.failures for result in self.results.values())
        return FAILED if failed else 0

    @property
    def status(self) -> str:
        """Return the status of the sweep's run in MLflow."""
        if self.interrupted or self.unlogged:
            return "KILLED"
        return "FAILED" if self.failures else "FINISHED"

    def add(self, combination: str, result: Result) -> Result:
        """Add a result; to save memory, drop its rankings and share columns of queries with other results."""
        mine = result.queries
        shared = self._queries.setdefault(result.dataset.fingerprint, mine)
        if vars(mine.shared) != vars(shared.shared):
            shared = mine
        self.results[combination] = replace(
            result if self.rankings else result.light(),
            queries=replace(shared, statuses=mine.statuses, errors=mine.errors, notes=mine.notes),
        )
        return self.results[combination]

    def update_best(self, answer: Answer) -> str | None:
        """Return a description of the answer if it is the best so far, else None.

        `best` is the last description. No answer is the best while all have 0.
        """
        if isinstance(answer, FailedCombination) or not (mean := find_mean(answer, answer.primary)) > self._best_mean:
            return None
        self._best_mean = mean
        self.best = f"{answer.primary} {self._best_mean:.4f} by {answer.name}"
        return self.best
