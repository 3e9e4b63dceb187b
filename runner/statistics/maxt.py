"""Test all pairs of systems at once by a step-down max-T permutation test.

Systems are rows, queries are columns, and NaN marks a query that does not count for a system. All pairs form one
family, so any pair may be examined, including one with a system that was chosen by the same scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.statistics.blas import single_threaded
from runner.statistics.clusters import Clusters, by_cluster
from runner.statistics.signs import most_extreme, shares, sign_blocks

Floats = NDArray[np.float64]
Column = NDArray[Any]

_MOST_STATISTICS = 50_000_000
"""Limit on the number of statistics: more than 100 systems get fewer than 10,000 permutations."""

_MOST_SUMS = 1 << 25
"""Limit on the permuted sums in memory (256 MiB)."""

_FEWEST_PERMUTATIONS = 2000
"""The fewest permutations, however many systems there are, unless fewer are requested."""

_EQUAL = 1 - 1e-9
"""A statistic that is smaller only by rounding counts as equal."""

_NO_DIFFERENCE = 5e-13
"""Scores that are equal to 12 decimals are equal."""

_CHUNK = 1 << 16
"""Limit on the differences to add up at once, so that they stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class MaxT:
    """Adjusted p-values of all pairs of m systems (m x m), 1 on the diagonal.

    `critical` bounds the statistics of the pairs whose p-value is not below the requested level, and of no other pair.
    It is infinite where there are too few queries for any p-value to be below that level. `floor` is added to each
    pair's sum of squares.
    """

    p_values: Floats
    critical: float
    floor: float
    clusters: Clusters | None = None

    def intervals(self, differences: Floats) -> Floats:
        """Return the intervals of mean differences (m x queries) by inversion of the test (m x 2).

        An interval contains each shift that, subtracted from the differences, leaves a statistic within the critical
        value. It therefore excludes 0 exactly where the test finds a difference. NaN for an unbounded interval, as with
        too few queries.
        """
        units = by_cluster(differences, self.clusters)
        total, queries = units.sums.sum(axis=1), units.counts.sum(axis=1)
        if not np.isfinite(self.critical):
            return np.full((len(differences), 2), np.nan)
        # (total - queries x)^2 <= critical^2 * (floor + sum((sums - counts x)^2)), a quadratic inequality in x.
        bound = self.critical**2
        a = queries**2 - bound * (units.counts**2).sum(axis=1)
        half_b = bound * (units.sums * units.counts).sum(axis=1) - total * queries
        c = total**2 - bound * (self.floor + (units.sums**2).sum(axis=1))
        roots = np.sqrt(np.maximum(half_b**2 - a * c, 0))
        low_high = np.stack([-half_b - roots, -half_b + roots], axis=1)
        bounds: Floats = np.divide(low_high, a[:, None], out=np.full(low_high.shape, np.nan), where=(a > 0)[:, None])
        return bounds

    def levels(self, differences: Floats) -> Floats:
        """Return the level of a single test with the same critical value, in the normal approximation (m,)."""
        from scipy.special import ndtr

        squares = (by_cluster(differences, self.clusters).sums ** 2).sum(axis=1)
        floor = np.divide(self.floor, squares, out=np.full(len(squares), np.inf), where=squares > 0)
        levels: Floats = 2 * ndtr(-self.critical * np.sqrt(1 + floor))
        return levels


