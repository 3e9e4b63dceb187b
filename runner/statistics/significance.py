"""Compute confidence intervals of means, and test whether differences between systems are significant.

Systems are rows, queries are columns, and NaN marks a query that does not count for a system. Every system sees the
same resamples, drawn from a seed. A test takes paired differences (m x queries) and returns two-sided p-values (m,): 1
where nothing differs, and where fewer than two queries count.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from retrievers.threads import map_threads
from runner.statistics.blas import single_threaded
from runner.statistics.clusters import Clusters, Units, by_cluster
from runner.statistics.signs import EXACT_UNITS, blocks, shares, sign_blocks

Floats = NDArray[np.float64]

_ROWS = 512
"""The number of rows of differences that a thread tests at a time."""

SMALL_SAMPLE = 30
"""With fewer queries (or clusters), the interval of a mean may contain the true mean less often than it claims."""


def compute_differences(scores: Floats, others: Floats) -> Floats:
    """Return the differences of scores, query by query; scores that are equal to 12 decimals are equal.

    Arithmetic leaves noise beyond 12 decimals, which a test by ranks would count as differences.
    """
    return np.round(scores - others, 12)


def moments(
    values: Floats, clusters: Clusters | None = None, weights: Floats | None = None
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return how many units count for each system (m x queries), the means, and the deviations of units (m, each).

    A unit is a query, or a cluster of queries; a deviation is the standard error times the root of the number of units.
    The mean, which is over queries, is NaN without queries; the deviation (that of a sample) is NaN below two units.
    """
    units = by_cluster(values, clusters, weights)
    counts = units.independent
    deviations = units.errors * np.sqrt(counts)
    return counts, units.means, np.where(deviations < 1e-12, 0, deviations)  # rounding errors of a zero deviation


def mean_interval(
    values: Floats, confidence: float = 0.95, clusters: Clusters | None = None, weights: Floats | None = None
) -> Floats:
    """Return Student's interval of the mean over queries, clipped to [0, 1] if all values are in it.

    `values` are one system (queries,) or several (m x queries); the result is (2,) or (m x 2), NaN without queries.
    With weights (m x queries), a query counts as that many.
    Equal values have no spread to estimate: their interval contains the means from 0 to 1 with which a sample of such
    values is not too improbable. For hits and misses, this is the interval of Clopper & Pearson (1934).
    """
    from scipy.special import stdtrit

    rows = np.atleast_2d(values)
    n, means, deviations = moments(rows, clusters, weights)
    tail = (1 - confidence) / 2
    half = stdtrit(np.maximum(n - 1, 1), 1 - tail) * deviations / np.sqrt(np.maximum(n, 1))
    bounds = np.stack([means - half, means + half], axis=1)
    bounded = ~((rows < 0) | (rows > 1)).any(axis=1)
    equal = bounded & (n > 0) & ~(deviations > 0)
    least = tail ** (1 / n[equal])  # with a smaller share of this value, a sample rarely has no other
    bounds[equal] = np.stack([means[equal] * least, means[equal] * least + 1 - least], axis=1)
    bounds[bounded] = np.clip(bounds[bounded], 0, 1)
    return bounds.reshape(*values.shape[:-1], 2)


def cluster_means(differences: Floats, clusters: Clusters | None, weights: Floats | None = None) -> Floats:
    """Return the mean of each cluster (m x clusters), NaN if none of its queries counts."""
    if clusters is None:
        return differences
    units = by_cluster(differences, clusters, weights)
    means: Floats = np.divide(units.sums, units.counts, out=np.full(units.sums.shape, np.nan), where=units.counts > 0)
    return means


def permutation_test(
    differences: Floats,
    resamples: int = 10000,
    seed: int = 0,
    clusters: Clusters | None = None,
    weights: Floats | None = None,
) -> Floats:
    """Return the p-values of paired differences (m x queries) under random sign flips (m,).

    Exact for few queries. Otherwise, the observed signs count as one more resample (Phipson & Smyth 2010), so that the
    p-value is never 0. The statistic is the mean; a query without a difference has no influence. The signs of the
    queries of a cluster are flipped together. Differences so clear that the exact p-value must be below the smallest
    that the resamples can show get that smallest p-value without being resampled.
    """
    sums = by_cluster(differences, clusters, weights).sums
    units = sums.shape[1]
    extreme = np.zeros(len(sums), dtype=np.int64)
    unclear = np.flatnonzero((bound_p_values(sums) > shares(extreme, units, resamples)) | (units <= EXACT_UNITS))
    parts = [unclear[start : start + _ROWS] for start in range(0, len(unclear), _ROWS)]
    with single_threaded():
        counts = map_threads(lambda part: _count_extreme(sums[part], resamples, seed), parts)
        extreme[unclear] = np.concatenate([np.empty(0, dtype=np.int64), *counts])
    return shares(extreme, units, resamples)


