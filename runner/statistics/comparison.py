"""Compare systems with one of them, or all pairs of systems: size and significance of the differences.

Systems are rows, queries are columns, and NaN marks a query that does not count for a system. Larger is better. Queries
of one cluster are variants of each other and resampled together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from runner.statistics.clusters import Clusters
from runner.statistics.corrections import CORRECTIONS, correct, level_of_each
from runner.statistics.effects import detectable_difference, hedges_g, queries_needed
from runner.statistics.inversion import withhold_intervals
from runner.statistics.letters import letters
from runner.statistics.paired_tests import PAIRED_TESTS
from runner.statistics.settings import Statistics
from runner.statistics.significance import Floats, compute_differences, moments

_AT_ONCE = 4096
"""The number of pairs of systems that are tested at a time."""

_MOST_PERMUTATIONS = 100_000
"""The most permutations to which a correction of p-values raises the requested number."""

_SMALL_P = 0.01
"""p-values below this limit are computed with more permutations if a correction needs them."""


@dataclass(frozen=True)
class Difference:
    """How much a system differs from another one by a measure, paired by query; unknown numbers are NaN.

    `mean` is the mean difference, with its confidence interval from `low` to `high` and its `effect` (Hedges' g). `p`
    is the p-value of a single test and `corrected` that for the whole family, which decides whether the difference is
    `significant`. `needed` is the number of queries (or clusters) with which a t-test, at the level that the correction
    leaves to this test, has a power of 0.8. `wins`, `ties` and `losses` count queries.
    """

    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    corrected: float = math.nan
    effect: float = math.nan
    needed: float = math.nan
    significant: bool = False
    wins: int = 0
    ties: int = 0
    losses: int = 0

    @property
    def queries(self) -> int:
        """Return the number of queries that count for both systems."""
        return self.wins + self.ties + self.losses

    @property
    def differing(self) -> int:
        """Return the number of queries on which the systems differ."""
        return self.wins + self.losses


@dataclass(frozen=True, eq=False)
class Differences:
    """Paired differences in m rows: of several systems to a reference, or of one system by several measures.

    The columns of `Difference`, of shape (m,), with `intervals` of shape (m, 2); `uncorrected` and `p_values` are the
    p-values before and after the correction. `queries` is the number of queries that count for both, `units` the number
    of their clusters (or queries, without clusters), and `deviations` are the standard deviations of single units.
    `levels` are those of single tests that are equivalent to alpha for the family.
    """

    queries: NDArray[np.int64]
    units: NDArray[np.int64]
    differences: Floats
    intervals: Floats
    deviations: Floats
    levels: Floats
    effects: Floats
    needed: Floats
    uncorrected: Floats
    p_values: Floats
    significant: NDArray[np.bool_]
    wins: NDArray[np.int64]
    ties: NDArray[np.int64]
    losses: NDArray[np.int64]

    @property
    def detectable(self) -> Floats:
        """Return the mean differences that a t-test at these levels detects with a power of 0.8 (m,)."""
        return detectable_difference(self.units, self.deviations, self.levels)

    def count_needed(self, level: float) -> Floats:
        """Return how many queries (or clusters) a single test at a level needs (m,)."""
        return queries_needed(self.differences, self.deviations, level)

    def describe(self, row: int) -> Difference:
        """Return one row as a value."""
        return Difference(
            mean=float(self.differences[row]),
            low=float(self.intervals[row, 0]),
            high=float(self.intervals[row, 1]),
            p=float(self.uncorrected[row]),
            corrected=float(self.p_values[row]),
            effect=float(self.effects[row]),
            needed=float(self.needed[row]),
            significant=bool(self.significant[row]),
            wins=int(self.wins[row]),
            ties=int(self.ties[row]),
            losses=int(self.losses[row]),
        )


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of systems, on the queries that count for both, corrected for the number of all pairs.

    `p_values` (m x m) are NaN for pairs that were not requested, and 1 on the diagonal. `intervals` takes differences
    (rows of `compute_differences`) and returns intervals that exclude 0 exactly where the p-value is below 1 -
    confidence. `levels` returns, for such rows, the levels of single tests that are equivalent to `alpha` for the
    family (m,).
    """

    p_values: Floats
    alpha: float
    order: NDArray[np.int64]
    intervals: Callable[[Floats], Floats]
    levels: Callable[[Floats], Floats]

    def letters(self, some: Sequence[int]) -> list[str]:
        """Return letters for some systems: two systems differ significantly if and only if they share no letter.

        The best system has an "a".
        """
        place = np.argsort(self.order)[list(some)]
        return letters(self.p_values[np.ix_(some, some)] < self.alpha, np.argsort(place))


def compare(
    differences: Floats,
    statistics: Statistics = Statistics(),
    clusters: Clusters | None = None,
    weights: Floats | None = None,
) -> Differences:
    """Test rows of differences (m x queries, as returned by `compute_differences`), corrected as one family.

    More permutations are drawn than requested if the correction needs them for any p-value to be below alpha, but only
    for rows with small p-values. Intervals are those of each single test: one excludes 0 where the uncorrected p-value
    is below 1 - confidence. Raises `ValueError` for Tukey's correction, which is for all pairs of systems by one
    measure. Max-T needs all pairs too, so Holm's correction replaces it. With weights (m x queries), a query counts as
    that many.
    """
    if weights is not None:
        weights = weights[:, ~np.isnan(differences).all(axis=0)]
    differences, clusters = _select_counted(differences, clusters)
    uncorrected = _test_in_two_stages(differences, statistics, clusters, weights)
    corrected = correct(uncorrected, statistics.correction)
    intervals = PAIRED_TESTS[statistics.test].compute_intervals(
        differences, 1 - statistics.confidence, statistics.permutations, statistics.seed, clusters, weights
    )
    level = level_of_each(uncorrected, statistics.alpha, statistics.correction)
    return _describe(differences, intervals, uncorrected, corrected, statistics.alpha, level, clusters, weights)


def compare_to(reference: int, scores: Floats, pairs: Pairs, clusters: Clusters | None = None) -> Differences:
    """Compare systems (m x queries) with one of them, using the p-values and intervals of all pairs.

    The reference may be the best by the same scores, because all pairs were tested. Its own p-value is 1.
    """
    scores, clusters = _select_counted(scores, clusters)
    differences = compute_differences(scores, scores[reference])
    corrected = pairs.p_values[reference]
    intervals, levels = pairs.intervals(differences), pairs.levels(differences)
    return _describe(differences, intervals, corrected, corrected, pairs.alpha, levels, clusters)


def compare_pairs(
    scores: Floats,
    statistics: Statistics = Statistics(),
    clusters: Clusters | None = None,
    wanted: NDArray[np.bool_] | None = None,
    measures: int = 1,
) -> Pairs:
    """Compare all pairs of systems (m x queries) as one family.

    If the family has several `measures`, this one gets an equal share of the level (Bonferroni), because the joint
    tests of all pairs take one measure at a time.

    Without a correction, only the pairs that are `wanted` (m x m, symmetric) are tested and returned; a correction
    needs all pairs. A paired test draws as many permutations as in `compare`. Holm's correction replaces max-T for a
    test without it.
    """
    if measures > 1 and CORRECTIONS[statistics.correction].depends_on_family:
        level = (1 - statistics.confidence) / measures
        share = replace(statistics, alpha=statistics.alpha / measures, confidence=1 - level)
        pairs = compare_pairs(scores, share, clusters, wanted)
        return replace(pairs, p_values=np.minimum(pairs.p_values * measures, 1), alpha=statistics.alpha)
    scores, clusters = _select_counted(scores, clusters)
    order = np.argsort(-np.nan_to_num(moments(scores)[1], nan=-np.inf), kind="stable")
    alpha, seed, test = statistics.alpha, statistics.seed, PAIRED_TESTS[statistics.test]
    level, m = 1 - statistics.confidence, len(scores)
    correction = CORRECTIONS[statistics.correction]
    is_joint = m > 2 or correction.is_own_test  # a single pair is a single test, with its interval
    if correction.find_joint_test and is_joint and (run_joint_test := correction.find_joint_test(test)):
        joint = run_joint_test(scores, statistics.permutations, seed, level=level, clusters=clusters)

        def find_levels(rows: Floats) -> Floats:
            if m == 2:
                return np.full(len(rows), alpha)
            return joint.levels(rows) * alpha / level  # the joint test is inverted at the level of the intervals

        return Pairs(joint.p_values, alpha, order, joint.intervals, find_levels)
    first, second = np.triu_indices(m, 1)
    if not correction.depends_on_family and wanted is not None:
        first, second = np.nonzero(np.triu(wanted, 1))
    permutations = _count_permutations(statistics, len(first))
    tested = np.empty(len(first))
    for start in range(0, len(first), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        differences = compute_differences(scores[first[some]], scores[second[some]])
        tested[some] = test.compute_p_values(differences, permutations, seed, clusters, None)
    matrix = np.where(np.eye(m, dtype=np.bool_), 1.0, np.nan)
    matrix[first, second] = matrix[second, first] = correct(tested, correction.name)
    single_level = level_of_each(tested, level, correction.name)
    return Pairs(
        matrix,
        alpha,
        order,
        lambda rows: test.compute_intervals(rows, single_level, permutations, seed, clusters, None),
        lambda rows: np.full(len(rows), level_of_each(tested, alpha, correction.name)),
    )


def resolve_correction(statistics: Statistics) -> Statistics:
    """Return the statistics of all pairs of systems, with the correction that their test has."""
    correction = CORRECTIONS[statistics.correction].for_family(PAIRED_TESTS[statistics.test])
    return replace(statistics, correction=correction.name)


def _test_in_two_stages(
    differences: Floats, statistics: Statistics, clusters: Clusters | None, weights: Floats | None
) -> Floats:
    """Return uncorrected p-values (m,): those that are small after the requested permutations are tested with more.

    The p-values stay valid, as in Besag & Clifford (1991): one that the second stage can change was below the limit in
    the first stage, and remains at most the limit. So an interval of the first stage excludes 0 as before.
    """
    test, seed = PAIRED_TESTS[statistics.test], statistics.seed
    p_values = test.compute_p_values(differences, statistics.permutations, seed, clusters, weights)
    permutations = _count_permutations(statistics, len(differences))
    limit = min(_SMALL_P, 1 - statistics.confidence)
    if permutations > statistics.permutations and (small := p_values < limit).any():
        of_small = None if weights is None else weights[small]
        finer = test.compute_p_values(differences[small], permutations, seed, clusters, of_small)
        p_values[small] = np.minimum(finer, limit)
    return p_values


def _select_counted(values: Floats, clusters: Clusters | None) -> tuple[Floats, Clusters | None]:
    """Return the queries that count for at least one row, with their clusters."""
    some = ~np.isnan(values).all(axis=0)
    return values[:, some], None if clusters is None else clusters[some]


def _describe(
    differences: Floats,
    intervals: Floats,
    uncorrected: Floats,
    corrected: Floats,
    alpha: float,
    level: float | Floats,
    clusters: Clusters | None,
    weights: Floats | None = None,
) -> Differences:
    """Return tested rows; `level` is that of a single test, or of each, with which `alpha` holds for the family."""
    units, means, deviations = moments(differences, clusters, weights)
    return Differences(
        queries=np.count_nonzero(~np.isnan(differences), axis=1),
        units=units,
        differences=means,
        intervals=withhold_intervals(intervals, differences, clusters),
        deviations=deviations,
        levels=np.broadcast_to(level, means.shape),
        effects=hedges_g(differences, clusters, weights),
        needed=queries_needed(means, deviations, level),
        uncorrected=uncorrected,
        p_values=corrected,
        significant=corrected < alpha,
        wins=np.count_nonzero(differences > 0, axis=1),
        ties=np.count_nonzero(differences == 0, axis=1),
        losses=np.count_nonzero(differences < 0, axis=1),
    )


def _count_permutations(statistics: Statistics, tests: int) -> int:
    """Return how many permutations the smallest p-value needs to stay below alpha after correction, within limits."""
    if tests <= 1 or not CORRECTIONS[statistics.correction].depends_on_family:
        return statistics.permutations
    return max(statistics.permutations, min(math.ceil(2 * tests / statistics.alpha), _MOST_PERMUTATIONS))
