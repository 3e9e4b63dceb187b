"""Races the combinations of a grid: they are searched block by block, and those that are surely not the best dropped.

The rankings of a block go through the store, so a race that is started again repeats its decisions without searching
again. The joined rankings of survivors are stored as those of one search, which their evaluation finds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Rankings
from retrievers.blocks import Block, join_blocks
from retrievers.index_facts import remember_facts
from retrievers.model_calls import iter_model_calls
from retrievers.search import is_live, resolve_search_depth, search_block, search_cached
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


class Racer:
    """A combination in a race: the rankings of the blocks that it has searched, or its finished result."""

    def __init__(self, experiment: Experiment, bench: Bench, finished: Result | None) -> None:
        self.experiment, self._bench, self._finished = experiment, bench, finished
        self._dataset = bench.dataset(experiment)
        self._depth = resolve_search_depth(
            experiment.retriever, self._dataset.corpus, experiment.metrics.depth + rows_to_exclude(self._dataset)
        )
        self._blocks: list[Block] = []

    def score(self, rows: NDArray[np.intp]) -> Floats | None:
        """Return the primary measure on some queries; None if a search failed, as its evaluation will report."""
        if self._finished is not None:
            values = self._finished.of(self._finished.primary)[rows]
            return None if np.isnan(values).any() else values
        try:
            self._search(rows)
        except Exception:  # the evaluation of the combination reports the error
            return None
        _, rankings = self._blocks[-1]
        if rankings.errors or not rankings.settled:
            return None
        grader, _ = self._bench.datasets.build_grader(self.experiment)
        ranked = exclude_own(self._dataset, self._join(self._blocks[-1:]), self.experiment.metrics.depth)
        measured: Floats = grader.score(ranked, [self.experiment.metrics.primary_measure]).values[0][rows]
        return measured

    def complete(self) -> None:
        """Search the remaining queries and store all rankings, where the evaluation of the combination finds them."""
        if self._finished is not None:
            return
        done = np.concatenate([rows for rows, _ in self._blocks]) if self._blocks else np.zeros(0, dtype=np.intp)
        rest = np.setdiff1d(np.arange(len(self._dataset.queries)), done)
        if len(rest):
            self._search(rest)
        search_cached(
            self.experiment.retriever, self._dataset.corpus, self._dataset.queries.inputs, self._depth,
            self._bench.store, lambda: self._join(self._blocks),
        )  # fmt: skip

    def count_calls(self, rows: NDArray[np.intp]) -> int:
        """Return the largest number of calls of language models that a search for some queries makes."""
        inputs = self._dataset.queries.inputs
        queries = [inputs[row] for row in rows.tolist()]
        return sum(c.calls for c in iter_model_calls(self.experiment.retriever, self._dataset.corpus, queries))

    def _search(self, rows: NDArray[np.intp]) -> None:
        inputs = self._dataset.queries.inputs
        queries = [inputs[row] for row in rows.tolist()]
        with remember_facts():
            rankings = search_block(
                self.experiment.retriever, self._dataset.corpus, queries, self._depth, self._bench.store
            )
        self._blocks.append((rows, rankings))

    def _join(self, blocks: Sequence[Block]) -> Rankings:
        return join_blocks(blocks, len(self._dataset.queries), self._depth, len(self._dataset.corpus))


def hold_race(
    experiments: Mapping[str, Experiment],
    finished: Mapping[str, Result],
    bench: Bench,
    settings: SweepSettings,
    earlier: str | None = None,
) -> RaceRecord:
    """Race combinations, by identity, and return the course; survivors have then searched all queries.

    The values of `finished` combinations are known, so these are never dropped. `earlier` is the record of an earlier
    execution, which is returned if the race is the same and all survivors are finished.
    """
    identities, first = list(experiments), next(iter(experiments.values()))
    grader, _ = bench.datasets.build_grader(first)
    block, measure, queries = settings.race_block, str(first.metrics.primary_measure), int((grader.golds > 0).sum())
    record = RaceRecord(measure, first.metrics.alpha, settings.race_margin, block, settings.seed, queries, identities)
    if (known := _load(earlier, record)) and {*identities} == {*finished, *(d.combination for d in known.dropped)}:
        return known
    racers = [Racer(experiments[one], bench, finished.get(one)) for one in identities]
    race = Race(len(racers), queries, record.alpha, record.margin)
    order = np.random.default_rng(settings.seed).permutation(np.flatnonzero(grader.golds > 0))
    failed: set[int] = set()
    with Status("race") as status:
        for start in range(0, queries, block):
            if len(race.racing) < 2:
                break
            status.note(f"{start:,} of {queries:,} queries, {len(race.survivors):,} combinations left")
            rows = order[start : start + block]
            values = {one: racers[one].score(rows) for one in race.racing.tolist()}
            for one in (one for one, own in values.items() if own is None):
                race.exempt(one)
                failed.add(one)
            if len(race.racing):
                race.observe(np.stack([own for own in values.values() if own is not None]))
        dropped = list(_describe_drops(race, racers, identities, order, finished))
        gone = {one.combination for one in dropped}
        for number, (identity, racer) in enumerate(zip(identities, racers, strict=True)):
            if identity not in gone and number not in failed:
                status.note(f"searching the remaining queries of {racer.experiment.name}")
                _complete(racer)
    exempt = [racers[number].experiment.name for number in sorted(failed)]
    return replace(record, dropped=dropped, exempt=exempt)


def _describe_drops(
    race: Race, racers: Sequence[Racer], identities: Sequence[str], order: NDArray[np.intp], finished: Collection[str]
) -> Iterator[DroppedCombination]:
    for drop in race.drops:
        identity, experiment = identities[drop.configuration], racers[drop.configuration].experiment
        if identity not in finished:
            yield DroppedCombination(
                identity, experiment.name, dict(experiment.swept), drop.queries, racers[drop.leader].experiment.name,
                drop.p, drop.mean, drop.leader_mean, racers[drop.configuration].count_calls(order[drop.queries :]),
            )  # fmt: skip


def _complete(racer: Racer) -> None:
    with suppress(Exception):  # the evaluation of the combination reports the error
        racer.complete()


def _load(text: str | None, record: RaceRecord) -> RaceRecord | None:
    """Return the record of an earlier execution of the same race; None if it is another race."""
    try:
        earlier = parse_race(text or "")
    except ValueError:
        return None
    return earlier if replace(earlier, dropped=(), exempt=()) == record else None