def _count_extreme(sums: Floats, resamples: int, seed: int) -> NDArray[np.int64]:
    """Return with how many assignments of signs to units the sum of a row is as extreme as observed (m,)."""
    least = np.abs(sums.sum(axis=1)) - 1e-12 * np.abs(sums).sum(axis=1)
    extreme = np.zeros(len(sums), dtype=np.int64)
    for signs in sign_blocks(sums.shape[1], resamples, seed):
        extreme += np.count_nonzero(np.abs(signs @ sums.T) >= least, axis=0)
    return extreme


def bound_p_values(sums: Floats) -> Floats:
    """Return upper bounds on the exact p-values of sign flips of sums of units (m,), by Hoeffding (1963), theorem 2."""
    squares = (sums**2).sum(axis=1)
    standardised = np.divide(sums.sum(axis=1) ** 2, squares, out=np.zeros(len(sums)), where=squares > 0)
    bounds: Floats = 2 * np.exp(-standardised / 2)
    return bounds


def bootstrap_test(
    differences: Floats,
    resamples: int = 10000,
    seed: int = 0,
    clusters: Clusters | None = None,
    weights: Floats | None = None,
) -> Floats:
    """Return the p-values of paired differences (m x queries) by the shifted bootstrap (m,).

    This is how often the mean of a resample is as far from the observed mean as that is from 0 (Noreen 1989; Smucker,
    Allan & Carterette 2007), counting the observed mean as one more resample.
    """
    means = by_cluster(differences, clusters, weights).means
    centred = differences - means[:, None]
    least = np.abs(means) - 1e-12 * np.nansum(np.abs(differences), axis=1)
    extreme = np.zeros(len(differences), dtype=np.int64)
    units = by_cluster(centred, clusters, weights)
    for _, block in iter_resampled_means(units, resamples, seed):
        extreme += np.count_nonzero(np.abs(block) >= least[:, None], axis=1)
    return np.where(units.independent > 1, (extreme + 1) / (resamples + 1), 1.0)


def t_test(differences: Floats, clusters: Clusters | None = None, weights: Floats | None = None) -> Floats:
    """Return the p-values of paired differences (m x queries) by Student's t (1908) (m,).

    With clusters, the standard error and the degrees of freedom are those of clusters.
    """
    from scipy.special import stdtr

    n, means, deviations = moments(differences, clusters, weights)
    differing = (n > 1) & ((means != 0) | (deviations != 0))
    p_values = np.ones(len(differences))
    with np.errstate(divide="ignore"):  # all queries differ by the same: t is infinite, p is 0
        t = means[differing] / (deviations[differing] / np.sqrt(n[differing]))
    p_values[differing] = 2 * stdtr(n[differing] - 1, -np.abs(t))
    return p_values


def iter_resampled_means(units: Units, resamples: int, seed: int) -> Iterator[tuple[int, Floats]]:
    """Yield blocks of resampled means of queries or clusters: where the block starts, and the means (m x block).

    For a resample in which no query counts for a system, the mean is that of all queries.
    """
    n, means = units.sums.shape[1], units.means
    same = bool((units.counts == 1).all())
    for start, size in blocks(resamples, n):
        times = times_drawn(n, size, seed, start).astype(np.float64)
        with single_threaded():
            sums, counts = units.sums @ times, np.float64(n) if same else units.counts @ times
        block = np.repeat(means[:, None], size, axis=1)
        np.divide(sums, counts, out=block, where=counts > 0)
        yield start, block


@lru_cache(maxsize=16)  # at most a megabyte each; a sweep asks for the same ones repeatedly
def times_drawn(n: int, resamples: int, seed: int, start: int) -> NDArray[np.uint8]:
    """Return how often each of n queries occurs in each resample of a block (n x resamples).

    A count beyond 255 takes that many draws of one query among more than 255, which has a chance of 1 in 256!.
    """
    drawn = np.random.default_rng([seed, start]).integers(0, max(n, 1), size=(n, resamples))
    cells = (drawn * resamples + np.arange(resamples)).ravel()
    return np.bincount(cells, minlength=n * resamples).reshape(n, resamples).astype(np.uint8)
