"""Runs a sweep: loads finished combinations, computes and grades the others, and logs all answers.

The combinations may come from a grid, or step by step from a search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from retrievers.index_facts import describe_indexes, remember_facts
from retrievers.texts import fetch_documents
from retrievers.work import kind_of
from runner.comparison.leaderboard import FailedCombination
from runner.comparison.notes import list_some
from runner.comparison.race import RACE, DroppedCombination
from runner.config.objects import ConfigError
from runner.evaluation import Bench, MeasuredExperiment, build_result
from runner.experiment import Experiment
from runner.llm.ledger import Usage
from runner.llm.spending import compute_figures, measure_spending
from runner.reports import console
from runner.reports.progress import Progress, Status
from runner.result import Result, ResultError
from runner.sweep.boards import BestRankings
from runner.sweep.computation import Computation
from runner.sweep.finished import FinishedCombinations, load_result
from runner.sweep.identity import combination_id
from runner.sweep.outcome import Answer, SweepOutcome
from runner.sweep.racing import Challenge, RaceBlock, check_race, hold_race, race_trials, start_record
from runner.sweep.reporting import ReportWriter
from runner.sweep.result_log import ResultLog
from runner.sweep.settings import SweepSettings
from runner.tracking.background import BackgroundTracker
from runner.tracking.logged import LoggedRun, State, Sweep
from runner.tracking.settings import Tracking


class SweepRun:
    """A running sweep: a context manager in which `evaluate` may be called repeatedly.

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
        """Wait until no other process runs the same sweep, and load its state; raises `ConfigError`."""
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
        """Return experiments by identity; of duplicates, the first one."""
        distinct: dict[str, Experiment] = {}
        repeats: list[str] = []
        with remember_facts():
            experiments = [replace(one, index=describe_indexes(one.retriever)) for one in experiments]
        for experiment in experiments:
            identity = combination_id(experiment, self._bench.dataset(experiment))
            if identity in distinct:
                repeats.append(f"[{experiment.name}] repeats [{distinct[identity].name}]")
            distinct.setdefault(identity, experiment)
        if repeats:
            are = "is a duplicate and runs" if len(repeats) == 1 else "are duplicates and run"
            console.note(
                f"{len(repeats):,} of {len(experiments):,} combinations {are} only once: {list_some(repeats, 3)}"
            )
        return distinct

    def evaluate(
        self,
        combinations: Mapping[str, Experiment],
        progress: Progress | None = None,
        contenders: Collection[str] | None = None,
    ) -> Iterator[tuple[str, Answer]]:
        """Yield the answer of each combination by its identity, finished ones first.

        `progress`, if given, counts all combinations, and the caller displays it. `contenders` are the combinations
        that may be shown as the best so far. By default, these are all combinations if they have the same dataset, else
        none, because scores on different datasets are not comparable.
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

    def race(self, combinations: Mapping[str, Experiment]) -> dict[str, Experiment]:
        """Race combinations and return the survivors, to be evaluated; log the others as dropped."""
        check_race(combinations, self._bench)
        self._experiments.update(combinations)
        finished = {c: result for c, e in combinations.items() if (result := self._load_finished(c, e)) is not None}
        earlier = self._read_report(RACE)
        record, survivors = hold_race(combinations, finished, self._bench, self._settings, self._measure, earlier)
        self.outcome.race = record
        if record.to_json() != earlier:
            self._start()
            for one in record.dropped:
                self._log.log_drop(combinations[one.combination], one, record)
        return survivors

    def race_trials(
        self, challenges: Mapping[str, Challenge], best: Result
    ) -> tuple[Sequence[DroppedCombination], dict[str, Experiment]]:
        """Race trials against the best result so far; log and return the dropped ones, and return the others.

        Trials that were finished before do not race and are in neither.
        """
        new = {c: one for c, one in challenges.items() if self._load_finished(c, one.experiment) is None}
        if not new:
            return [], {}
        experiments = {c: one.experiment for c, one in new.items()}
        check_race(experiments, self._bench)
        self._experiments.update(experiments)
        record, others = race_trials(new, best, self._bench, self._settings, self._measure)
        for one in record.dropped:
            self._log.log_drop(experiments[one.combination], one, record)
        return record.dropped, others

    def describe_race(self, trials: Sequence[str], dropped: Sequence[DroppedCombination]) -> None:
        """Record the race of a search, given the identities of its trials."""
        first = next(iter(self._experiments.values()))
        record = start_record({trials[0]: first}, self._bench, self._settings)
        self.outcome.race = replace(record, combinations=trials, dropped=dropped)

    def _measure(self, blocks: Mapping[str, RaceBlock]) -> Mapping[str, NDArray[np.float64] | None]:
        self._start()
        return self._computation.measure(blocks)

    @property
    def overrides(self) -> list[str]:
        """Return the overrides with which another command finds the runs of the sweep."""
        return self._tracker.tracking.overrides()

    @property
    def parallel(self) -> bool:
        """Return whether combinations are computed in parallel."""
        return self._settings.backend != "sequential"

    @property
    def changed(self) -> bool:
        """Return whether there was anything to do, or an earlier command did not close the sweep."""
        ended = self._state.status in ("FINISHED", "FAILED")
        return self._tracker.in_sweep or self._log.has_waiting() or not ended

    def count_finished(self, wanted: Iterable[str]) -> int:
        """Return the number of these combinations that were finished when the sweep started."""
        return self._finished.count(wanted)

    def load_logged_runs(self) -> Mapping[str, LoggedRun]:
        """Return the runs of finished combinations, after logging all of them; {} if the runs cannot be read.

        If the sweep was interrupted, wait only for a moment.
        """
        if self.outcome.interrupted:
            self._tracker.leave()
        self._tracker.flush()
        try:
            return self._tracker.state(self._sweep.id, self._sweep.report).finished
        except ConfigError:
            return {}

    def load_rankings(self, combinations: Mapping[int, str], runs: Mapping[str, LoggedRun]) -> BestRankings:
        """Return the results of combinations, given by rank, with their rankings, and the documents that these name.

        Rankings are in memory or in the logged `runs`; a result whose rankings are in neither is left out.
        """
        best: dict[int, Result] = {}
        for rank, combination in combinations.items():
            result = self.outcome.results[combination]
            if result.hits is None and combination in runs:
                with suppress(ResultError, ConfigError):  # the report can do without
                    result = load_result(runs[combination], self._tracker, rankings=True)
            if result.hits is not None:
                best[rank] = result
        if not best:
            return {}, None
        experiment = self._experiments[combinations[min(best)]]
        documents = self._bench.dataset(experiment).documents
        if not len(documents):
            names = [name for result in best.values() if result.hits for name in result.hits.documents]
            documents = fetch_documents(experiment.retriever, documents, names)
        return best, documents

    @property
    def left(self) -> bool:
        """Return whether logging was given up because the tracking store was not ready when the sweep was stopped."""
        return self._tracker.left

    @property
    def keeps_runs(self) -> bool:
        """Return whether the runs can be read after this command has ended; not with `tracking=none`."""
        return self._tracker.keeps_runs

    @property
    def tracking(self) -> Tracking:
        """Return where the sweep is logged."""
        return self._tracker.tracking

    @property
    def waiting(self) -> str:
        """Return how many results wait to be logged, where, and how to log them; "" if none are waiting."""
        return self._log.waiting

    @property
    def reported(self) -> bool:
        """Return whether the parent run has a report; True if unknown."""
        folder = self._state.run.folder if self._state.run else None
        return folder is None or any(folder.glob("report*.html"))

    def has(self, report: str, text: str) -> bool:
        """Return whether the parent run has a report with exactly this text; False if unknown."""
        return self._read_report(report) == text

    def _read_report(self, report: str) -> str | None:
        """Return a report of the parent run; None if there is none, or it is unknown."""
        folder = self._state.run.folder if self._state.run else None
        try:
            return None if folder is None else (folder / report).read_text(encoding="utf-8")
        except OSError:
            return None

    def finish(
        self, best: Result | None, reports: Mapping[str, str], tags: Mapping[str, str] | None = None
    ) -> LoggedRun | None:
        """Close the parent run with its reports and tags and return it; None if it is not logged.

        Nothing is written if there was nothing to do and there is nothing to report.
        """
        if not self.changed and not reports:
            return self._state.run
        if self.outcome.interrupted:
            self._tracker.leave()
        self._start()
        self._log.settle(self._experiments, self._finished)
        if best is not None:  # the parent run shows the best result, but the spending of all combinations
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
