"""Bound how large a loss paired differences (m x queries) could hide, and how many queries it takes to exclude one.

NaN marks a query that does not count; with clusters, clusters take the place of queries. The interval of a difference
is too optimistic where few queries differ: a sample in which a rare loss did not occur, or occurred less often than it
should, looks certain. The bounds therefore add two queries to the sample, one that gained and one that lost, each by
the size that a difference of these systems typically has (Bonett & Price 2012, for proportions).
"""

from __future__ import annotations

import math

import numpy as np

from runner.statistics.clusters import Clusters, by_cluster
from runner.statistics.effects import queries_needed
from runner.statistics.inversion import FEWEST_DIFFERENT
from runner.statistics.significance import Floats, moments

ADDED = 2
"""The number of queries that are added to a sample."""

MOST_RESAMPLED = 2000
"""The largest number of queries needed that is found by samples."""

SAMPLES, FACTOR, PRECISION, BEYOND, POWER = 600, 4.0, 1.03, 12, 0.8
"""How many samples tell whether a size is enough, in which steps such a size is sought and then narrowed down, how many
steps beyond it must be enough, too, and the power that is wanted."""


def bound_losses(
    differences: Floats,
    intervals: Floats,
    level: float,
    ranges: Floats,
    clusters: Clusters | None = None,
    weights: Floats | None = None,
) -> Floats:
    """Return the largest mean losses that the data do not exclude (m,), from 0 to the ranges of the measures.

    `intervals` are those of a test at `level`, NaN if unbounded; a bound is never below the lower end of one.
    """
    low = _bound_means(differences, level, ranges, clusters, weights)
    low = np.where(np.isnan(intervals[:, 0]), np.nan, np.minimum(low, intervals[:, 0]))
    bounds: Floats = np.clip(np.where(np.isnan(low), ranges, -low), 0, ranges)
    return bounds


def queries_to_exclude(
    differences: Floats,
    margins: Floats,
    level: float,
    ranges: Floats,
    clusters: Clusters | None = None,
    weights: Floats | None = None,
) -> Floats:
    """Return how many queries it takes to exclude losses beyond the margins with a power of 0.8 (m,).

    They are infinite where the mean loss is not within its margin. Numbers up to `MOST_RESAMPLED` are found by samples
    of the differences with replacement: if few of these are not 0, their mean is far from normal. With clusters or
    weights, and above that number, they follow from the normal approximation.
    """
    _, means, deviations = moments(differences, clusters, weights)
    typical = _measure_typical(differences, ranges, clusters, weights)
    room = np.where(np.isfinite(typical), np.maximum(means + margins, 0.0), 0.0)
    needed = queries_needed(room, deviations, level)
    for _ in range(3):  # the more queries there are, the less the added ones count
        added = np.divide(
            ADDED * typical**2, needed, out=np.zeros(len(needed)), where=np.isfinite(needed) & np.isfinite(typical)
        )
        needed = queries_needed(room, np.sqrt(deviations**2 + added), level)
    if clusters is None and weights is None:
        for i in np.flatnonzero(needed <= MOST_RESAMPLED).tolist():
            own = differences[i][~np.isnan(differences[i])]
            needed[i] = _find_needed(own, float(margins[i]), level, float(ranges[i]), float(needed[i]))
    return needed


def _find_needed(differences: Floats, margin: float, level: float, span: float, guess: float) -> float:
    """Return the size from which on 80 % of the samples of differences exclude a loss beyond the margin.

    With scores that differ in few queries, power does not grow with each query: it falls where one more different
    query fits into a sample, so a size that is enough is followed by some that are not.
    """
    ranges = np.full(SAMPLES, span)

    def is_enough(size: float) -> bool:
        whole = math.ceil(size)
        samples = np.random.default_rng(whole).choice(differences, (SAMPLES, whole))
        return bool(np.mean(_bound_means(samples, level, ranges) >= -margin) >= POWER)

    low, high = 2.0, max(guess, 2.0)
    while not is_enough(high) and high < MOST_RESAMPLED * FACTOR:
        low, high = high, high * FACTOR
    while high / low > PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    beyond = [high * PRECISION**step for step in range(BEYOND)]
    last = max((i for i, size in enumerate(beyond) if not is_enough(size)), default=-1)
    return math.ceil(high * PRECISION ** (last + 1))


def _bound_means(
    differences: Floats,
    level: float,
    ranges: Floats,
    clusters: Clusters | None = None,
    weights: Floats | None = None,
) -> Floats:
    """Return the lower ends of the intervals of the means with the added queries (m,)."""
    from scipy.special import stdtrit

    n, means, deviations = moments(differences, clusters, weights)
    total, typical = n + ADDED, _measure_typical(differences, ranges, clusters, weights)
    errors = np.sqrt(n * deviations**2 + ADDED * typical**2) / total
    low: Floats = means * n / total + stdtrit(np.maximum(total - 1, 1), level / 2) * errors
    return low


def _measure_typical(differences: Floats, ranges: Floats, clusters: Clusters | None, weights: Floats | None) -> Floats:
    """Return the root mean square of the differences that are not 0 (m,); the range of the measure if few differ."""
    units = by_cluster(differences, clusters, weights)
    counts = units.counts.sum(axis=1)
    values = units.sums * np.divide(units.independent, counts, out=np.zeros(len(counts)), where=counts > 0)[:, None]
    differing = np.count_nonzero(np.abs(values) > 1e-12, axis=1)
    root = np.sqrt((values**2).sum(axis=1) / np.maximum(differing, 1))
    return np.where(differing < FEWEST_DIFFERENT, ranges, root)
