"""Measure how reliably a dataset ranks systems: other queries, the power of tests, and what single queries tell.

Scores are those of systems (rows) for queries (columns) that count for every system.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from runner.statistics.clusters import Clusters, Units, by_cluster
from runner.statistics.comparison import Pairs
from runner.statistics.effects import detectable_difference, queries_needed
from runner.statistics.settings import Statistics
from runner.statistics.significance import (
    Floats,
    bootstrap_test,
    cluster_means,
    compute_differences,
    iter_resampled_means,
    moments,
)

FEWEST_SYSTEMS, FEWEST_UNITS = 3, 4
"""With fewer systems, a ranking cannot be compared by more than one pair; fewer queries (clusters) have no quarters."""

_SPLITS = 500
"""How many random splits of the queries are averaged."""


@dataclass(frozen=True)
class RankingStability:
    """Kendall's tau between the ranking of the systems and that on as many other queries: expected, with an interval.

    `same_best` is the chance that the same system is the best on these other queries.
    """

    tau: float
    low: float
    high: float
    same_best: float


@dataclass(frozen=True, eq=False)
class DiscriminativePower:
    """How many pairs of systems the dataset can tell apart.

    `levels` are the achieved significance levels (p-values) of all pairs by the paired bootstrap test, smallest first
    (Sakai 2006): the ASL curve. `significant` counts those below alpha; `corrected` counts the pairs that remain
    significant when all pairs are corrected as one family.
    """

    levels: Floats
    significant: int
    corrected: int


@dataclass(frozen=True)
class Separation:
    """Two systems that follow each other in the ranking, their difference, and the queries (clusters) needed.

    `needed` is how many a paired t-test needs to detect a difference of this size with a power of 0.8.
    """

    better: int
    worse: int
    difference: float
    p: float
    needed: float


@dataclass(frozen=True, eq=False)
class QueryInformation:
    """Which queries separate the systems.

    `shares` (n,) are the queries' shares of the variance between systems. `half` is the smallest number of queries that
    have half of it, `uninformative` how many have none. `discriminations` (n,) are the corrected item-total
    correlations: Pearson's r, over systems, of a query's scores with the means over all other queries; NaN where either
    does not vary, or with too few systems. A negative one favours systems that are otherwise worse.
    """

    shares: Floats
    half: int
    uninformative: int
    discriminations: Floats


def measure_stability(
    scores: Floats,
    clusters: Clusters | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
) -> RankingStability:
    """Predict how a ranking of systems changes with other queries, as many as there are, but at least `FEWEST_UNITS`.

    The expected tau comes from halves of the queries (`expect_tau`), its interval from means on other queries. The
    observed differences between systems include the noise of these queries, so the means are shrunk towards their mean,
    by shares that are uncertain (`_draw_shares`); those on other queries vary around the shrunk ones by the noise of
    both samples, which is that of the bootstrap. The chance that the best system stays the best is the mean of that
    with these means and of one from parts of the queries (`extrapolate_same_best`): the first is too low on average if
    differences are clear, and the second varies more between samples.
    """
    units = by_cluster(scores, clusters)
    observed = units.means
    resampled = np.concatenate([block for _, block in iter_resampled_means(units, resamples, seed)], axis=1).T
    noise = resampled - observed
    noise -= noise.mean(axis=1, keepdims=True)
    centre, shares = observed.mean(), _draw_shares(float(observed.var(ddof=1)), noise, seed)
    new = np.round(centre + shares * (observed - centre) + np.sqrt(1 + shares) * noise, 12)
    low, high = np.quantile(
        compute_taus(observed, new), [(1 - confidence) / 2, (1 + confidence) / 2], method="inverted_cdf"
    ).tolist()
    halves, quarters = (_draw_parts(units, parts, seed) for parts in (2, 4))
    same_best = _agree(np.round(observed, 12), new) / 2 + extrapolate_same_best(halves, quarters) / 2
    return RankingStability(expect_tau(*halves), low, high, same_best)


def _draw_shares(spread: float, noise: Floats, seed: int) -> Floats:
    """Return shares of the observed differences between systems that are true, one for each row of noise (r x 1).

    They are drawn from their distribution given the spread of the means (a variance). Beforehand, the rest of a share
    has the beta distribution (1/2, 1): with the uniform one (Strawderman 1971), expected taus are further too low. The
    noise has as many degrees of freedom as a sum of squares with its mean and variance (Satterthwaite 1946).
    """
    from scipy.special import gammainc, gammaincinv

    covariance = noise.T @ noise / len(noise)
    error, uniform = float(np.trace(covariance)), np.random.default_rng(seed).random((len(noise), 1))
    if error <= 1e-15:
        return np.ones_like(uniform)
    freedom = error**2 / float((covariance**2).sum())
    shape, rate = (freedom + 1) / 2, freedom / 2 * spread * (len(covariance) - 1) / error
    if rate < 1e-12:  # the distribution without its exponential factor
        return 1 - uniform ** (1 / shape)
    shares: Floats = 1 - np.minimum(gammaincinv(shape, uniform * gammainc(shape, rate)) / rate, 1)
    return shares


def _draw_parts(units: Units, parts: int, seed: int) -> tuple[Floats, Floats]:
    """Return the means of systems in two parts of each random split of the queries (splits x m, each)."""
    n = units.sums.shape[1]
    places = np.random.default_rng(seed).permuted(np.tile(np.arange(n), (_SPLITS, 1)), axis=1)
    drawn = [(places % parts == part).astype(np.float64) for part in (0, 1)]
    first, second = (np.round(part @ units.sums.T / (part @ units.counts.T), 12) for part in drawn)
    return first, second


def expect_tau(first: Floats, second: Floats) -> float:
    """Return the expected tau between the rankings on two samples of all queries, from means in halves (splits x m).

    It is extrapolated from the mean tau of the halves: for normal means, tau is 2 / pi times the arc sine of the
    correlation (Greiner 1909), and a sample of twice the size has the correlation 2 r / (1 + r) (Spearman 1910; Brown
    1910). It is at least 0.
    """
    correlation = max(math.sin(math.pi / 2 * float(compute_taus(first, second).mean())), 0.0)
    return 2 / math.pi * math.asin(min(2 * correlation / (1 + correlation), 1.0))


def extrapolate_same_best(halves: tuple[Floats, Floats], quarters: tuple[Floats, Floats]) -> float:
    """Return the chance that two samples of all queries have the same best system, from means in halves and quarters.

    With all queries, it is assumed to be as much higher than with half of them as with half than with a quarter, and
    not lower. The shape of each array is splits x m.
    """
    half, quarter = _agree(*halves), _agree(*quarters)
    return min(max(2 * half - quarter, half), 1.0)


def _agree(means: Floats, others: Floats) -> float:
    """Return how often the best system of rows of means (or of one row) is that of others."""
    return float((means.argmax(axis=-1) == others.argmax(axis=1)).mean())


def compute_taus(observed: Floats, others: Floats) -> Floats:
    """Return Kendall's tau-a of means (m,), or of rows of means, with each row of others; a tied pair counts as 0."""
    first, second = np.triu_indices(others.shape[1], 1)
    signs = np.sign(np.round(observed[..., first] - observed[..., second], 12))
    taus: Floats = (signs * np.sign(np.round(others[:, first] - others[:, second], 12))).mean(axis=1)
    return taus


