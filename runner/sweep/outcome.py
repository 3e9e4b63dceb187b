"""What came of a sweep: its answers so far, how it ended, and the records of what was finished before.

It computes nothing and logs nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from runner.config.objects import ConfigError
from runner.records import load_record
from runner.reports.sweep.leaderboard import FailedCombination
from runner.result import Result
from runner.tracking.background import BackgroundTracker
from runner.tracking.logged import LoggedRun

FAILED, INTERRUPTED = 1, 130
"""Exit codes of a sweep in which a combination or a query failed, or that the user stopped."""


@dataclass
class SweepOutcome:
    """What came of a sweep so far: of each combination its answer, by identity; how many of them were there before.

    `work` counts the pieces of work that were done, by their kind: what was found done is not among them. `unlogged`
    is how many results still wait to be logged.
    """

    results: dict[str, Result] = field(default_factory=dict)
    failures: dict[str, FailedCombination] = field(default_factory=dict)
    reused: int = 0
    interrupted: bool = False
    unlogged: int = 0
    work: Counter[str] = field(default_factory=Counter)

    @property
    def exit_code(self) -> int:
        """Return the exit code of a sweep that ended so."""
        if self.interrupted:
            return INTERRUPTED
        failed = self.failures or self.unlogged or any(result.failures for result in self.results.values())
        return FAILED if failed else 0

    @property
    def status(self) -> str:
        """Return MLflow's word for how the sweep ended."""
        if self.interrupted or self.unlogged:
            return "KILLED"
        return "FAILED" if self.failures else "FINISHED"


def record_of(run: LoggedRun, tracker: BackgroundTracker, rankings: bool = False) -> Result:
    """Return a finished run's record; raises `ResultError` where it is gone, `ConfigError` where all of them are."""
    if run.folder is None:
        return tracker.result(run, rankings)
    if not run.folder.parents[1].is_dir():
        message = f"{run.folder.parents[1]}: the artifacts of earlier runs are not there; is a disk not mounted?"
        raise ConfigError(message)
    return load_record(run.folder, rankings)
