"""Plans a sweep: its distinct units of work, how many are in the store, and the cost of the rest.

Planning loads the datasets, because the keys of work depend on their content, and reads the store and the tracking
store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from retrievers.capabilities import is_live
from retrievers.search import Work, plan_rankings
from retrievers.store import MemoryStore, fingerprint
from retrievers.work import PlanStep
from runner.datasets.dataset import Dataset
from runner.datasets.own_documents import leave_room
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result, ResultError
from runner.llm.spending import iter_models
from runner.pages import console
from runner.pages.progress import Status
from runner.store.base import WORTH_KEEPING_S
from runner.sweep.calls import estimate_calls
from runner.sweep.declared import Declared
from runner.sweep.estimates import Estimate, Estimator
from runner.sweep.finished import load_result
from runner.sweep.power import plan_power
from runner.sweep.racing import check_race, describe_saving
from runner.sweep.report.printing import show_plan
from runner.sweep.settings import SweepSettings
from runner.sweep.work import Plan, PlannedStage, SearchPlan
from runner.tracking.background import BackgroundTracker
from runner.tracking.fetching import Runs
from runner.tracking.logged import LoggedRun, State, Sweep

LATEST_RUNS, OF_A_SWEEP = 10, 5
"""The largest number of logged runs whose times are read, and of combinations of a sweep among them."""


def plan(declared: Declared, sweep: Sweep, wanted: Mapping[str, Experiment], tracker: BackgroundTracker) -> int:
    """Show the plan of a sweep with these combinations, by identity; return the exit code."""
    with Status("planning"):
        state = tracker.state(sweep.id, sweep.report) if declared.settings.resume else State()
        finished = {
            combination
            for combination, run in state.finished.items()
            if combination in wanted and not (_may_fail(wanted[combination]) and _is_unfinished(run, tracker))
        }
        earlier = _list_earlier(tracker) if tracker.keeps_runs else ()
        made = plan_combinations(
            sweep.name, wanted, finished, declared.bench, count_workers(declared.settings), earlier
        )
        if declared.settings.race:
            check_race(wanted, declared.bench)
            made = replace(made, race=describe_saving(wanted, declared.bench, declared.settings))
    _show(made)
    return 0


def plan_search(declared: Declared, sweep: Sweep, folds: int, example: Experiment) -> int:
    """Show how many combinations a search has and what its queries can show; return the exit code.

    A search chooses combinations as it runs; `example` is one of them.
    """
    with Status("planning"), BackgroundTracker(declared.tracking) as tracker:
        earlier = _list_earlier(tracker) if tracker.keeps_runs else ()
        power = list(plan_power([example], declared.bench, earlier, sweep.combinations))
    _show(SearchPlan(sweep.name, sweep.combinations, folds, power))
    return 0


def _show(made: Plan | SearchPlan) -> None:
    console.document(made.to_json)
    show_plan(made)


def plan_combinations(
    name: str,
    wanted: Mapping[str, Experiment],
    finished: Collection[str],
    bench: Bench,
    workers: int,
    earlier: Sequence[Result] = (),
) -> Plan:
    """Return the plan of a sweep, given its combinations and those that are finished.

    Times are rates of the work in the store and of `earlier` results, latest first, and the power of tests follows from
    those on the same dataset.
    """
    to_do = {
        combination: experiment
        for combination, experiment in wanted.items()
        if combination not in finished or is_live(experiment.retriever)
    }
    works = works_of(wanted, bench)
    kept = bench.store.list_entries()
    there = {entry.digest for entry in kept if entry.parts}
    needed = {combination: _add_work({}, works[combination], there) for combination in to_do}
    estimator = Estimator(sorted(kept, key=lambda entry: entry.used, reverse=True), earlier)
    estimates = {
        digest: _estimate(estimator, work, wanted[combination])
        for combination, works_of_one in needed.items()
        for digest, work in works_of_one.items()
    }
    scoring = {combination: _estimate_scoring(estimator, bench.dataset(e)) for combination, e in to_do.items()}
    stages = [*_stages(works.values(), there, estimates), _list_scoring(len(wanted), scoring)]
    is_estimated = any(stage.unknown < stage.to_do for stage in stages)
    workers = min(workers, max(len(to_do), 1))
    return Plan(
        name=name,
        datasets=list(dict.fromkeys(_describe_dataset(bench.dataset(e)) for e in wanted.values())),
        combinations=len(wanted),
        finished=len(wanted) - len(to_do),
        to_do=[experiment.name for experiment in to_do.values()],
        stages=stages,
        wall_seconds=_wall(needed, estimates, scoring, workers) if is_estimated or not to_do else None,
        workers=workers,
        store=bench.store.location,
        calls=estimate_calls(
            (experiment, bench.dataset(experiment), works[combination].key.digest in needed[combination])
            for combination, experiment in to_do.items()
        ),
        power=list(plan_power(wanted.values(), bench, earlier)),
    )


def _may_fail(experiment: Experiment) -> bool:
    """Return whether a result may be incomplete because the experiment uses a language model."""
    return any(iter_models((experiment.retriever, experiment.grading)))


def _is_unfinished(run: LoggedRun, tracker: BackgroundTracker) -> bool:
    """Return whether the result of a finished combination is incomplete or missing, so that it is computed again."""
    try:
        return bool(load_result(run, tracker).unfinished)
    except ResultError:
        return True


def works_of(experiments: Mapping[str, Experiment], bench: Bench) -> dict[str, Work]:
    """Return the work of the search of each combination."""
    plans, works = MemoryStore(), {}
    for combination, experiment in experiments.items():
        dataset = bench.dataset(experiment)
        retriever, depth = leave_room(experiment.retriever, dataset, experiment.metrics.depth)
        works[combination] = plan_rankings(retriever, dataset.corpus, dataset.queries.inputs, depth, plans)
    return works


def _add_work(works: dict[str, Work], work: Work, there: Collection[str] = ()) -> dict[str, Work]:
    """Add a unit of work and the work that it needs to `works`, by digest, and return `works`.

    Work in the store (`there`) is left out, with the work that only it needs.
    """
    if work.key.digest not in works and work.key.digest not in there:
        works[work.key.digest] = work
        for needed in work.needs:
            _add_work(works, needed, there)
    return works


def _list_earlier(tracker: BackgroundTracker) -> list[Result]:
    """Return results of the latest evaluations, without rankings; runs without a record on this machine are left out.

    Those of a sweep are a sample of its combinations that depends on their names alone: their order of time depends on
    which was finished first, and neighbours in the order of names share settings.
    """
    runs, results = Runs(tracker.tracking), list[Result]()
    for run in islice((run for run in runs.list_ended() if run.status == "FINISHED"), LATEST_RUNS):
        combinations = runs.of_sweep(run) if run.kind == "sweep" else [run]
        for one in sorted(combinations, key=lambda one: fingerprint(one.name))[:OF_A_SWEEP]:
            with suppress(ResultError):
                results += [runs.record(one, rankings=False)] if one.folder else []
    return results


def _estimate(estimator: Estimator, work: Work, experiment: Experiment) -> Estimate:
    made = estimator.estimate(work, experiment.config.get("retriever"))
    cheap = made.seconds is not None and made.seconds < WORTH_KEEPING_S
    return replace(made, bytes=0.0) if cheap else made


def _stages(works: Iterable[Work], there: Collection[str], estimates: Mapping[str, Estimate]) -> Iterator[PlannedStage]:
    """Yield the stages, those without a `PlanStep` last; work that has an estimate is to do."""
    distinct: dict[str, Work] = {}
    for work in works:
        _add_work(distinct, work)
    order = list[str](PlanStep)
    titles = dict.fromkeys(work.title for work in distinct.values())
    for title in sorted(titles, key=lambda title: order.index(title) if title in order else len(order)):
        digests = [digest for digest, work in distinct.items() if work.title == title]
        to_do = [estimates[digest] for digest in digests if digest in estimates]
        yield PlannedStage(
            name=title,
            distinct=len(digests),
            there=sum(digest in there for digest in digests),
            to_do=len(to_do),
            seconds=sum(estimate.seconds or 0.0 for estimate in to_do),
            bytes=sum(estimate.bytes for estimate in to_do),
            rough=any(estimate.rough for estimate in to_do),
            unknown=sum(estimate.seconds is None for estimate in to_do),
        )


def _estimate_scoring(estimator: Estimator, dataset: Dataset) -> float | None:
    return None if estimator.score_s is None else estimator.score_s * len(dataset.queries)


def _list_scoring(combinations: int, scoring: Mapping[str, float | None]) -> PlannedStage:
    there, seconds = combinations - len(scoring), sum(filter(None, scoring.values()))
    unknown = sum(one is None for one in scoring.values())
    return PlannedStage("score", combinations, there, len(scoring), seconds, 0.0, unknown=unknown)


def _wall(
    needed: Mapping[str, Collection[str]],
    estimates: Mapping[str, Estimate],
    scoring: Mapping[str, float | None],
    workers: int,
) -> float:
    """Return the total time in seconds, given the work of each combination: at least that of the longest one."""
    seconds = {digest: estimate.seconds or 0.0 for digest, estimate in estimates.items()}
    combinations = (sum(seconds[digest] for digest in works) + (scoring[name] or 0.0) for name, works in needed.items())
    computing = sum(seconds.values()) + sum(filter(None, scoring.values()))
    return max([computing / workers, *combinations])


def count_workers(settings: SweepSettings) -> int:
    """Return the number of workers; 1 for a running cluster, whose size is unknown here."""
    if settings.workers or settings.backend == "sequential" or settings.address:
        return settings.workers or 1
    from joblib import cpu_count

    return int(cpu_count())


def _describe_dataset(dataset: Dataset) -> str:
    chunks = f" in {len(dataset.corpus):,} chunks" if dataset.whole else ""
    documents, queries = f"{len(dataset.full_documents):,} documents{chunks}", f"{len(dataset.queries):,} queries"
    return f"{dataset.name} ({dataset.split}): {documents}, {queries}"
