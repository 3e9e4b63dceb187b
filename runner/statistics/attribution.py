"""Split a difference of means into terms for the factors that changed: Shapley values, with the share of each query.

A coalition is the set of factors that are on the candidate's side; the others are on the baseline's. Arithmetic only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from runner.statistics.clusters import Clusters
from runner.statistics.comparison import Difference, compare
from runner.statistics.corrections import correct
from runner.statistics.settings import Statistics

Floats = NDArray[np.float64]
Coalition = frozenset[str]
Step = tuple[float, Coalition, Coalition]
"""A weight, the coalition after a factor has moved to the candidate's side, and the one before."""


def list_steps(factor: str, factors: Sequence[str]) -> list[Step]:
    """Return the steps that the Shapley value of a factor averages (Shapley 1953): one for each set of other factors.

    A weight is the share of the orders of all factors in which exactly this set moves before the factor.
    """
    others, n = [other for other in factors if other != factor], len(factors)
    return [
        (1 / (n * math.comb(n - 1, size)), frozenset({*before, factor}), frozenset(before))
        for size in range(n)
        for before in combinations(others, size)
    ]


def sample_orders(factors: Sequence[str], count: int, seed: int) -> list[tuple[str, ...]]:
    """Return at least `count` orders, each with its reverse; all orders if there are no more than that.

    A pair of an order and its reverse estimates a Shapley value with less variance than two random orders.
    """
    if math.factorial(len(factors)) <= count:
        return list(permutations(factors))
    rng, orders = np.random.default_rng(seed), []
    for _ in range(math.ceil(count / 2)):
        order = tuple(factors[i] for i in rng.permutation(len(factors)).tolist())
        orders += [order, order[::-1]]
    return orders


def list_sampled_steps(factor: str, orders: Sequence[Sequence[str]]) -> list[Step]:
    """Return the steps of a factor in some orders, equally weighted (Castro, Gomez & Tejada 2009)."""
    counts: dict[Coalition, int] = {}
    for order in orders:
        before = frozenset(order[: list(order).index(factor)])
        counts[before] = counts.get(before, 0) + 1
    return [(count / len(orders), before | {factor}, before) for before, count in counts.items()]


@dataclass(frozen=True, eq=False)
class Attribution:
    """A term as a weighted sum of differences of means.

    `effect` is the term, and `least` and `most` are the smallest and the largest of the differences that it averages.
    All arrays are of shape (queries,), NaN (a weight of 0) for a query that counts nowhere. `shares` add up to the
    effect. If each step compares the same queries with themselves, the effect is the mean of `differences`, which are
    paired, with `weights`, which are 1 on average: a query that only some steps have counts less. Otherwise, as when a
    query loses its only gold, `differences` are the effect plus the contributions of queries to its error. `errors` are
    these contributions with the correction for small samples, and `patterns` number the sets of means in which queries
    count.
    """

    effect: float
    least: float
    most: float
    shares: Floats
    differences: Floats
    weights: Floats
    errors: Floats
    patterns: NDArray[np.int64]


def attribute(values: Mapping[Coalition, Floats], steps: Sequence[Step]) -> Attribution:
    """Return the term of these steps, given the values of queries in each coalition, NaN where a query does not count.

    Means may be over different queries. A query contributes to the error of a mean its distance from the mean, divided
    by the number of queries (the infinitesimal jackknife; Efron & Tibshirani 1993, chapter 21). The term is NaN if a
    mean has no query.
    """
    shape = next(iter(values.values())).shape
    counted, patterns = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.int64)
    weights, influences, errors, shares = (np.zeros(shape) for _ in range(4))
    means = {}
    for coalition in iter_coalitions(steps):
        column = values[coalition]
        there = ~np.isnan(column)
        n, coefficient = int(np.count_nonzero(there)), _sum_weights(coalition, steps)
        means[coalition] = float(column[there].mean()) if n else math.nan
        residuals = coefficient * (column[there] - means[coalition]) / max(n, 1)
        influences[there] += residuals
        errors[there] += residuals * math.sqrt(n / max(n - 1, 1))
        weights[there] += sum(weight for weight, *pair in steps if coalition in pair) / max(n, 1)
        shares[there] += coefficient * column[there] / max(n, 1)
        counted |= there
        patterns = np.unique(2 * patterns + there, return_inverse=True)[1]
    differences = [means[after] - means[before] for _, after, before in steps]
    effect = math.fsum(weight * difference for (weight, _, _), difference in zip(steps, differences, strict=True))
    errors, shares = (np.where(counted, column, np.nan) for column in (errors, shares))
    n = int(np.count_nonzero(counted))
    weights = np.round(weights * n / max(float(weights.sum()), 1e-12), 12)  # arithmetic leaves noise beyond that
    if all(np.array_equal(np.isnan(values[after]), np.isnan(values[before])) for _, after, before in steps):
        paired = np.round(np.divide(shares * n, weights, out=np.full(shape, np.nan), where=counted), 12)
    else:
        paired, weights = np.round(np.where(counted, effect + influences * n, np.nan), 12), counted.astype(np.float64)
    return Attribution(effect, min(differences), max(differences), shares, paired, weights, errors, patterns)


