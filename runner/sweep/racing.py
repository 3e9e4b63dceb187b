"""Races the combinations of a grid: they are searched block by block, and those that are surely not the best dropped.

Workers search the blocks, and the process of the sweep decides between two blocks. The rankings of a block go through
the store, so a race that is started again repeats its decisions without searching again, and the evaluation of a
survivor searches only the remaining queries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrievers.blocks import join_blocks
from retrievers.index_facts import remember_facts
from retrievers.model_calls import iter_model_calls
from retrievers.search import is_live, resolve_search_depth, search_block
from runner.analysis.racing import NOISE, SPREAD, Race, estimate_saving
from runner.comparison.race import DroppedCombination, RaceRecord, parse_race
from runner.config.objects import ConfigError
from runner.datasets.own_documents import exclude_own, rows_to_exclude
from runner.evaluation import Bench
from runner.experiment import Experiment
from runner.metrics.formulas import FORMULAS
from runner.reports.progress import Status
from runner.result import Result
from runner.sweep.settings import SweepSettings

Floats = NDArray[np.float64]


def check_race(experiments: Mapping[str, Experiment], bench: Bench) -> None:
    """Raise `ConfigError` if combinations cannot race."""
    for experiment in experiments.values():
        measure = experiment.metrics.primary_measure
        if measure.name.partition("(")[0] not in FORMULAS:
            raise ConfigError(
                f"metrics.primary={measure}: a race needs a measure with values from 0 to 1; set one such as nDCG@10, "
                "or remove sweep.race"
            )
        if is_live(experiment.retriever):
            raise ConfigError(
                f"sweep.race: {experiment.name} queries a live service, whose rankings are not stored; remove "
                "sweep.race or this retriever"
            )
    datasets = [bench.dataset(experiment) for experiment in experiments.values()]
    if len({(dataset.fingerprint, dataset.split) for dataset in datasets}) > 1:
        raise ConfigError("sweep.race: combinations race on one dataset; run a sweep for each dataset")
    golds = [bench.datasets.build_grader(experiment)[0].golds > 0 for experiment in experiments.values()]
    if any((gold != golds[0]).any() for gold in golds):
        raise ConfigError(
            "sweep.race: the queries with gold depend on the search type, so means are over different queries; run a "
            "sweep for each search type"
        )


def describe_saving(experiments: Mapping[str, Experiment], bench: Bench, settings: SweepSettings) -> str:
    """Return how much a race is expected to save, with the assumption behind the estimate."""
    first = next(iter(experiments.values()))
    queries = int((bench.datasets.build_grader(first)[0].golds > 0).sum())
    alpha, margin = first.metrics.alpha, settings.race_margin
    saving = estimate_saving(len(experiments), queries, settings.race_block, alpha, margin)
    return (
        f"race: saves about {saving:.0%} of the searches, and of the calls that each search makes, if the means of "
        f"combinations have a standard deviation of {SPREAD:g} and the values of a query one of {NOISE:g} (simulated; "
        "the other figures are those without a race)"
    )


@dataclass(frozen=True)
class RaceBlock:
    """The next search of a combination in a race, for queries at some positions."""

    experiment: Experiment
    rows: Sequence[int]

    @property
    def name(self) -> str:
        """Return the name of the combination."""
        return self.experiment.name


def measure_block(block: RaceBlock, bench: Bench) -> Floats | None:
    """Search a block and return the primary measure of its queries; None if a query failed.

    The rankings go through the store, where the evaluation of the combination finds them.
    """
    experiment, dataset = block.experiment, bench.dataset(block.experiment)
    rows, inputs = np.array(block.rows, dtype=np.intp), dataset.queries.inputs
    depth = resolve_search_depth(
        experiment.retriever, dataset.corpus, experiment.metrics.depth + rows_to_exclude(dataset)
    )
    queries = [inputs[row] for row in block.rows]
    with remember_facts():
        rankings = search_block(experiment.retriever, dataset.corpus, queries, depth, bench.store)
    if rankings.errors or not rankings.settled:
        return None
    joined = join_blocks([(rows, rankings)], len(dataset.queries), depth, len(dataset.corpus))
    grader, _ = bench.datasets.build_grader(experiment)
    ranked = exclude_own(dataset, joined, experiment.metrics.depth)
    values: Floats = grader.score(ranked, [experiment.metrics.primary_measure]).values[0][rows]
    return values


Measure = Callable[[Mapping[str, RaceBlock]], Mapping[str, Floats | None]]
"""Returns the values of each combination on its block, by identity; None if its search failed."""


def hold_race(
    experiments: Mapping[str, Experiment],
    finished: Mapping[str, Result],
    bench: Bench,
    settings: SweepSettings,
    measure: Measure,
    earlier: str | None = None,
) -> tuple[RaceRecord, dict[str, Experiment]]:
    """Race combinations, by identity; return the course, and the survivors with the blocks that they have searched.

    The values of `finished` combinations are known, so these are never dropped. `earlier` is the record of an earlier
    execution, which is returned if the race is the same and all survivors are finished.
    """
    identities, first = list(experiments), next(iter(experiments.values()))
    grader, _ = bench.datasets.build_grader(first)
    block, primary, queries = settings.race_block, str(first.metrics.primary_measure), int((grader.golds > 0).sum())
    record = RaceRecord(primary, first.metrics.alpha, settings.race_margin, block, settings.seed, queries, identities)
    if (known := _load(earlier, record)) and {*identities} == {*finished, *(d.combination for d in known.dropped)}:
        return known, {one: experiments[one] for one in finished}
    race = Race(len(identities), queries, record.alpha, record.margin)
    order = np.random.default_rng(settings.seed).permutation(np.flatnonzero(grader.golds > 0))
    searched: dict[str, list[list[int]]] = {one: [] for one in identities if one not in finished}
    exempt: list[str] = []
    with Status("race") as status:
        for start in range(0, queries, block):
            if len(race.racing) < 2:
                break
            status.note(f"{start:,} of {queries:,} queries, {len(race.survivors):,} combinations left")
            rows = order[start : start + block]
            racing = [identities[number] for number in race.racing.tolist()]
            blocks = {one: RaceBlock(experiments[one], rows.tolist()) for one in racing if one in searched}
            for one in blocks:
                searched[one].append(rows.tolist())
            values = {one: _select(finished[one], rows) for one in racing if one in finished}
            values |= measure(blocks) if blocks else {}
            for one in (one for one in racing if values[one] is None):
                race.exempt(identities.index(one))
                exempt.append(experiments[one].name)
            if len(race.racing):
                race.observe(np.stack([own for one in racing if (own := values[one]) is not None]))
    dropped = list(_describe_drops(race, experiments, bench, order, finished))
    gone = {one.combination for one in dropped}
    survivors = {c: replace(e, blocks=searched.get(c, ())) for c, e in experiments.items() if c not in gone}
    return replace(record, dropped=dropped, exempt=exempt), survivors


def _select(finished: Result, rows: NDArray[np.intp]) -> Floats | None:
    """Return the values of a finished combination on some queries; None if one is missing."""
    values = finished.of(finished.primary)[rows]
    return None if np.isnan(values).any() else values


def _describe_drops(
    race: Race,
    experiments: Mapping[str, Experiment],
    bench: Bench,
    order: NDArray[np.intp],
    finished: Collection[str],
) -> Iterator[DroppedCombination]:
    identities = list(experiments)
    for drop in race.drops:
        identity = identities[drop.configuration]
        experiment, leader = experiments[identity], experiments[identities[drop.leader]]
        if identity not in finished:
            dataset = bench.dataset(experiment)
            queries = [dataset.queries.inputs[row] for row in order[drop.queries :].tolist()]
            yield DroppedCombination(
                identity, experiment.name, dict(experiment.swept), drop.queries, leader.name, drop.p, drop.mean,
                drop.leader_mean, sum(c.calls for c in iter_model_calls(experiment.retriever, dataset.corpus, queries)),
            )  # fmt: skip


def _load(text: str | None, record: RaceRecord) -> RaceRecord | None:
    """Return the record of an earlier execution of the same race; None if it is another race."""
    try:
        earlier = parse_race(text or "")
    except ValueError:
        return None
    return earlier if replace(earlier, dropped=(), exempt=()) == record else None
