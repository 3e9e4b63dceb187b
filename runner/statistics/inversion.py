"""Compute intervals of mean differences that agree with the tests: the shifts that a test does not reject.

Differences are paired (m x queries), and NaN marks a query that does not count. An interval excludes 0 where the
p-value is below the level.
"""

from __future__ import annotations

import numpy as np

from retrievers.threads import map_threads
from runner.statistics.blas import single_threaded
from runner.statistics.clusters import Clusters, Units, by_cluster
from runner.statistics.significance import Floats, iter_resampled_means
from runner.statistics.signs import count_signs, most_extreme, sign_blocks

FEWEST_DIFFERENT = 4
"""The fewest queries (or clusters) with a difference for an interval: with fewer, it would cover too little.

`benchmarks.simulations.difference_coverage` measures how often intervals contain the mean of the population."""

_NUMBERS = 1 << 23
"""Limit on the means of subsets that a thread holds (64 MiB); each row has two for each permutation."""


def withhold_intervals(intervals: Floats, differences: Floats, clusters: Clusters | None = None) -> Floats:
    """Return intervals of mean differences (m x 2), NaN where fewer than `FEWEST_DIFFERENT` queries or clusters differ.

    If few of them differ, a sample says little about the size of the rare differences, and nothing if none differs.
    """
    differing = np.count_nonzero(np.abs(by_cluster(differences, clusters).sums) > 1e-12, axis=1)
    return np.where((differing >= FEWEST_DIFFERENT)[:, None], intervals, np.nan)


def invert_t_test(
    differences: Floats, level: float, clusters: Clusters | None = None, weights: Floats | None = None
) -> Floats:
    """Return the intervals of mean differences by Student's t (m x 2); NaN below two queries (or clusters)."""
    from scipy.special import stdtrit

    units = by_cluster(differences, clusters, weights)
    half = stdtrit(np.maximum(units.independent - 1, 1), 1 - level / 2) * units.errors
    return np.stack([units.means - half, units.means + half], axis=1)


def invert_bootstrap_test(
    differences: Floats,
    level: float,
    resamples: int = 10000,
    seed: int = 0,
    clusters: Clusters | None = None,
    weights: Floats | None = None,
) -> Floats:
    """Return the intervals of mean differences by the basic bootstrap (m x 2).

    Each is the mean plus and minus the distance that the means of resamples rarely exceed.
    """
    most = int(np.ceil(level * (resamples + 1) - 1e-9)) - 2
    if most < 0:
        return np.full((len(differences), 2), np.nan)
    means = by_cluster(differences, clusters, weights).means
    centred = by_cluster(differences - means[:, None], clusters, weights)
    distances = np.abs(np.concatenate([block for _, block in iter_resampled_means(centred, resamples, seed)], axis=1))
    half = np.partition(distances, -most - 1, axis=1)[:, -most - 1]
    half += 1e-12 * (np.abs(centred.sums).sum(axis=1) + np.abs(means))  # the tolerance of the test for ties
    half = np.where(centred.independent > 1, half, np.nan)
    return np.stack([means - half, means + half], axis=1)


def invert_permutation_test(
    differences: Floats,
    level: float,
    permutations: int = 10000,
    seed: int = 0,
    clusters: Clusters | None = None,
    weights: Floats | None = None,
) -> Floats:
    """Return the intervals of mean differences that sign flips do not reject (m x 2).

    NaN for an unbounded interval, as with too few queries.
    """
    units = by_cluster(differences, clusters, weights)
    rows = max(_NUMBERS // (2 * permutations), 1)
    parts = [slice(start, start + rows) for start in range(0, len(differences), rows)]
    with single_threaded():
        bounds = map_threads(
            lambda part: _by_signs(Units(units.sums[part], units.counts[part]), level, permutations, seed), parts
        )
        return np.concatenate([np.empty((0, 2)), *bounds])


def _by_signs(units: Units, level: float, permutations: int, seed: int) -> Floats:
    """Return the intervals that sign flips do not reject.

    For differences less a shift below their mean, a flip is as extreme as no flip where the mean of the differences
    that it flips, or of those that it leaves, is at most the shift. The bounds are therefore order statistics of the
    means of subsets (Hartigan 1969, "Using subsample values as typical values").
    """
    m, n = units.sums.shape
    most = most_extreme(level, n, permutations)
    if most < 0 or not n:
        return np.full((m, 2), np.nan)
    counts = units.counts[:1] if (units.counts == units.counts[:1]).all() else units.counts  # usually the same
    totals, queries = units.sums.sum(axis=1)[:, None], counts.sum(axis=1)[:, None]
    width = 2 * count_signs(n, permutations)
    means, start = np.full((m, width), np.inf), 0
    for signs in sign_blocks(n, permutations, seed):
        flipped = (1 - signs.T) / 2
        part, size = units.sums @ flipped, counts @ flipped
        for sums, of in ((part, size), (totals - part, queries - size)):
            np.divide(sums, of, out=means[:, start : start + len(signs)], where=of > 1e-9)
            start += len(signs)
    empty = np.isinf(means).sum(axis=1)  # as extreme for any shift
    low, high = np.maximum(most - empty, 0), width - 1 - most
    bounds = np.full((m, 2), np.nan)
    for place in np.unique(low):  # numpy selects one place several times as fast as two
        means.partition(place, axis=1)
        bounds[low == place, 0] = means[low == place, place]
    means.partition(high, axis=1)
    bounds[:, 1] = means[:, high]
    slack = 1e-12 * np.abs(units.sums).sum(axis=1)[:, None]  # the tolerance of the test for ties
    return np.where((empty <= most)[:, None], bounds + slack * [-1, 1], np.nan)