def measure_discriminative_power(
    scores: Floats, pairs: Pairs, clusters: Clusters | None = None, statistics: Statistics = Statistics()
) -> DiscriminativePower:
    """Test all pairs of systems by the paired bootstrap, without a correction; `pairs` has the corrected tests."""
    first, second = np.triu_indices(len(scores), 1)
    differences = compute_differences(scores[first], scores[second])
    levels = np.sort(bootstrap_test(differences, statistics.permutations, statistics.seed, clusters))
    corrected = int(np.count_nonzero(pairs.p_values[first, second] < statistics.alpha))
    return DiscriminativePower(levels, int(np.count_nonzero(levels < statistics.alpha)), corrected)


def list_separations(scores: Floats, pairs: Pairs, clusters: Clusters | None = None) -> list[Separation]:
    """Return each system with the next one in the ranking, best first, with the corrected tests of `pairs`."""
    order = np.argsort(-moments(scores, clusters)[1], kind="stable")
    differences = compute_differences(scores[order[:-1]], scores[order[1:]])
    _, means, deviations = moments(differences, clusters)
    needed = queries_needed(means, deviations, pairs.levels(differences))
    return [
        Separation(one, other, float(means[i]), float(pairs.p_values[one, other]), float(needed[i]))
        for i, (one, other) in enumerate(pairwise(order.tolist()))
    ]


def compute_detectable(
    scores: Floats, counts: NDArray[np.int64], clusters: Clusters | None = None, alpha: float = 0.05
) -> Floats:
    """Return the difference that a single paired t-test detects with a power of 0.8 for each number of queries.

    The deviation of the differences is that of the median pair of systems.
    """
    first, second = np.triu_indices(len(scores), 1)
    deviation = float(np.median(moments(compute_differences(scores[first], scores[second]), clusters)[2]))
    return detectable_difference(counts, np.full(len(counts), deviation), alpha)


def measure_information(scores: Floats, clusters: Clusters | None = None) -> QueryInformation:
    """Return which queries (or clusters) carry the differences between systems."""
    values = cluster_means(scores, clusters)
    variances = np.where(np.ptp(values, axis=0) > 1e-12, values.var(axis=0), 0)
    total = variances.sum()
    shares = variances / total if total > 0 else variances
    largest = np.cumsum(np.sort(shares)[::-1])
    return QueryInformation(
        shares,
        int(np.searchsorted(largest, 0.5 - 1e-12)) + 1 if total > 0 else 0,
        int(np.count_nonzero(variances == 0)),
        _discriminate(values),
    )


def _discriminate(values: Floats) -> Floats:
    m, n = values.shape
    r = np.full(n, np.nan)
    if m < FEWEST_SYSTEMS or n < 2:
        return r
    others = (values.sum(axis=1, keepdims=True) - values) / (n - 1)
    x, y = values - values.mean(axis=0), others - others.mean(axis=0)
    scale = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    np.divide((x * y).sum(axis=0), scale, out=r, where=scale > 1e-15)
    return r
