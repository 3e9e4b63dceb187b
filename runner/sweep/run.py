"""A sweep under way: what is finished is known, the rest is computed by its crew, and all that ends is logged.

It does not know where combinations come from, whether from a grid or from a search that asks for one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from types import TracebackType
from typing import Self

from retrievers.search import is_live
from retrievers.work import kind_of
from runner.config.objects import ConfigError
from runner.config.values import without_secrets
from runner.evaluation import Bench, hide_private_values
from runner.experiment import Experiment
from runner.llm.ledger import Usage
from runner.llm.spending import compute_figures, measure_spending
from runner.reports import console
from runner.reports.evaluation.files import evaluation_files
from runner.reports.evaluation.grades import missing_line
from runner.reports.sweep.leaderboard import FailedCombination
from runner.result import QueryTable, Result, ResultError
from runner.store.lock import alone
from runner.sweep.identity import combination_id
from runner.sweep.outcome import SweepOutcome, record_of
from runner.sweep.settings import SweepSettings
from runner.sweep.workers import Answer, Crew, answers, crew_of, crew_of_one
from runner.tracking.background import BackgroundTracker
from runner.tracking.logged import LoggedRun, State, Sweep
from runner.tracking.record import Failed, Finished, axes_of
from runner.tracking.settings import Tracking
from runner.tracking.under_way import UnderWay
from runner.tracking.unlogged import Unlogged, Waiting


class SweepRun:
    """A sweep under way, as a context in which `evaluate` may be called again and again.

    The parent run is opened when there is something to do, and closed by `finish`. With `rankings`, results keep what
    they found, for a report that shows it.
    """

    def __init__(
        self, sweep: Sweep, settings: SweepSettings, bench: Bench, tracker: BackgroundTracker, rankings: bool = False
    ) -> None:
        self.outcome = SweepOutcome()
        self._sweep, self._settings, self._bench, self._tracker = sweep, settings, bench, tracker
        self._rankings = rankings
        self._under_way = UnderWay(bench.store.run_files.sweeps, sweep.id, settings.resume)
        self._context = ExitStack()
        self._crew: Crew | None = None
        self._single_crew: Crew | None = None
        self._state = State()
        self._experiments: dict[str, Experiment] = {}
        self._queries: dict[str, QueryTable] = {}
        self._paid: dict[str, Usage] = {}
        self._reused: dict[str, LoggedRun] = {}
        self._rejected: set[str] = set()
        self._best, self._leading, self._told_unfinished = -math.inf, "", False
        self._reported_refusal = self._reported_disk = False

    def __enter__(self) -> Self:
        """Begin, once no other process is at the same sweep; raises `ConfigError`."""
        if self._settings.resume:
            with console.Working("beginning the sweep"):
                lock = self._bench.store.run_files.sweeps / f"{self._sweep.id}.lock"
                self._context.enter_context(alone(lock, "the same sweep"))
            self._state = self._tracker.state(self._sweep.id, self._sweep.report)
        self._unlogged = Unlogged(self._bench.store.run_files.unlogged / self._sweep.id, self._settings.resume)
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        """End the crew."""
        self._context.__exit__(kind, what, at)

    def identify(self, experiments: Sequence[Experiment]) -> dict[str, Experiment]:
        """Return experiments by identity: of those that are the same combination, the first."""
        distinct: dict[str, Experiment] = {}
        for experiment in experiments:
            distinct.setdefault(combination_id(experiment, self._bench.dataset(experiment)), experiment)
        if repeated := len(experiments) - len(distinct):
            are = "is" if repeated == 1 else "are"
            console.note(f"{repeated:,} of {len(experiments):,} combinations {are} the same as another, and done once")
        return distinct

    def find_finished(self, combination: str, experiment: Experiment) -> Result | None:
        """Return the result of a combination that was finished before, under the name that it has now.

        What a service decides is not finished by an earlier sweep: it may answer otherwise now.
        """
        run = self._state.finished.get(combination)
        if run is None or is_live(experiment.retriever):
            return None
        try:
            result = record_of(run, self._tracker, self._rankings)
            if self._settings.reports and not self._has_report(run):
                self._add_report(run, experiment)
        except ResultError as error:
            self._reject(combination, run, f"its record is gone: {error}")
            return None
        if result.unfinished:
            self._reject(combination, run, result.unfinished)
            return None
        self._reused[combination] = run
        return self._rename(result, experiment)

    def _reject(self, combination: str, run: LoggedRun, why: str) -> None:
        self._tracker.reject(run, why)
        self._rejected.add(combination)

    def evaluate(
        self,
        combinations: Mapping[str, Experiment],
        progress: console.Progress | None = None,
        contenders: Collection[str] | None = None,
    ) -> Iterator[tuple[str, Answer]]:
        """Yield the answer of each combination by its identity, those that were finished before first.

        A `progress` that is given counts them all, and is shown by who gave it. `contenders` are the combinations that
        may be named as the best so far: by default all if they are on one dataset, as scores on several do not compare.
        """
        self._experiments.update(combinations)
        aside = contenders is not None and not contenders
        if contenders is None:
            contenders = combinations if self._on_one_dataset(combinations.values()) else ()
        todo: dict[str, Experiment] = {}
        for combination, experiment in combinations.items():
            result = self.outcome.results.get(combination) or self.find_finished(combination, experiment)
            if result is None:
                todo[combination] = experiment
                continue
            self.outcome.reused += combination not in self.outcome.results
            self.outcome.results[combination] = result
            leads = self._leader(result) if combination in contenders else None
            if progress:
                progress.advance(best=leads)
            yield combination, result
        if not todo:
            if progress is None and not aside:
                console.note(f"all {len(combinations):,} were finished before: there is nothing to do")
            return
        leading = self._leading if contenders else ""
        begun = nullcontext(progress) if progress else console.Progress(len(todo), self.outcome.reused, leading)
        with begun as shown:
            for combination, answer in self._compute(todo):
                leads = self._leader(answer) if combination in contenders else None
                shown.advance(failed=isinstance(answer, FailedCombination), best=leads)
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
        waiting = self._unlogged.all()
        return self._tracker.in_sweep or bool(waiting) or self._state.status not in ("FINISHED", "FAILED")

    def count_finished(self, wanted: Iterable[str]) -> int:
        """Return how many of these combinations were finished before."""
        return sum(combination in self._state.finished for combination in wanted)

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
        if not self.outcome.unlogged:
            return ""
        n, total = self.outcome.unlogged, len(self.outcome.results)
        wait = "result waits" if n == 1 else "results wait"
        same = "the same command" if self._settings.resume else "the same command without sweep.resume=false"
        return f"not finished: {n:,} of {total:,} {wait} in {self._unlogged.folder}; run {same} to log them"

    @property
    def reported(self) -> bool:
        """Tell whether the parent run has a report, as far as is known."""
        folder = self._state.run.folder if self._state.run else None
        return folder is None or any(folder.glob("report*.html"))

    def has(self, report: str, text: str) -> bool:
        """Tell whether the parent run is known to have a report that says just this."""
        folder = self._state.run.folder if self._state.run else None
        try:
            return folder is not None and (folder / report).read_text() == text
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
        self._settle()
        if best is not None:  # the sweep's run has what its best one came to, and what all of them cost
            paid = compute_figures(measure_spending(self._asking()), self._paid)
            best = replace(best, diagnostics={**best.diagnostics, **paid})
        try:
            if self._reused:
                self._tracker.link({run.id for run in self._reused.values()})
            work = {f"work/{kind}": str(count) for kind, count in self.outcome.work.items()}
            if self.outcome.unlogged:
                work["error"] = self.waiting
            return self._tracker.finish_sweep(best, reports, self.outcome.status, {**work, **(tags or {})})
        except ConfigError as error:
            if not self.left:
                console.note(str(error))
            self.outcome.unlogged = max(self.outcome.unlogged, 1)
            return None

    def _compute(self, todo: Mapping[str, Experiment]) -> Iterator[tuple[str, Answer]]:
        if todo:
            self._start()
        rest: dict[str, Experiment] = {}
        for combination, experiment in todo.items():
            result = self._take_waiting(combination, experiment)
            if result is None:
                rest[combination] = experiment
            else:
                yield combination, result
        if rest and self._crew is None:
            self._crew = self._context.enter_context(self._begin_crew())
        suspects = {combination: rest.pop(combination) for combination in self._under_way.suspects & rest.keys()}
        for combination, answer in answers(rest, self._crew, self._settings.retries) if self._crew else ():
            yield combination, self._log(combination, self._grade(combination, answer))
        if not suspects:
            return
        if self._single_crew is None:
            self._single_crew = self._context.enter_context(crew_of_one(self._bench))
        for combination, answer in answers(suspects, self._single_crew, 0):
            if not isinstance(answer, FailedCombination):
                self._under_way.clear(combination)
            yield combination, self._log(combination, self._grade(combination, answer))

    def _take_waiting(self, combination: str, experiment: Experiment) -> Result | None:
        """Return the result of a combination that waits on disk, None where there is none; have it logged."""
        waiting = self._unlogged.find(combination)
        if waiting is None:
            return None
        if is_live(experiment.retriever):  # a service may answer differently now: both results are logged
            self._tracker.log(waiting)
            return None
        entry = waiting.read()
        if entry is None:
            return None
        result = replace(entry.result, name=experiment.name, swept=dict(experiment.swept))
        self._hand_over(combination, result, waiting)
        self._note_refused()
        result = self.outcome.results[combination] = self._slim(result)
        return result

    @contextmanager
    def _begin_crew(self) -> Iterator[Crew]:
        """Yield the workers; where this process computes itself, keep on disk what it is at, in case it dies."""
        marked = self._settings.backend == "sequential"
        try:
            if marked:
                if name := self._under_way.open():
                    console.note(f"the last start died at {name}: it is left for last, in a process of its own")
                self._tracker.report_death(self._under_way.marker)
            with crew_of(self._settings, self._bench, self._under_way.begin if marked else None) as crew:
                yield crew
        finally:
            self._under_way.close()

    def _start(self) -> None:
        if not (self._tracker.in_sweep or self.left):
            self._paid = measure_spending(self._asking())
            self._tracker.start_sweep(replace(self._sweep, run=self._state.run))

    def _asking(self) -> Iterator[object]:
        """Yield the settings that may hold a language model."""
        for experiment in self._experiments.values():
            yield experiment.retriever
            yield experiment.grading

    def _grade(self, combination: str, answer: Answer) -> Answer:
        """Return an answer with what it found graded; this process does it, so that one budget holds for all."""
        if isinstance(answer, FailedCombination):
            return answer
        graded = hide_private_values(self._bench.grade(self._experiments[combination], answer))
        if graded.unfinished and not self._told_unfinished:
            console.note(missing_line(graded))
            self._told_unfinished = True
        return graded

    def _log(self, combination: str, answer: Answer) -> Answer:
        """Hand an answer over to be logged; return it without its rankings."""
        if isinstance(answer, FailedCombination):
            error, trace = without_secrets(answer.error), without_secrets(answer.traceback)
            answer = replace(answer, error=error, traceback=trace)
            self.outcome.failures[combination] = answer
            parameters, tags = self._describe_run(combination)
            self._tracker.log(Failed(answer.name, parameters, answer.error, answer.traceback, tags))
        else:
            done = (stage.kind for stage in answer.timings.stages if not stage.reused)
            self.outcome.work.update(kind for kind in done if kind_of(kind).counted)
            self._hand_over(combination, answer)
            if answer.grades is not None:
                self._tracker.flush()  # what was paid for is safe before it is forgotten
            answer = self.outcome.results[combination] = self._slim(answer)
        self._note_refused()
        self._bench.forget_journals()
        return answer

    def _hand_over(self, combination: str, result: Result, waiting: Waiting | None = None) -> None:
        """Have a result logged; it is on disk before it is reported, in the place of a `waiting` one if given."""
        parameters, tags = self._describe_run(combination)
        reports: dict[str, str] = {}
        if self._settings.reports:
            reports = evaluation_files(result, self._bench.lexicon(self._experiments[combination]))
        entry = Finished(result, parameters, reports, tags, self._tracker.tracking.trec)
        try:
            self._tracker.log(self._unlogged.keep(combination, entry, waiting))
        except OSError as error:
            if not self._reported_disk:
                console.note(
                    f"{self._unlogged.folder}: results cannot be kept until they are logged ({error.strerror})"
                )
                self._reported_disk = True
            self._tracker.log(entry)
            self._tracker.flush()  # it is in the store of runs, then, before it is reported

    def _describe_run(self, combination: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return the parameters and the tags of a combination's run."""
        experiment = self._experiments[combination]
        return {**axes_of(experiment.swept), **experiment.parameters}, {"combination": combination}

    def _note_refused(self) -> list[Finished | Waiting]:
        """Return the results that the store of runs did not take; say once where they wait."""
        refused = [entry for entry in self._tracker.take_unlogged() if not isinstance(entry, Failed)]
        if refused and not self._reported_refusal:
            meanwhile = "results wait" if self.outcome.interrupted else "the sweep goes on, and results wait"
            console.note(f"{self._tracker.trouble}; {meanwhile} in {self._unlogged.folder}")
            self._reported_refusal = True
        return refused

    def _settle(self) -> None:
        """Log what waits on disk, from this sweep or from one that was cut short, and count what still waits."""
        self._tracker.flush()
        self._tracker.hurry()
        for refused in self._note_refused():
            if isinstance(refused, Finished):  # no disk took it
                self._tracker.log(refused)
        done = self._state.finished.keys() - self._rejected
        for waiting in self._unlogged.all():
            experiment = self._experiments.get(waiting.combination)
            live = experiment is not None and is_live(experiment.retriever)
            if not live and (waiting.combination in done or self._unlogged.is_superseded(waiting)):
                waiting.remove()
            elif waiting.read() is None:
                console.note(f"{waiting.file}: removed; the result is damaged, or of another version of this program")
                waiting.remove()
            else:
                self._tracker.log(waiting)
        self._tracker.flush()
        in_memory = [entry for entry in self._note_refused() if isinstance(entry, Finished)]
        self.outcome.unlogged = len(self._unlogged.all()) + len(in_memory)
        self._unlogged.close()

    def _rename(self, result: Result, experiment: Experiment) -> Result:
        """Return a result of an earlier time under the name that its combination has now."""
        return replace(self._slim(result), name=experiment.name, swept=dict(experiment.swept))

    def _slim(self, result: Result) -> Result:
        """Return a result with the columns of the queries that it shares with others, its rankings only if wanted."""
        mine = result.queries
        shared = self._queries.setdefault(result.dataset.fingerprint, mine)
        if (mine.ids, mine.texts, mine.types, mine.expected, mine.expected_grades, mine.clusters) != (
            shared.ids, shared.texts, shared.types, shared.expected, shared.expected_grades, shared.clusters,
        ):  # fmt: skip
            shared = mine
        return replace(
            result if self._rankings else result.light(),
            queries=replace(shared, statuses=mine.statuses, errors=mine.errors, notes=mine.notes),
        )

    def _has_report(self, run: LoggedRun) -> bool:
        if run.folder is not None:
            return (run.folder / "report.html").is_file()
        return self._tracker.has_file(run, "report.html")

    def _add_report(self, run: LoggedRun, experiment: Experiment) -> None:
        """Give a run that was finished without one the report of a single evaluation; raises `ResultError`."""
        with console.Working(f"report of {experiment.name}"):
            whole = replace(record_of(run, self._tracker, rankings=True), name=experiment.name)
            files = evaluation_files(whole, self._bench.lexicon(experiment))
            self._tracker.add_files(run, files)

    def _on_one_dataset(self, experiments: Iterable[Experiment]) -> bool:
        datasets = (self._bench.dataset(experiment) for experiment in experiments)
        return len({(dataset.fingerprint, dataset.split) for dataset in datasets}) < 2

    def _leader(self, answer: Answer) -> str | None:
        """Return what to say of an answer that leads now."""
        if isinstance(answer, FailedCombination) or not answer.means[answer.primary] > self._best:
            return None
        self._best = answer.means[answer.primary]
        self._leading = f"{answer.primary} {self._best:.4f} by {answer.name}"
        return self._leading
