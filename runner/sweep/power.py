"""Plans what the queries of each dataset can show, from earlier results or from a typical spread of scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from runner.datasets.dataset import Dataset
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.result import Result
from runner.statistics.clusters import number_clusters
from runner.statistics.corrections import CORRECTIONS
from runner.statistics.effects import detectable_difference
from runner.statistics.significance import compute_differences, moments
from runner.statistics.typical_spread import assume_spread
from runner.sweep.work import PlannedPower


def plan_power(
    experiments: Iterable[Experiment], bench: Bench, earlier: Sequence[Result] = (), trials: int = 0
) -> Iterator[PlannedPower]:
    """Yield the power of a leaderboard of these combinations, for each dataset on which at least two queries count.

    `trials` is the number of combinations of a search, of which the experiments are examples.
    """
    groups: dict[str, list[Experiment]] = {}
    for experiment in experiments:
        groups.setdefault(bench.dataset(experiment).fingerprint, []).append(experiment)
    for fingerprint, group in groups.items():
        on_dataset = [result for result in earlier if result.dataset.fingerprint == fingerprint]
        power = _plan_dataset(bench.dataset(group[0]), group[0], trials or len(group), on_dataset)
        if power.units > 1:
            yield power


def _plan_dataset(dataset: Dataset, first: Experiment, systems: int, earlier: Sequence[Result]) -> PlannedPower:
    measure, statistics = first.metrics.primary_measure, first.statistics
    counted = dataset.judgments.golds(len(dataset.queries)) > 0
    clusters = number_clusters(dataset.queries.clusters)
    units = int(np.count_nonzero(counted)) if clusters is None else len(np.unique(clusters[counted]))
    earlier = [result for result in earlier if str(measure) in result.measures]
    spread, results = _measure_spread(earlier, str(measure)), len(earlier)
    if spread is None:
        spread, results = assume_spread(measure.name).differences, 0
    pairs = systems * (systems - 1) // 2
    levels = [statistics.alpha, CORRECTIONS[statistics.correction].find_level(statistics.alpha, max(pairs, 1), 0)]
    single, corrected = detectable_difference(np.array([units] * 2), np.full(2, spread), np.array(levels)).tolist()
    unit = "queries" if clusters is None else "clusters of queries"
    name = f"{dataset.name} ({dataset.split})"
    return PlannedPower(name, str(measure), units, unit, pairs, results, spread, single, corrected)


def _measure_spread(earlier: Sequence[Result], measure: str) -> float | None:
    """Return the median deviation of the differences between results that differ; None without two of these."""
    if len(earlier) < 2:
        return None
    scores = np.stack([result.of(measure) for result in earlier])
    first, second = np.triu_indices(len(scores), 1)
    deviations = moments(compute_differences(scores[first], scores[second]), earlier[0].queries.cluster_numbers)[2]
    deviations = deviations[deviations > 0]
    return float(np.median(deviations)) if len(deviations) else None