def run_max_t(
    scores: Floats,
    permutations: int = 10000,
    seed: int = 0,
    *,
    level: float = 0.05,
    clusters: Clusters | None = None,
) -> MaxT:
    """Test all pairs of systems (m x queries), corrected for their number, by the step-down max-T procedure.

    The signs of all differences of a query (or of its cluster) are flipped together, which keeps the correlation
    between systems. A pair's statistic is its sum of differences divided by the root of the sum of their squares plus
    that of the median pair, a scale that no flip changes. Without the second term (Tusher, Tibshirani & Chu 2001),
    similar systems whose few differences happen to have one sign would have the largest statistics. The p-value of a
    pair is the share of permutations in which the largest statistic among all pairs that are no more extreme reaches
    its own (Westfall & Young 1993, algorithm 2.8; Romano & Wolf 2005). The chance of any false difference is at most
    the level, whichever pairs are equal, if the differences of equal systems are as likely to have either sign. The
    test stays valid with fewer `permutations`, which are reduced where there are many pairs.
    """
    m = len(scores)
    first, second = np.triu_indices(m, 1)
    p_values = np.ones((m, m))
    statistics, scales, floor = _compute_statistics(scores, clusters)
    order = np.argsort(statistics, kind="stable")
    order = order[np.searchsorted(statistics[order], 0, side="right") :]  # without pairs that do not differ
    if not len(order):
        return MaxT(p_values, np.inf, floor, clusters)
    sums, left, right = _sum_by_cluster(scores, clusters, first[order], second[order])
    units = sums.shape[1]
    limit = min(_MOST_STATISTICS // len(first), _MOST_SUMS // len(sums))
    permutations = min(permutations, max(_FEWEST_PERMUTATIONS, limit))  # the floor applies to any number of rows
    # All systems have the same sign at a query, because their scores there are correlated. With a sign for each pair,
    # the largest of many similar pairs would look like that of independent ones, and p-values would be nearly those of
    # Bonferroni: times 45 for 10 systems.
    flipped = np.concatenate([_flip(sums, signs) for signs in sign_blocks(units, permutations, seed)], axis=1)

    most = most_extreme(level, units, permutations)
    extreme, peaks = _step_down(flipped, left, right, scales[order], statistics[order] * _EQUAL, most)
    # A pair is no more significant than one that is more extreme.
    adjusted = np.maximum.accumulate(shares(extreme, units, permutations)[::-1])[::-1]
    p_values[first[order], second[order]] = p_values[second[order], first[order]] = np.minimum(adjusted, 1)
    critical = float(np.partition(peaks, -most - 1)[-most - 1]) / _EQUAL if most >= 0 else np.inf
    return MaxT(p_values, critical, floor, clusters)


def _step_down(
    flipped: Floats, left: Column, right: Column, scales: Floats, least: Floats, most: int
) -> tuple[Column, Floats]:
    """Return in how many permutations the largest statistic up to each pair reaches that of the pair.

    Pairs come in ascending order of their statistics. Also returns, for each permutation, the largest statistic up to
    the least extreme pair that reaches its own in at most `most` permutations, as does every pair after it; or up to
    the last pair, if there is no such pair.
    """
    # Why step down: if every pair were compared with the largest statistic of all pairs, pairs that differ clearly
    # would keep raising the bar for the others, and the p-value of a small difference would be too large. So the peak
    # of a permutation grows pair by pair, from the least extreme one: each pair meets only the pairs that could still
    # be equal if it is. A pair that reaches its own statistic counts, within rounding (`_EQUAL`): where all signs are
    # enumerated, the observed ones are among them, and an exact p-value without them would be 0.
    extreme = np.zeros(len(left), dtype=np.int64)
    peaks, critical_peaks, statistic = np.zeros((3, flipped.shape[1]))
    reached = np.empty(len(peaks), dtype=np.bool_)
    rows, significant = list(flipped), False
    pairs = zip(left.tolist(), right.tolist(), scales.tolist(), least.tolist(), strict=True)
    for pair, (one, other, scale, smallest) in enumerate(pairs):
        np.subtract(rows[one], rows[other], out=statistic)
        np.abs(statistic, out=statistic)
        np.multiply(statistic, scale, out=statistic)
        np.maximum(peaks, statistic, out=peaks)
        count = int(np.count_nonzero(np.greater_equal(peaks, smallest, out=reached)))
        extreme[pair] = count
        if count <= most and not significant:
            critical_peaks[:] = peaks
        significant = count <= most
    return extreme, critical_peaks if significant else peaks


def _flip(sums: Floats, signs: Floats) -> Floats:
    """Return sums (rows x units) under a block of permutations (rows x permutations)."""
    with single_threaded():
        flipped: Floats = sums @ signs.T
    return flipped


def _compute_statistics(scores: Floats, clusters: Clusters | None) -> tuple[Floats, Floats, float]:
    """Return the statistic and the scale of each pair, 0 where nothing differs, and the floor of the scales.

    The floor is the median sum of squares of the pairs that differ. A scale is one over the root of a pair's own sum
    of squares plus the floor.
    """
    m = len(scores)
    sums, squares = np.zeros((2, m * (m - 1) // 2))
    starts = None
    if clusters is not None:
        codes = np.unique(clusters, return_inverse=True)[1]
        by_code = np.argsort(codes, kind="stable")
        scores, starts = scores[:, by_code], np.flatnonzero(np.diff(codes[by_code], prepend=-1))
    size = max(_CHUNK // max(scores.shape[1], 1), 1)
    end, some_missing = 0, bool(np.isnan(scores).any())
    for system in range(m):
        for start in range(system + 1, m, size):
            differences = scores[system] - scores[start : start + size]
            differences *= np.abs(differences) > _NO_DIFFERENCE
            if some_missing:
                np.nan_to_num(differences, copy=False)
            units = differences if starts is None else np.add.reduceat(differences, starts, axis=1)
            begin, end = end, end + len(units)
            sums[begin:end], squares[begin:end] = np.einsum("ij->i", units), np.einsum("ij,ij->i", units, units)
    differ = squares > 0
    floor = float(np.median(squares[differ])) if differ.any() else 0.0
    scales = np.divide(1, np.sqrt(squares + floor), out=np.zeros(len(squares)), where=differ)
    statistics = np.abs(sums) * scales
    return np.where(statistics > 1e-9, statistics, 0), scales, floor  # rounding errors are smaller than that


def _sum_by_cluster(
    scores: Floats, clusters: Clusters | None, first: Column, second: Column
) -> tuple[Floats, Column, Column]:
    """Return sums by cluster, and for each pair the two rows that sum the queries which count for both.

    Systems with the same counted queries share rows; otherwise there is one row per system and set of queries.
    """
    present = ~np.isnan(scores)
    sets, set_of = np.unique(present, axis=0, return_inverse=True)
    set_of = set_of.reshape(-1)
    counted = np.asarray(present.any(axis=0))
    # Subtracting the mean of each query changes no difference and keeps rounding errors small.
    middle = np.divide(np.nansum(scores, axis=0), present.sum(axis=0), out=np.zeros(len(counted)), where=counted)
    centred = np.where(present, scores - middle, 0)
    rows = by_cluster(np.concatenate([centred * part for part in sets]), clusters).sums
    m = len(scores)
    return rows, set_of[second] * m + first, set_of[first] * m + second
