"""Races combinations: they are searched block by block, and those that are surely not the best are dropped.

The combinations of a grid race together, and a trial of a search races against the best combination so far. Workers
search the blocks, and the process of the sweep decides between two blocks. The rankings of a block go through the
store, so a race that is started again repeats its decisions without searching again, and the evaluation of a survivor
searches only the remaining queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrievers.capabilities import is_live
from retrievers.llm.model_calls import iter_model_calls
from runner.comparison.race import DroppedCombination, RaceRecord, parse_race
from runner.config.objects import ConfigError
from runner.evaluation.bench import Bench
from runner.evaluation.blocks import score_block
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.metrics.formulas import FORMULAS
from runner.pages.progress import Status
from runner.statistics.racing import NOISE, Drop, Race, estimate_saving
from runner.sweep.settings import SweepSettings

Floats = NDArray[np.float64]

SPREADS = 0.001, 0.03
"""The standard deviations of the means of combinations for which the saving is estimated: nearly equal, and unequal."""

ORDERS = 0x72616365
"""Sets the orders of queries apart from other random numbers with the same seed."""


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
            "sweep.race: whether a query has gold depends on the search type, so the means are over different queries; "
            "run a sweep for each search type"
        )


def describe_saving(experiments: Mapping[str, Experiment], bench: Bench, settings: SweepSettings) -> str:
    """Return how much a race is expected to save, with the assumption behind the estimate."""
    first = next(iter(experiments.values()))
    queries, alpha, margin = len(list_rows(first, bench)), first.statistics.alpha, settings.race_margin
    close, apart = (
        estimate_saving(spread, len(experiments), queries, settings.race_block, alpha, margin) for spread in SPREADS
    )
    return (
        f"race: saves about {apart:.0%} of the searches, and of the calls that each search makes, if the means of "
        f"combinations have a standard deviation of {SPREADS[1]:g}, and {close:.0%} if they have one of {SPREADS[0]:g} "
        f"(simulated, with a standard deviation of {NOISE:g} of the values of a query; the other figures are those "
        "without a race)"
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
    """Search a block and return the primary measure of its queries; None if a query failed."""
    scored = score_block(block.experiment, block.rows, bench, [block.experiment.metrics.primary_measure])
    return None if scored.errors or not scored.settled else scored.values[0]


Measure = Callable[[Mapping[str, RaceBlock]], Mapping[str, Floats | None]]
"""Returns the values of each combination on its block, by identity; None if its search failed."""


def list_rows(experiment: Experiment, bench: Bench) -> NDArray[np.intp]:
    """Return the positions of the queries with gold, on which combinations race."""
    grader, *_ = bench.datasets.build_grader(experiment)
    return np.flatnonzero(grader.golds > 0)


def start_record(experiments: Mapping[str, Experiment], bench: Bench, settings: SweepSettings) -> RaceRecord:
    """Return the record of a race that has dropped nothing yet."""
    first = next(iter(experiments.values()))
    return RaceRecord(
        str(first.metrics.primary_measure), first.statistics.alpha, settings.race_margin, settings.race_block,
        settings.seed, len(list_rows(first, bench)), list(experiments),
    )  # fmt: skip


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
    identities, block = list(experiments), settings.race_block
    record = start_record(experiments, bench, settings)
    if (known := _load(earlier, record)) and {*identities} == {*finished, *(d.combination for d in known.dropped)}:
        return known, {one: experiments[one] for one in finished}
    queries, race = record.queries, Race(len(identities), record.queries, record.alpha, record.margin)
    order = np.random.default_rng(settings.seed).permutation(list_rows(experiments[identities[0]], bench))
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
    dropped = [
        _describe_drop(drop, one, experiments[one], experiments[identities[drop.leader]].name, bench, order)
        for drop in race.drops
        if (one := identities[drop.configuration]) not in finished
    ]
    gone = {one.combination for one in dropped}
    survivors = {c: replace(e, blocks=searched.get(c, ())) for c, e in experiments.items() if c not in gone}
    return replace(record, dropped=dropped, exempt=exempt), survivors


def _select(finished: Result, rows: NDArray[np.intp]) -> Floats | None:
    """Return the values of a finished combination on some queries; None if one is missing."""
    values = finished.of(finished.primary)[rows]
    return None if np.isnan(values).any() else values


@dataclass(frozen=True)
class Challenge:
    """A trial of a search that races against the best combination so far, at an error rate of `alpha`.

    `number` is that of the trial; it determines the order of the queries.
    """

    experiment: Experiment
    alpha: float
    number: int


def race_trials(
    challenges: Mapping[str, Challenge], best: Result, bench: Bench, settings: SweepSettings, measure: Measure
) -> tuple[RaceRecord, dict[str, Experiment]]:
    """Race trials, each against the best result so far; return the course, and the others with their blocks.

    The order of the queries is drawn for each trial: the sampler has seen outcomes that depend on earlier orders.
    """
    record = start_record({one: challenge.experiment for one, challenge in challenges.items()}, bench, settings)
    rows = list_rows(next(iter(challenges.values())).experiment, bench)
    if _select(best, rows) is None:
        return record, {one: challenge.experiment for one, challenge in challenges.items()}
    races = {one: Race(2, len(rows), challenge.alpha, settings.race_margin) for one, challenge in challenges.items()}
    orders = {
        one: np.random.default_rng([settings.seed, challenge.number, ORDERS]).permutation(rows)
        for one, challenge in challenges.items()
    }
    searched: dict[str, list[Sequence[int]]] = {one: [] for one in challenges}
    running = set(challenges)
    for start in range(0, len(rows), settings.race_block):
        blocks = {
            one: RaceBlock(challenge.experiment, orders[one][start : start + settings.race_block].tolist())
            for one, challenge in challenges.items()
            if one in running
        }
        for one, values in (measure(blocks) if blocks else {}).items():
            searched[one].append(blocks[one].rows)
            known = best.of(best.primary)[list(blocks[one].rows)]
            if values is None or races[one].observe(np.stack([values, known])):
                running.remove(one)
    dropped = [
        _describe_drop(drop, one, challenges[one].experiment, best.name, bench, orders[one])
        for one, race in races.items()
        for drop in race.drops
        if drop.configuration == 0
    ]
    gone = {one.combination for one in dropped}
    others = {c: replace(one.experiment, blocks=searched[c]) for c, one in challenges.items() if c not in gone}
    return replace(record, dropped=dropped), others


def _describe_drop(
    drop: Drop, identity: str, experiment: Experiment, leader: str, bench: Bench, order: NDArray[np.intp]
) -> DroppedCombination:
    dataset = bench.dataset(experiment)
    rest = [dataset.queries.inputs[row] for row in order[drop.queries :].tolist()]
    return DroppedCombination(
        identity, experiment.name, dict(experiment.swept), drop.queries, leader, drop.p, drop.mean, drop.leader_mean,
        sum(calls.calls for calls in iter_model_calls(experiment.retriever, dataset.corpus, rest)),
    )  # fmt: skip


def _load(text: str | None, record: RaceRecord) -> RaceRecord | None:
    """Return the record of an earlier execution of the same race; None if it is another race."""
    try:
        earlier = parse_race(text or "")
    except ValueError:
        return None
    return earlier if replace(earlier, dropped=(), exempt=()) == record else None