def _sum_weights(coalition: Coalition, steps: Sequence[Step]) -> float:
    """Return the coefficient of a coalition's mean in a term."""
    return math.fsum(weight * ((after == coalition) - (before == coalition)) for weight, after, before in steps)


def compute_significance(
    terms: Sequence[Attribution], is_paired: Sequence[bool], statistics: Statistics, clusters: Clusters | None
) -> list[Difference]:
    """Return terms as tested differences, whose p-values are corrected as one family.

    Paired terms use the test of `statistics` on their differences. The others compare two samples of queries, where
    flipping signs is no test; they use `compare_samples`, and have no wins, ties or losses.
    """
    paired: list[Difference] = []
    if any(is_paired):
        some = [term for term, own in zip(terms, is_paired, strict=True) if own]
        rows, weights = (np.array([getattr(term, name) for term in some]) for name in ("differences", "weights"))
        result = compare(rows, replace(statistics, correction="none"), clusters, weights)
        paired = [replace(result.describe(row), mean=term.effect) for row, term in enumerate(some)]
    of_pairs = iter(paired)
    tested = [
        next(of_pairs) if own else compare_samples(term, statistics.confidence, clusters)
        for term, own in zip(terms, is_paired, strict=True)
    ]
    p_values = correct(np.array([own.p for own in tested]), statistics.correction).tolist()
    return [
        replace(own, corrected=p_value, significant=p_value < statistics.alpha)
        for own, p_value in zip(tested, p_values, strict=True)
    ]


def compare_samples(term: Attribution, confidence: float, clusters: Clusters | None) -> Difference:
    """Return a term with its interval and p-value if it compares two samples of queries, which may overlap.

    Student's t with the degrees of freedom of Welch (1947) and Satterthwaite (1946); without a common query, this is
    Welch's test. Queries that only one sample has count as drawn at random, so a single new query is never significant.
    """
    from scipy.special import stdtr, stdtrit

    there = ~np.isnan(term.errors)
    patterns, errors = term.patterns[there], term.errors[there]
    if clusters is not None:
        _, first, numbers = np.unique(clusters[there], return_index=True, return_inverse=True)
        patterns, errors = patterns[first], np.bincount(numbers, weights=errors).astype(np.float64)
    sizes, variances = np.bincount(patterns), np.bincount(patterns, errors**2)
    variance = float(variances.sum())
    if len(errors) < 2 or math.isnan(term.effect):
        return Difference(term.effect, p=1.0)
    if variance < 1e-24:  # every query has the same influence
        return Difference(term.effect, term.effect, term.effect, float(abs(term.effect) < 1e-12))
    freedom = variance**2 / float((variances**2 / np.maximum(sizes - 1, 1)).sum())
    half = float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(variance)
    p_value = 2 * float(stdtr(freedom, -abs(term.effect) / math.sqrt(variance)))
    return Difference(term.effect, term.effect - half, term.effect + half, p_value)


def iter_coalitions(steps: Sequence[Step]) -> Iterator[Coalition]:
    """Yield the coalitions that steps compare, each once."""
    yield from dict.fromkeys(coalition for _, *pair in steps for coalition in pair)
