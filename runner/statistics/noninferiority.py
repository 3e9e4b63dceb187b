"""Bound how large a loss paired differences (m x queries) could hide, and how many queries it takes to exclude one.

NaN marks a query that does not count; with clusters, clusters take the place of queries. The interval of a difference
is too optimistic where few queries differ: a sample in which a rare loss did not occur, or occurred less often than it
should, looks certain. The bounds therefore add two queries to the sample, one that gained and one that lost, each by
the size that a difference of these systems typically has (Bonett & Price 2012, for proportions).
"""

from __future__ import annotations

import numpy as np

from runner.statistics.clusters import Clusters, by_cluster
from runner.statistics.effects import queries_needed
from runner.statistics.inversion import FEWEST_DIFFERENT
from runner.statistics.significance import Floats, moments

ADDED = 2
"""The number of queries that are added to a sample."""


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
    from scipy.special import stdtrit

    n, means, deviations = moments(differences, clusters, weights)
    total, typical = n + ADDED, _measure_typical(differences, ranges, clusters, weights)
    errors = np.sqrt(n * deviations**2 + ADDED * typical**2) / total
    low = means * n / total + stdtrit(np.maximum(total - 1, 1), level / 2) * errors
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

    They are infinite where the mean loss is not within its margin.
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
    return needed


def _measure_typical(differences: Floats, ranges: Floats, clusters: Clusters | None, weights: Floats | None) -> Floats:
    """Return the root mean square of the differences that are not 0 (m,); the range of the measure if few differ."""
    units = by_cluster(differences, clusters, weights)
    counts = units.counts.sum(axis=1)
    values = units.sums * np.divide(units.independent, counts, out=np.zeros(len(counts)), where=counts > 0)[:, None]
    differing = np.count_nonzero(np.abs(values) > 1e-12, axis=1)
    root = np.sqrt((values**2).sum(axis=1) / np.maximum(differing, 1))
    return np.where(differing < FEWEST_DIFFERENT, ranges, root)
