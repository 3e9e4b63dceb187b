"""Loads the records of combinations that earlier commands of a sweep finished, so that they are not computed again."""

from __future__ import annotations

from collections.abc import Iterable

from retrievers.capabilities import is_live
from runner.config.objects import ConfigError
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.records import load_record
from runner.evaluation.result import Result, ResultError
from runner.pages.progress import Status
from runner.sweep.outcome import SweepOutcome
from runner.sweep.reporting import EvaluationReport
from runner.tracking.background import BackgroundTracker
from runner.tracking.logged import LoggedRun, State
from runner.tracking.places import describe_missing


class FinishedCombinations:
    """The finished combinations in the tracking store; `reused` are the runs of those that were loaded."""

    def __init__(
        self,
        state: State,
        tracker: BackgroundTracker,
        bench: Bench,
        outcome: SweepOutcome,
        report: EvaluationReport | None,
    ) -> None:
        self.reused: dict[str, LoggedRun] = {}
        self._runs, self._tracker, self._bench = dict(state.finished), tracker, bench
        self._outcome, self._report = outcome, report
        self._rejected: set[str] = set()

    def __contains__(self, combination: str) -> bool:
        """Return whether a combination has a usable run."""
        return combination in self._runs and combination not in self._rejected

    def count(self, combinations: Iterable[str]) -> int:
        """Return the number of these combinations that were finished when the sweep started."""
        return sum(combination in self._runs for combination in combinations)

    def load(self, combination: str, experiment: Experiment) -> Result | None:
        """Add the result of a finished combination to the outcome under its current name; None if none is usable.

        Live services may have changed, so their combinations are always searched again. A run whose record is missing
        or incomplete is marked as failed.
        """
        # Why a record is loaded and not its logged means: boards test query by query, and the same mean may come from
        # other queries. Why not every finished run: if the service of one has another index now, its row would be
        # compared with rows of today's index, and one whose searches failed would keep a mean over fewer queries than
        # the others.
        run = self._runs.get(combination)
        if run is None or is_live(experiment.retriever):
            return None
        try:
            result = load_result(run, self._tracker, self._outcome.rankings)
            if self._report and not self._has_report(run):
                self._add_report(run, experiment, self._report)
        except ResultError as error:
            self._reject(combination, run, f"the record cannot be loaded: {error}")
            return None
        if result.unfinished:
            self._reject(combination, run, result.unfinished)
            return None
        self.reused[combination] = run
        self._outcome.reused += 1
        return self._outcome.add(combination, experiment.relabel(result))

    def _reject(self, combination: str, run: LoggedRun, why: str) -> None:
        self._tracker.reject(run, why)
        self._rejected.add(combination)

    def _has_report(self, run: LoggedRun) -> bool:
        if run.folder is not None:
            return (run.folder / "report.html").is_file()
        return self._tracker.has_file(run, "report.html")

    def _add_report(self, run: LoggedRun, experiment: Experiment, report: EvaluationReport) -> None:
        """Add the report of a single evaluation to a run that was finished without one; raises `ResultError`."""
        with Status(f"report of {experiment.name}"):
            whole = experiment.relabel(load_result(run, self._tracker, rankings=True))
            self._tracker.add_files(run, report(whole, self._bench.lexicon(experiment, whole)))


def load_result(run: LoggedRun, tracker: BackgroundTracker, rankings: bool = False) -> Result:
    """Return the record of a finished run; raises `ResultError` if it is missing, `ConfigError` if all records are."""
    if run.folder is None:
        return tracker.result(run, rankings)
    if not run.folder.parents[1].is_dir():
        raise ConfigError(describe_missing(tracker.tracking, run.folder.parents[1]))
    return load_record(run.folder, rankings)
