"""Every pair of systems tested at once: the step-down max-T permutation test.

Systems are rows, queries are columns, and NaN is a query that does not count for a system. Because all pairs are one
family, any of them may be looked at, also those with a system that was chosen by the same scores. Knows nothing of
measures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from retrievers.threads import available, side_by_side
from runner.analysis.blas import single_threaded
from runner.analysis.clusters import Clusters, by_cluster
from runner.analysis.signs import most_extreme, shares, sign_blocks

Floats = NDArray[np.float64]
Column = NDArray[Any]

_LANES = 64
"""How many permutations are computed together, so that the compiler makes vector instructions of them."""

_WORTH_A_THREAD = 1 << 24
"""How many statistics are worth a second thread."""

_MOST_STATISTICS = 200_000_000
"""Most statistics that are computed: beyond 200 systems there are fewer than 10,000 permutations."""

_FEWEST_PERMUTATIONS = 2000
"""However many systems there are, there are not fewer permutations than this, unless fewer are asked for."""

_EQUAL = 1 - 1e-9
"""A statistic that is smaller only by rounding counts as equal."""

_NO_DIFFERENCE = 5e-13
"""What is equal to 12 decimals is equal."""


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Adjusted p-values of all pairs of m systems (m x m), 1 on the diagonal.

    `critical` bounds the statistics of the pairs whose p-value is not below `level`, and of no other; infinite where
    there are too few queries for any p-value to be below it. `floor` is what the statistics add to sums of squares.
    """

    p_values: Floats
    level: float
    critical: float
    floor: float


