"""Logs the answers of a sweep; each result is saved to disk before it is reported, until it has been logged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from retrievers.capabilities import is_live
from runner.comparison.leaderboard import FailedCombination
from runner.comparison.race import DroppedCombination, RaceRecord
from runner.config.values import without_secrets
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.pages import console
from runner.sweep.finished import FinishedCombinations
from runner.sweep.outcome import SweepOutcome
from runner.sweep.reporting import EvaluationReport
from runner.sweep.settings import SweepSettings
from runner.tracking.background import BackgroundTracker
from runner.tracking.record import Dropped, Failed, Finished, axes_of
from runner.tracking.unlogged import Unlogged, Waiting


class ResultLog:
    """Logs the answers of a sweep; results that cannot be logged yet wait on disk."""

    def __init__(
        self,
        sweep_id: str,
        settings: SweepSettings,
        bench: Bench,
        tracker: BackgroundTracker,
        outcome: SweepOutcome,
        report: EvaluationReport | None,
    ) -> None:
        self._report = report
        self._settings, self._bench, self._tracker, self._outcome = settings, bench, tracker, outcome
        self._unlogged = Unlogged(bench.store.run_files.unlogged / sweep_id, settings.resume)
        self._in_memory: list[Finished] = []
        self._reported_refusal = self._reported_disk = False

    def has_waiting(self) -> bool:
        """Return whether a result waits on disk."""
        return bool(self._unlogged.all())

    @property
    def waiting(self) -> str:
        """Return how many results wait, where, and how to log them; "" if none are waiting."""
        if not self._outcome.unlogged:
            return ""
        n, total = self._outcome.unlogged, len(self._outcome.results)
        wait = "result waits" if n == 1 else "results wait"
        same = "the same command" if self._settings.resume else "the same command without sweep.resume=false"
        return f"not finished: {n:,} of {total:,} {wait} in {self._unlogged.folder}; run {same} to log them"

    def take_waiting(self, combination: str, experiment: Experiment) -> Result | None:
        """Log the result of a combination that waits on disk and return it; None if there is none."""
        waiting = self._unlogged.find(combination)
        if waiting is None:
            return None
        if is_live(experiment.retriever):  # a service may have changed: log this and search again
            self._log_waiting(waiting, experiment)
            return None
        entry = waiting.read()
        if entry is None:
            return None
        result = experiment.relabel(entry.result)
        self._hand_over(combination, experiment, result, waiting)
        self._note_refused()
        return result

    def log_failure(self, combination: str, experiment: Experiment, failure: FailedCombination) -> FailedCombination:
        """Log a failure and return it, with secrets hidden."""
        error, trace = without_secrets(failure.error), without_secrets(failure.traceback)
        self._tracker.log(Failed(failure.name, _parameters(experiment), error, trace, {"combination": combination}))
        self._note_refused()
        return replace(failure, error=error, traceback=trace)

    def log_drop(self, experiment: Experiment, dropped: DroppedCombination, race: RaceRecord) -> None:
        """Log a combination that a race dropped; its run has no value of a measure under the name of that measure."""
        figures = {"race/queries": dropped.queries, "race/p": dropped.p, "race/partial_mean": dropped.mean}
        figures |= {"race/partial_mean_of_leader": dropped.leader_mean}
        tags = {
            "combination": dropped.combination,
            "dropped": f"after {dropped.queries:,} of {race.queries:,} queries, by {race.measure} against "
            f"{dropped.leader}",
        }
        self._tracker.log(Dropped(dropped.name, _parameters(experiment), figures, tags))
        self._note_refused()

    def log_result(self, combination: str, experiment: Experiment, result: Result) -> None:
        """Log a result; a graded result is afterwards logged or on disk, so that its journal can be deleted."""
        self._hand_over(combination, experiment, result)
        if result.grades is not None:
            self._tracker.flush()
        self._note_refused()

    def settle(self, experiments: Mapping[str, Experiment], finished: FinishedCombinations) -> None:
        """Log the results that wait on disk, from this or an interrupted command, and count those still waiting."""
        self._tracker.flush()
        self._tracker.hurry()
        self._note_refused()
        in_memory, self._in_memory = self._in_memory, []
        for entry in in_memory:
            self._tracker.log(entry)
        for waiting in self._unlogged.all():
            experiment = experiments.get(waiting.combination)
            live = experiment is not None and is_live(experiment.retriever)
            if not live and (waiting.combination in finished or self._unlogged.is_superseded(waiting)):
                waiting.remove()
            elif waiting.read() is None:
                console.note(
                    f"{waiting.file}: removed, because the result is damaged or from another version of this program"
                )
                waiting.remove()
            else:
                self._log_waiting(waiting, experiment)
        self._tracker.flush()
        self._note_refused()
        self._outcome.unlogged = len(self._unlogged.all()) + len(self._in_memory)
        self._unlogged.close()

    def _log_waiting(self, waiting: Waiting, experiment: Experiment | None) -> None:
        """Log a result from disk, with a report if this command can render it."""
        if self._report and experiment and not waiting.digest and (entry := waiting.read()):
            self._hand_over(waiting.combination, experiment, experiment.relabel(entry.result), waiting)
        else:
            self._tracker.log(waiting)

    def _hand_over(
        self, combination: str, experiment: Experiment, result: Result, waiting: Waiting | None = None
    ) -> None:
        """Write a result to disk, replacing the `waiting` one if given, and pass it to the tracker."""
        reports = self._report(result, self._bench.lexicon(experiment, result)) if self._report else {}
        tags = {"combination": combination}
        entry = Finished(result, _parameters(experiment), reports, tags, self._tracker.tracking.trec)
        if waiting is None and not self._tracker.keeps_runs:  # without tracking, logging cannot fail
            self._tracker.log(entry)
            return
        try:
            self._tracker.log(self._unlogged.keep(combination, entry, waiting))
        except OSError as error:
            if not self._reported_disk:
                console.note(
                    f"{self._unlogged.folder}: results cannot be saved before they are logged ({error.strerror})"
                )
                self._reported_disk = True
            self._tracker.log(entry)
            self._tracker.flush()  # logged before it is reported

    def _note_refused(self) -> None:
        """Keep the results that could be neither logged nor saved to disk in memory; report the first of them."""
        refused = [entry for entry in self._tracker.take_unlogged() if not isinstance(entry, Failed | Dropped)]
        if refused and not self._reported_refusal:
            meanwhile = "results wait" if self._outcome.interrupted else "the sweep continues, and results wait"
            console.note(f"{self._tracker.trouble}; {meanwhile} in {self._unlogged.folder}")
            self._reported_refusal = True
        self._in_memory += [entry for entry in refused if isinstance(entry, Finished)]


def _parameters(experiment: Experiment) -> dict[str, str]:
    return {**axes_of(experiment.swept), **experiment.parameters}
