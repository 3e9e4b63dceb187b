"""The run of a whole sweep in the tracking store: opened with the first work, closed with the reports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from runner.config.objects import ConfigError
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.llm.ledger import Usage
from runner.llm.spending import compute_figures, measure_spending
from runner.pages import console
from runner.sweep.outcome import SweepOutcome
from runner.tracking.background import BackgroundTracker
from runner.tracking.logged import LoggedRun, State, Sweep
from runner.tracking.settings import Tracking


class SweepParent:
    """The parent run of a sweep, whose combinations are its `experiments`; `state` is that before this command."""

    def __init__(self, sweep: Sweep, state: State, tracker: BackgroundTracker, outcome: SweepOutcome) -> None:
        self.state = state
        self.experiments: dict[str, Experiment] = {}
        self._sweep, self._tracker, self._outcome = sweep, tracker, outcome
        self._paid: dict[str, Usage] = {}

    @property
    def overrides(self) -> list[str]:
        """Return the overrides with which another command finds the runs of the sweep."""
        return self._tracker.tracking.overrides()

    @property
    def tracking(self) -> Tracking:
        """Return where the sweep is logged."""
        return self._tracker.tracking

    @property
    def keeps_runs(self) -> bool:
        """Return whether the runs can be read after this command has ended; not with `tracking=none`."""
        return self._tracker.keeps_runs

    @property
    def left(self) -> bool:
        """Return whether logging was given up because the tracking store was not ready when the sweep was stopped."""
        return self._tracker.left

    @property
    def is_closed(self) -> bool:
        """Return whether an earlier command closed the run, and this one has not opened it again."""
        return self.state.status in ("FINISHED", "FAILED") and not self._tracker.in_sweep

    @property
    def reported(self) -> bool:
        """Return whether the run has a report; True if unknown."""
        folder = self.state.run.folder if self.state.run else None
        return folder is None or any(folder.glob("report*.html"))

    def has(self, report: str, text: str) -> bool:
        """Return whether the run has a report with exactly this text; False if unknown."""
        return self.read_report(report) == text

    def read_report(self, report: str) -> str | None:
        """Return a report of the run; None if there is none, or it is unknown."""
        folder = self.state.run.folder if self.state.run else None
        try:
            return None if folder is None else (folder / report).read_text(encoding="utf-8")
        except OSError:
            return None

    def open(self) -> None:
        """Open the run unless it is open, or logging was given up."""
        if not (self._tracker.in_sweep or self.left):
            self._paid = measure_spending(self._iter_models())
            self._tracker.start_sweep(replace(self._sweep, run=self.state.run))

    def find_run(self) -> str:
        """Return the id of the run, "" if it was not opened, is not logged or not kept."""
        try:
            run = self._tracker.find_sweep_run() if self._tracker.in_sweep else self.state.run
        except ConfigError:
            return ""
        return run.id if run and self.keeps_runs else ""

    def load_logged_runs(self) -> Mapping[str, LoggedRun]:
        """Return the runs of finished combinations, after logging all of them; {} if the runs cannot be read.

        If the sweep was interrupted, wait only for a moment.
        """
        if self._outcome.interrupted:
            self._tracker.leave()
        self._tracker.flush()
        try:
            return self._tracker.state(self._sweep.id, self._sweep.report).finished
        except ConfigError:
            return {}

    def close(
        self, best: Result | None, reports: Mapping[str, str], tags: Mapping[str, str], reused: Collection[str]
    ) -> LoggedRun | None:
        """Close the run with its reports and tags and return it; None if it is not logged.

        It shows the best result, and the spending of all combinations. `reused` are the ids of runs of other commands.
        """
        try:
            if reused:
                self._tracker.link(set(reused))
            spending = compute_figures(measure_spending(self._iter_models()), self._paid)
            return self._tracker.finish_sweep(best, reports, self._outcome.status, tags, spending)
        except ConfigError as error:
            if not self.left:
                console.note(str(error))
            self._outcome.unlogged = max(self._outcome.unlogged, 1)
            return None

    def _iter_models(self) -> Iterator[object]:
        """Yield the settings that may contain a language model."""
        for experiment in self.experiments.values():
            yield experiment.retriever
            yield experiment.grading