def all_pairs(
    scores: Floats,
    permutations: int = 10000,
    seed: int = 0,
    *,
    level: float = 0.05,
    clusters: Clusters | None = None,
) -> AllPairs:
    """Test all pairs of systems (m x queries), corrected for their number, by the step-down max-T procedure.

    The signs of all differences of a query (or of its cluster) are flipped together, which keeps the correlation
    between systems. A pair's statistic is its sum of differences over the root of the sum of their squares plus that
    of the median pair, a scale that no flip changes. Without the second term (Tusher, Tibshirani & Chu 2001), similar
    systems whose few differences happen to have one sign would have the largest statistics. The p-value of a pair is
    the share of permutations in which the largest statistic among all pairs that are no more extreme reaches its own
    (Westfall & Young 1993, algorithm 2.8; Romano & Wolf 2005). The chance of any false difference is at most the
    level, whichever pairs are equal, if the differences of equal systems are as likely to have either sign. The test
    stays valid with fewer `permutations`, which are reduced where there are many pairs.
    """
    m = len(scores)
    fewest = min(permutations, _FEWEST_PERMUTATIONS)
    permutations = min(permutations, max(fewest, _MOST_STATISTICS // max(m * (m - 1) // 2, 1)))
    first, second = (column.astype(np.int32) for column in np.triu_indices(m, 1))
    p_values = np.ones((m, m))
    statistics, scales, floor = _statistics(scores, clusters, first, second)
    order = np.argsort(statistics, kind="stable")
    order = order[np.searchsorted(statistics[order], 0, side="right") :]  # without those that do not differ
    if not len(order):
        return AllPairs(p_values, level, np.inf, floor)
    first, second, statistics, scales = first[order], second[order], statistics[order], scales[order]
    sums, left, right = _shared_sums(scores, clusters, first, second)
    units = sums.shape[1]
    least = statistics * _EQUAL

    def tested(last: int) -> tuple[Column, Floats]:
        blocks = _over_permutations(
            lambda flipped: _count(flipped, left[:last], right[:last], scales[:last], least[:last]),
            *(sums, last, permutations, seed),
        )
        return np.sum([extreme for extreme, _ in blocks], axis=0), np.concatenate([peaks for _, peaks in blocks])

    extreme, peaks = tested(len(order))
    # A pair is no surer than one that is more extreme.
    adjusted = np.maximum.accumulate(shares(extreme, units, permutations)[::-1])[::-1]
    p_values[first, second] = p_values[second, first] = np.minimum(adjusted, 1)
    last = min(int(np.searchsorted(-adjusted, -level, side="right")) + 1, len(order))  # the least surely different, too

    most = most_extreme(level, units, permutations)
    if last < len(order):
        _, peaks = tested(last)
    critical = float(np.partition(peaks, -most - 1)[-most - 1]) / _EQUAL if most >= 0 else np.inf
    return AllPairs(p_values, level, critical, floor)


def intervals(differences: Floats, tested: AllPairs, clusters: Clusters | None = None) -> Floats:
    """Return the intervals of mean differences (m x queries) by inversion of a test of all pairs (m x 2).

    They hold each shift that, taken from the differences, leaves a statistic within the critical value, so that they
    exclude 0 exactly where the test finds a difference. NaN where nothing bounds them: there are too few queries.
    """
    units = by_cluster(differences, clusters)
    total, queries = units.sums.sum(axis=1), units.counts.sum(axis=1)
    if not np.isfinite(tested.critical):
        return np.full((len(differences), 2), np.nan)
    # (total - queries x)^2 <= critical^2 * (floor + sum((sums - counts x)^2)), a quadratic inequality in x.
    bound = tested.critical**2
    a = queries**2 - bound * (units.counts**2).sum(axis=1)
    half_b = bound * (units.sums * units.counts).sum(axis=1) - total * queries
    c = total**2 - bound * (tested.floor + (units.sums**2).sum(axis=1))
    roots = np.sqrt(np.maximum(half_b**2 - a * c, 0))
    low_high = np.stack([-half_b - roots, -half_b + roots], axis=1)
    bounds: Floats = np.divide(low_high, a[:, None], out=np.full(low_high.shape, np.nan), where=(a > 0)[:, None])
    return bounds


def _statistics(
    scores: Floats, clusters: Clusters | None, first: Column, second: Column
) -> tuple[Floats, Floats, float]:
    """Return the statistic and the scale of each pair, 0 where nothing differs, and the floor of the scales.

    The floor is the median sum of squares of the pairs that differ; a scale is one over the root of a pair's own sum
    of squares plus the floor.
    """
    codes = np.arange(scores.shape[1]) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    by_code = np.argsort(codes, kind="stable")
    starts = np.append(np.flatnonzero(np.diff(codes[by_code], prepend=-1)), len(codes))
    sorted_scores = np.ascontiguousarray(scores[:, by_code])
    sums, squares = np.zeros((2, len(first)))
    workers = _workers(len(first) * len(codes))
    edges = np.linspace(0, len(first), 8 * workers + 1).astype(np.int64).tolist()

    def add_up(part: tuple[int, int]) -> None:
        _add_up(sorted_scores, starts, first, second, sums, squares, *part)

    for _ in side_by_side(add_up, pairwise(edges), workers):
        pass
    differ = squares > 0
    floor = float(np.median(squares[differ])) if differ.any() else 0.0
    scales = np.divide(1, np.sqrt(squares + floor), out=np.zeros(len(first)), where=differ)
    statistics = np.abs(sums) * scales
    return np.where(statistics > 1e-9, statistics, 0), scales, floor  # less is what rounding leaves of none


def _shared_sums(
    scores: Floats, clusters: Clusters | None, first: Column, second: Column
) -> tuple[Floats, Column, Column]:
    """Return sums by cluster, and for each pair the two rows of them that have the queries which count for both.

    Systems for which the same queries count share the rows; else there is a row for each system and set of queries.
    """
    present = ~np.isnan(scores)
    sets, set_of = np.unique(present, axis=0, return_inverse=True)
    set_of = set_of.reshape(-1)
    counted = np.asarray(present.any(axis=0))
    # Less the mean of each query, which changes no difference and keeps rounding errors small.
    middle = np.divide(np.nansum(scores, axis=0), present.sum(axis=0), out=np.zeros(len(counted)), where=counted)
    centred = np.where(present, scores - middle, 0)
    rows = by_cluster(np.concatenate([centred * some for some in sets]), clusters).sums
    m = len(scores)
    return rows, (set_of[second] * m + first).astype(np.int32), (set_of[first] * m + second).astype(np.int32)


def _over_permutations(
    compute: Callable[[Floats], tuple[Column, Floats]], sums: Floats, pairs: int, permutations: int, seed: int
) -> list[tuple[Column, Floats]]:
    """Return what is computed of the sums (rows x units) under each block of permutations."""
    workers = _workers(pairs * permutations)

    def parts() -> Iterator[Floats]:
        for signs in sign_blocks(sums.shape[1], permutations, seed):
            with single_threaded():
                flipped = sums @ signs.T
            lanes = -(-flipped.shape[1] // (workers * _LANES)) * _LANES
            yield from (flipped[:, start : start + lanes] for start in range(0, flipped.shape[1], lanes))

    return list(side_by_side(compute, parts(), workers))


def _workers(work: int) -> int:
    return max(1, min(available(), work // _WORTH_A_THREAD))


@njit(cache=True, nogil=True)
def _add_up(
    scores: Floats,
    starts: Column,
    first: Column,
    second: Column,
    sums: Floats,
    squares: Floats,
    begin: int,
    end: int,
) -> None:
    """Add up the differences of pairs by cluster, and the squares of these sums."""
    for pair in range(begin, end):
        one, other = scores[first[pair]], scores[second[pair]]
        total, square = 0.0, 0.0
        for unit in range(len(starts) - 1):
            part = 0.0
            for query in range(starts[unit], starts[unit + 1]):
                difference = one[query] - other[query]
                if abs(difference) > _NO_DIFFERENCE:  # which NaN is not
                    part += difference
            total += part
            square += part * part
        sums[pair] = total
        squares[pair] = square


@njit(cache=True, nogil=True)
def _count(flipped: Floats, left: Column, right: Column, scales: Floats, least: Floats) -> tuple[Column, Floats]:
    """Return in how many permutations the largest statistic up to each pair reaches that of the pair.

    And the largest of all in each permutation.
    """
    extreme, found = np.zeros(len(left), dtype=np.int64), np.zeros(flipped.shape[1])
    lanes, peaks = np.zeros((len(flipped), _LANES)), np.zeros(_LANES)
    for start in range(0, flipped.shape[1], _LANES):
        width = min(_LANES, flipped.shape[1] - start)
        for row in range(len(flipped)):
            for lane in range(_LANES):
                lanes[row, lane] = flipped[row, start + lane] if lane < width else 0.0
        for lane in range(_LANES):
            peaks[lane] = 0.0
        for pair in range(len(left)):
            one, other, scale, limit = left[pair], right[pair], scales[pair], least[pair]
            count = 0
            for lane in range(_LANES):
                statistic = abs(lanes[one, lane] - lanes[other, lane]) * scale
                peak = statistic if statistic > peaks[lane] else peaks[lane]
                peaks[lane] = peak
                count += peak >= limit
            extreme[pair] += count
        for lane in range(width):
            found[start + lane] = peaks[lane]
    return extreme, found
