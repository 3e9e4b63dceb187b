"""Compute intervals of mean differences that agree with the tests: the shifts that a test does not reject.

Differences are paired (m x queries), and NaN marks a query that does not count. An interval excludes 0 where the
p-value is below the level.
"""

from __future__ import annotations

import numpy as np

from runner.analysis.clusters import Clusters, Units, by_cluster
from runner.analysis.significance import Floats, iter_resampled_means
from runner.analysis.signs import most_extreme, sign_blocks

_ROWS = 64
"""How many rows are inverted at a time; each row needs one number per permutation."""


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
    parts = [slice(start, start + _ROWS) for start in range(0, len(differences), _ROWS)]
    bounds = [_by_signs(Units(units.sums[part], units.counts[part]), level, permutations, seed) for part in parts]
    return np.concatenate([np.empty((0, 2)), *bounds])


def _by_signs(units: Units, level: float, permutations: int, seed: int) -> Floats:
    """Return the intervals that sign flips do not reject.

    For differences less a shift below their mean, a flip is as extreme as no flip where the mean of the differences
    that it flips, or of those that it leaves, is at most the shift. The bounds are therefore order statistics of the
    means of subsets (Hartigan 1969, "Using subsample values as typical values").
    """
    n = units.sums.shape[1]
    most = most_extreme(level, n, permutations)
    if most < 0 or not n:
        return np.full((len(units.sums), 2), np.nan)
    totals, queries = units.sums.sum(axis=1)[:, None], units.counts.sum(axis=1)[:, None]
    means = []
    for signs in sign_blocks(n, permutations, seed):
        flipped = (1 - signs.T) / 2
        sums, counts = units.sums @ flipped, units.counts @ flipped
        for part, size in ((sums, counts), (totals - sums, queries - counts)):
            means.append(np.divide(part, size, out=np.full(part.shape, np.nan), where=size > 1e-9))
    pooled = np.concatenate(means, axis=1)
    empty = np.isnan(pooled)  # as extreme for any shift
    low = np.partition(np.where(empty, -np.inf, pooled), most, axis=1)[:, most]
    high = -np.partition(np.where(empty, -np.inf, -pooled), most, axis=1)[:, most]
    slack = 1e-12 * np.abs(units.sums).sum(axis=1)  # the tolerance of the test for ties
    bounds = np.stack([low - slack, high + slack], axis=1)
    return np.where(np.isfinite(bounds).all(axis=1, keepdims=True), bounds, np.nan)
