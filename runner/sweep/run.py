"""A sweep under way: finished combinations are loaded, the others computed and graded, and all answers logged.

The combinations may come from a grid, or one after the other from a search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from types import TracebackType
from typing import Self

from retrievers.index_facts import describe_indexes, remember_facts
from retrievers.work import kind_of
from runner.comparison.leaderboard import FailedCombination
from runner.config.objects import ConfigError
from runner.evaluation import Bench, hide_private_values
from runner.experiment import Experiment
from runner.llm.ledger import Usage
from runner.llm.spending import compute_figures, measure_spending
from runner.reports import console
from runner.reports.progress import Progress, Status
from runner.result import Result
from runner.sweep.computation import Computation
from runner.sweep.finished import FinishedCombinations
from runner.sweep.identity import combination_id
from runner.sweep.outcome import SweepOutcome
from runner.sweep.reporting import ReportWriter
from runner.sweep.result_log import ResultLog
from runner.sweep.settings import SweepSettings
from runner.sweep.workers import Answer
from runner.tracking.background import BackgroundTracker
from runner.tracking.logged import LoggedRun, State, Sweep
from runner.tracking.settings import Tracking


class SweepRun:
    """A sweep under way, as a context in which `evaluate` may be called repeatedly.

    The parent run is opened with the first combination to compute, and closed by `finish`. With `rankings`, results
    keep their rankings.
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
        self._experiments: dict[str, Experiment] = {}
        self._paid: dict[str, Usage] = {}
        self._reported_unfinished = False

    def __enter__(self) -> Self:
        """Begin once no other process runs the same sweep; raises `ConfigError`."""
        sweep, settings, bench, tracker = self._sweep, self._settings, self._bench, self._tracker
        self._state = State()
        if settings.resume:
            with Status("starting the sweep"):
                self._context.enter_context(bench.store.alone_in_sweep(sweep.id))
            self._state = tracker.state(sweep.id, sweep.report)
        report = self.writer.evaluation if settings.reports else None
        self._finished = FinishedCombinations(self._state, tracker, bench, self.outcome.rankings, report)
        self._log = ResultLog(sweep.id, settings, bench, tracker, self.outcome, report)
        self._computation = self._context.enter_context(Computation(sweep.id, settings, bench, tracker))
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        """End the workers."""
        self._context.__exit__(kind, what, at)

    def identify(self, experiments: Sequence[Experiment]) -> dict[str, Experiment]:
        """Return experiments by identity; of those that are the same combination, the first."""
        distinct: dict[str, Experiment] = {}
        with remember_facts():
            experiments = [replace(one, index=describe_indexes(one.retriever)) for one in experiments]
        for experiment in experiments:
            distinct.setdefault(combination_id(experiment, self._bench.dataset(experiment)), experiment)
        if repeated := len(experiments) - len(distinct):
            are = "is a duplicate and runs" if repeated == 1 else "are duplicates and run"
            console.note(f"{repeated:,} of {len(experiments):,} combinations {are} only once")
        return distinct

    def evaluate(
        self,
        combinations: Mapping[str, Experiment],
        progress: Progress | None = None,
        contenders: Collection[str] | None = None,
    ) -> Iterator[tuple[str, Answer]]:
        """Yield the answer of each combination by its identity, finished ones first.

        A given `progress` counts all combinations; its owner shows it. `contenders` are the combinations that may be
        shown as the best so far: by default all if they have the same dataset, as scores on different datasets are not
        comparable.
        """
        self._experiments.update(combinations)
        aside = contenders is not None and not contenders
        if contenders is None:
            contenders = combinations if self._on_one_dataset(combinations.values()) else ()
        todo: dict[str, Experiment] = {}
        for combination, experiment in combinations.items():
            result = self.outcome.results.get(combination) or self._load_finished(combination, experiment)
            if result is None:
                todo[combination] = experiment
                continue
            best = self.outcome.update_best(result) if combination in contenders else None
            if progress:
                progress.advance(best=best)
            yield combination, result
        if not todo:
            if progress is None and not aside:
                console.note(f"all {len(combinations):,} combinations are already finished; nothing to do")
            return
        best = self.outcome.best if contenders else ""
        begun = nullcontext(progress) if progress else Progress(len(todo), self.outcome.reused, best)
        with begun as shown:
            for combination, answer in self._compute(todo):
                best = self.outcome.update_best(answer) if combination in contenders else None
                shown.advance(failed=isinstance(answer, FailedCombination), best=best)
                yield combination, answer
                if isinstance(answer, FailedCombination) and self._settings.fail_fast:
                    return

    @property
    def overrides(self) -> list[str]:
        """Return the overrides by which another command finds the runs of the sweep."""
        return self._tracker.tracking.overrides()

    @property
    def parallel(self) -> bool:
        """Tell whether combinations are computed side by side."""
        return self._settings.backend != "sequential"

    @property
    def changed(self) -> bool:
        """Tell whether there was anything to do, or an earlier start left the sweep open."""
        ended = self._state.status in ("FINISHED", "FAILED")
        return self._tracker.in_sweep or self._log.has_waiting() or not ended

    def count_finished(self, wanted: Iterable[str]) -> int:
        """Return how many of these combinations were finished before."""
        return self._finished.count(wanted)

    def load_logged_runs(self) -> Mapping[str, LoggedRun]:
        """Return the runs of the combinations that are finished, once all that is over is logged.

        There are none where the store of runs cannot be read. Who interrupts a sweep waits for a moment only.
        """
        if self.outcome.interrupted:
            self._tracker.leave()
        self._tracker.flush()
        try:
            return self._tracker.state(self._sweep.id, self._sweep.report).finished
        except ConfigError:
            return {}

    @property
    def left(self) -> bool:
        """Tell whether the store of runs takes nothing any more, as it was not ready when the sweep was stopped."""
        return self._tracker.left

    @property
    def tracking(self) -> Tracking:
        """Return where the sweep is logged."""
        return self._tracker.tracking

    @property
    def waiting(self) -> str:
        """Return how many results wait to be logged, where, and what logs them; "" where none does."""
        return self._log.waiting

    @property
    def reported(self) -> bool:
        """Tell whether the parent run has a report, as far as is known."""
        folder = self._state.run.folder if self._state.run else None
        return folder is None or any(folder.glob("report*.html"))

    def has(self, report: str, text: str) -> bool:
        """Tell whether the parent run is known to have a report that says just this."""
        folder = self._state.run.folder if self._state.run else None
        try:
            return folder is not None and (folder / report).read_text(encoding="utf-8") == text
        except OSError:
            return False

    def finish(
        self, best: Result | None, reports: Mapping[str, str], tags: Mapping[str, str] | None = None
    ) -> LoggedRun | None:
        """Close the parent run with its reports and tags; return it, None where no store of runs took it.

        Nothing is written where nothing was to do, and there is nothing to report.
        """
        if not self.changed and not reports:
            return self._state.run
        if self.outcome.interrupted:
            self._tracker.leave()
        self._start()
        self._log.settle(self._experiments, self._finished)
        if best is not None:  # the sweep's run has what its best one came to, and what all of them cost
            paid = compute_figures(measure_spending(self._iter_models()), self._paid)
            best = replace(best, diagnostics={**best.diagnostics, **paid})
        try:
            if self._finished.reused:
                self._tracker.link({run.id for run in self._finished.reused.values()})
            work = {f"work/{kind}": str(count) for kind, count in self.outcome.work.items()}
            if self.outcome.unlogged:
                work["error"] = self._log.waiting
            return self._tracker.finish_sweep(best, reports, self.outcome.status, {**work, **(tags or {})})
        except ConfigError as error:
            if not self.left:
                console.note(str(error))
            self.outcome.unlogged = max(self.outcome.unlogged, 1)
            return None

    def _load_finished(self, combination: str, experiment: Experiment) -> Result | None:
        result = self._finished.load(combination, experiment)
        if result is None:
            return None
        self.outcome.reused += 1
        return self.outcome.add(combination, result)

    def _compute(self, todo: Mapping[str, Experiment]) -> Iterator[tuple[str, Answer]]:
        self._start()
        rest: dict[str, Experiment] = {}
        for combination, experiment in todo.items():
            result = self._log.take_waiting(combination, experiment)
            if result is None:
                rest[combination] = experiment
            else:
                yield combination, self.outcome.add(combination, result)
        for combination, answer in self._computation.run(rest):
            experiment = self._experiments[combination]
            if isinstance(answer, FailedCombination):
                answer = self.outcome.failures[combination] = self._log.log_failure(combination, experiment, answer)
            else:
                answer = self._keep(combination, experiment, answer)
            self._bench.forget_journals()
            yield combination, answer

    def _keep(self, combination: str, experiment: Experiment, result: Result) -> Result:
        """Grade a result, in this process so that one budget covers all workers; log it and return it slimmed."""
        result = hide_private_values(self._bench.grade(experiment, result))
        if result.unfinished and not self._reported_unfinished:
            console.note_unfinished(result)
            self._reported_unfinished = True
        done = (stage.kind for stage in result.timings.stages if not stage.reused)
        self.outcome.work.update(kind for kind in done if kind_of(kind).counted)
        self._log.log_result(combination, experiment, result)
        return self.outcome.add(combination, result)

    def _start(self) -> None:
        if not (self._tracker.in_sweep or self.left):
            self._paid = measure_spending(self._iter_models())
            self._tracker.start_sweep(replace(self._sweep, run=self._state.run))

    def _iter_models(self) -> Iterator[object]:
        """Yield the settings that may contain a language model."""
        for experiment in self._experiments.values():
            yield experiment.retriever
            yield experiment.grading

    def _on_one_dataset(self, experiments: Iterable[Experiment]) -> bool:
        datasets = (self._bench.dataset(experiment) for experiment in experiments)
        return len({(dataset.fingerprint, dataset.split) for dataset in datasets}) < 2
