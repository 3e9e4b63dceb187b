"""Runs a sweep: loads finished combinations, computes and grades the others, and logs all answers.

The combinations may come from a grid, or step by step from a search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from types import TracebackType
from typing import Self

from retrievers.work import kind_of
from runner.comparison.leaderboard import FailedCombination
from runner.evaluation.bench import Bench, MeasuredExperiment, build_result
from runner.evaluation.experiment import Experiment
from runner.evaluation.report.grades import missing_line
from runner.evaluation.result import Result
from runner.pages import console
from runner.pages.progress import Progress, Status
from runner.sweep.computation import Computation
from runner.sweep.finished import FinishedCombinations
from runner.sweep.logged_rankings import LoggedRankings
from runner.sweep.outcome import Answer, SweepOutcome
from runner.sweep.parent import SweepParent
from runner.sweep.reporting import ReportWriter
from runner.sweep.result_log import ResultLog
from runner.sweep.settings import SweepSettings
from runner.sweep.sweep_race import SweepRace
from runner.tracking.background import BackgroundTracker
from runner.tracking.logged import LoggedRun, State, Sweep


class SweepRun:
    """A running sweep: a context manager in which `evaluate` may be called repeatedly.

    The `parent` run is opened with the first combination to compute, and closed by `finish`. With `rankings`, results
    keep their rankings; `logged_rankings` loads those of others.
    """

    def __init__(
        self,
        sweep: Sweep,
        settings: SweepSettings,
        bench: Bench,
        tracker: BackgroundTracker,
        writer: ReportWriter,
        rankings: bool = False,
    ) -> None:
        self.writer = writer
        self.outcome = SweepOutcome(rankings)
        self._sweep, self._settings, self._bench, self._tracker = sweep, settings, bench, tracker
        self._context = ExitStack()
        self._reported_unfinished = False

    def __enter__(self) -> Self:
        """Wait until no other process runs the same sweep, and load its state; raises `ConfigError`."""
        sweep, settings, bench, tracker, outcome = self._sweep, self._settings, self._bench, self._tracker, self.outcome
        state = State()
        if settings.resume:
            with Status("starting the sweep"):
                self._context.enter_context(bench.store.alone_in_sweep(sweep.id))
            state = tracker.state(sweep.id, sweep.report)
        report = self.writer.evaluation if settings.reports else None
        self.parent = SweepParent(sweep, state, tracker, outcome)
        self.logged_rankings = LoggedRankings(outcome, self.parent, bench, tracker)
        self._finished = FinishedCombinations(state, tracker, bench, outcome, report)
        self._log = ResultLog(sweep.id, settings, bench, tracker, outcome, report)
        self._computation = self._context.enter_context(Computation(sweep.id, settings, bench, tracker))
        self.race = SweepRace(settings, bench, outcome, self.parent, self._finished, self._log, self._computation)
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        """End the workers."""
        self._context.__exit__(kind, what, at)

    def evaluate(
        self,
        combinations: Mapping[str, Experiment],
        progress: Progress | None = None,
        contenders: Collection[str] | None = None,
    ) -> Iterator[tuple[str, Answer]]:
        """Yield the answer of each combination by its identity, finished ones first.

        `progress`, if given, counts the contenders, and the caller displays it. `contenders` are the combinations
        that may be shown as the best so far. By default, these are all combinations if they have the same dataset, else
        none, because scores on different datasets are not comparable.
        """
        self.parent.experiments.update(combinations)
        if contenders is None:
            contenders = combinations if self._on_one_dataset(combinations.values()) else ()
        todo: dict[str, Experiment] = {}
        for combination, experiment in combinations.items():
            result = self.outcome.results.get(combination) or self._finished.load(combination, experiment)
            if result is None:
                todo[combination] = experiment
                continue
            best = self.outcome.update_best(result) if combination in contenders else None
            if progress and combination in contenders:
                progress.advance(best=best)
            yield combination, result
        if not todo:
            return
        counted = contenders if progress else todo
        best = self.outcome.best if contenders else ""
        begun = nullcontext(progress) if progress else Progress(len(todo), self.outcome.reused, best)
        with begun as shown:
            for combination, answer in self._compute(todo):
                best = self.outcome.update_best(answer) if combination in contenders else None
                if combination in counted:
                    shown.advance(failed=isinstance(answer, FailedCombination), best=best)
                yield combination, answer
                if isinstance(answer, FailedCombination) and self._settings.fail_fast:
                    return

    @property
    def parallel(self) -> bool:
        """Return whether combinations are computed in parallel."""
        return self._settings.backend != "sequential"

    @property
    def changed(self) -> bool:
        """Return whether there was anything to do, or an earlier command did not close the sweep."""
        return not self.parent.is_closed or self._log.has_waiting()

    @property
    def waiting(self) -> str:
        """Return how many results wait to be logged, where, and how to log them; "" if none are waiting."""
        return self._log.waiting

    def count_finished(self, wanted: Iterable[str]) -> int:
        """Return the number of these combinations that were finished when the sweep started."""
        return self._finished.count(wanted)

    def finish(
        self, best: Result | None, reports: Mapping[str, str], tags: Mapping[str, str] | None = None
    ) -> LoggedRun | None:
        """Close the parent run with its reports and tags and return it; None if it is not logged.

        Nothing is written if there was nothing to do and there is nothing to report.
        """
        if not self.changed and not reports:
            return self.parent.state.run
        if self.outcome.interrupted:
            self._tracker.leave()
        self.parent.open()
        self._log.settle(self.parent.experiments, self._finished)
        work = {f"work/{kind}": str(count) for kind, count in self.outcome.work.items()}
        if self.outcome.unlogged:
            work["error"] = self._log.waiting
        reused = {run.id for run in self._finished.reused.values()}
        return self.parent.close(best, reports, {**work, **(tags or {})}, reused)

    def _compute(self, todo: Mapping[str, Experiment]) -> Iterator[tuple[str, Answer]]:
        self.parent.open()
        rest: dict[str, Experiment] = {}
        for combination, experiment in todo.items():
            result = self._log.take_waiting(combination, experiment)
            if result is None:
                rest[combination] = experiment
            else:
                yield combination, self.outcome.add(combination, result)
        for combination, measured in self._computation.run(rest):
            experiment = rest[combination]
            answer: Answer
            if isinstance(measured, FailedCombination):
                answer = self.outcome.failures[combination] = self._log.log_failure(combination, experiment, measured)
            else:
                answer = self._keep(combination, experiment, measured)
            self._bench.forget_journals()
            yield combination, answer

    def _keep(self, combination: str, experiment: Experiment, measured: MeasuredExperiment) -> Result:
        """Grade what was measured, log the result, and return it without its rankings unless these are kept.

        Grading runs in this process, so that one budget covers all workers.
        """
        result = build_result(experiment, measured, self._bench.grade(experiment, measured))
        if result.unfinished and not self._reported_unfinished:
            console.note(missing_line(result))
            self._reported_unfinished = True
        done = (stage.kind for stage in result.timings.stages if not stage.reused)
        self.outcome.work.update(kind for kind in done if kind_of(kind).counted)
        self._log.log_result(combination, experiment, result)
        return self.outcome.add(combination, result)

    def _on_one_dataset(self, experiments: Iterable[Experiment]) -> bool:
        datasets = (self._bench.dataset(experiment) for experiment in experiments)
        return len({(dataset.fingerprint, dataset.split) for dataset in datasets}) < 2
