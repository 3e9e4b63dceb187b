"""Compare systems across datasets, each of which has the same weight.

Scores are one array (systems x queries) per dataset, and NaN marks a query that does not count. Two questions differ:
what new queries of the same datasets would show, and what new datasets would show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.statistics.clusters import Clusters
from runner.statistics.comparison import Difference, Differences, compare_pairs, compare_to
from runner.statistics.corrections import CORRECTIONS
from runner.statistics.settings import CorrectionName, Statistics
from runner.statistics.significance import Floats, compute_differences, moments, t_test


@dataclass(frozen=True, eq=False)
class AcrossDatasets:
    """Differences of m systems to a reference, averaged over datasets.

    `same` tests new queries of the same datasets. `by_dataset` (m x datasets) are the mean differences on each dataset.
    `intervals` (m x 2) and `p_values` (m,) are about new datasets: the interval is that of a single comparison, and
    p-values are corrected for the family of tests. Both are NaN with a single dataset.
    """

    same: Differences
    by_dataset: Floats
    intervals: Floats
    p_values: Floats

    def describe_new(self, row: int) -> Difference:
        """Return the difference of a system on new datasets; wins, ties and losses count datasets."""
        on_each = self.by_dataset[row]
        return Difference(
            mean=float(on_each.mean()),
            low=float(self.intervals[row, 0]),
            high=float(self.intervals[row, 1]),
            corrected=float(self.p_values[row]),
            wins=int(np.count_nonzero(on_each > 0)),
            ties=int(np.count_nonzero(on_each == 0)),
            losses=int(np.count_nonzero(on_each < 0)),
        )


def compare_across(
    reference: int,
    scores: Sequence[Floats],
    statistics: Statistics = Statistics(),
    clusters: Sequence[Clusters | None] = (),
    *,
    named: bool = False,
    measures: int = 1,
) -> AcrossDatasets:
    """Compare systems with one of them across datasets (Demsar 2006 explains why scores must not be pooled).

    The test on the same datasets is that of `compare_pairs`, with queries weighted so that each dataset counts once:
    signs are flipped query by query within each dataset. The test on new datasets is Student's t over the datasets'
    mean differences, which is a mixed model with a random effect of the dataset and equal weights. If the reference was
    `named` before the scores were known, p-values on new datasets are corrected for the comparisons with it; otherwise
    for all pairs of systems. If the family has several `measures`, this one gets an equal share of the level, as in
    `compare_pairs`.
    """
    weighted, numbers = weight_datasets(scores, clusters)
    pairs = compare_pairs(weighted, statistics, numbers, measures=measures)
    times = measures if CORRECTIONS[statistics.correction].depends_on_family else 1
    means = np.stack([moments(_select_shared(part)[0])[1] for part in scores], axis=1)
    by_dataset = compute_differences(means, means[reference])
    return AcrossDatasets(
        compare_to(reference, weighted, pairs, numbers),
        by_dataset,
        compute_t_intervals(by_dataset, statistics.confidence),
        np.minimum(_test_new_datasets(means, reference, statistics.correction, named) * times, 1),
    )


def weight_datasets(
    scores: Sequence[Floats], clusters: Sequence[Clusters | None] = ()
) -> tuple[Floats, Clusters | None]:
    """Return the scores of all datasets side by side, weighted so that their mean is the mean over datasets.

    Only queries that count for every system are included. Clusters are numbered so that no two datasets share one.
    """
    columns, numbers, start = [], [], 0
    shared = [_select_shared(part) for part in scores]
    total = sum(part.shape[1] for part, _ in shared)
    for position, (part, counted) in enumerate(shared):
        n = part.shape[1]
        columns.append(part * (total / (len(scores) * max(n, 1))))
        own = clusters[position] if clusters else None
        own = np.arange(n) if own is None else np.unique(own[counted], return_inverse=True)[1]
        numbers.append(own + start)
        start += n
    has_clusters = any(own is not None for own in clusters)
    return np.concatenate(columns, axis=1), np.concatenate(numbers) if has_clusters else None


def compute_t_intervals(differences: Floats, confidence: float) -> Floats:
    """Return Student's intervals of mean differences (m x datasets), NaN below two datasets (m x 2)."""
    from scipy.special import stdtrit

    n, means, deviations = moments(differences)
    half = stdtrit(np.maximum(n - 1, 1), (1 + confidence) / 2) * deviations / np.sqrt(np.maximum(n, 1))
    return np.stack([means - half, means + half], axis=1)


def compute_mean_ranks(means: Floats) -> Floats:
    """Return the mean rank over datasets of systems (m x datasets), 1 for the largest; equal means share a rank."""
    better = (means[None] > means[:, None]).sum(axis=1)
    equal = (means[None] == means[:, None]).sum(axis=1)
    ranks: Floats = (better + (equal + 1) / 2).mean(axis=1)
    return ranks


def _test_new_datasets(means: Floats, reference: int, correction: CorrectionName, named: bool) -> Floats:
    """Return p-values of the comparisons with the reference (m,): 1 for itself, NaN with a single dataset."""
    m, datasets = means.shape
    p_values = np.where(np.arange(m) == reference, 1.0, np.nan)
    if datasets < 2 or m < 2:
        return p_values
    first, second = np.triu_indices(m, 1)
    if named:
        first, second = np.full(m - 1, reference), np.flatnonzero(np.arange(m) != reference)
    tested = t_test(compute_differences(means[first], means[second]))
    corrected = CORRECTIONS[correction].for_family().correct(tested)
    for one, other, p in zip(first.tolist(), second.tolist(), corrected.tolist(), strict=True):
        if reference in (one, other):
            p_values[one + other - reference] = p
    return p_values


def _select_shared(scores: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    counted: NDArray[np.bool_] = np.asarray(~np.isnan(scores).any(axis=0))
    return scores[:, counted], counted
