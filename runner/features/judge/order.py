"""Order the pairs of a pool for judging: by how much they can change the ranking of systems, or by their best ranks.

`decisive` estimates the relevance of unjudged pairs from their ranks and the grades so far, and takes the pairs that
can change the undecided differences between systems most (in the spirit of the minimal test collections of Carterette,
Allan and Sitaraman 2006). `depth` and `prominence` take the best ranks first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrievers.choices import OneOf

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

UNJUDGED = -1
"""The grade of an unjudged pair."""

_ROUNDS = 15
_RIDGE = 5.0
_QUERY_RIDGE = 0.3
_MOST_COLUMNS = 40
_BATCHES = 20
"""The number of batches in which pairs are drawn; undecided differences are estimated again after each."""


@dataclass(frozen=True)
class RankedPool:
    """The pairs of a pool (N,): their queries, and their ranks in each system (systems x N), from 1; 0 for none."""

    queries: Ints
    ranks: Ints

    @property
    def discounts(self) -> Floats:
        """Return the weight of each pair's gain in each system's mean DCG (systems x N)."""
        ranks = np.maximum(self.ranks, 1)
        return np.where(self.ranks > 0, 1 / np.log2(ranks + 1), 0.0) / max(len(np.unique(self.queries)), 1)

    @property
    def best(self) -> Ints:
        """Return the best rank of each pair (N,)."""
        best: Ints = np.where(self.ranks > 0, self.ranks, np.iinfo(np.int64).max).min(axis=0)
        return best


def order_pairs(order: str, pool: RankedPool, grades: Ints, size: int) -> list[int]:
    """Return the next pairs to judge, best first, at most `size`, given the grades so far (`UNJUDGED` for none)."""
    return ORDERS[order].choose(pool, grades, size)


def _order_by_depth(pool: RankedPool, grades: Ints, size: int) -> list[int]:
    return _take_unjudged(np.lexsort((pool.queries, pool.best)), grades, size)


def _order_by_prominence(pool: RankedPool, grades: Ints, size: int) -> list[int]:
    systems = np.count_nonzero(pool.ranks, axis=0)
    return _take_unjudged(np.lexsort((pool.queries, -systems, pool.best)), grades, size)


def _take_unjudged(ordered: Ints, grades: Ints, size: int) -> list[int]:
    return [int(pair) for pair in ordered[grades[ordered] == UNJUDGED][:size]]


def expect_grades(pool: RankedPool, grades: Ints) -> tuple[Floats, Floats]:
    """Return the mean and the variance of each pair's grade (N,), given its ranks and the grades so far.

    Judged pairs are certain.

    The probability of relevance follows a logistic model of the ranks, fitted to the judged pairs, with an effect of
    each query that shrinks to 0 where few of its pairs are judged.
    """
    judged = grades != UNJUDGED
    features, relevant = _describe_ranks(pool), (grades > 0).astype(np.float64)
    logits = _prior_logits(pool)
    # grades of one kind would move every chance to 0 or 1, and no difference between systems would be open
    if 0 < relevant[judged].sum() < judged.sum():
        logits = features @ _fit_logistic(features[judged], relevant[judged])
    # without the effects, the chances in a query whose pairs all turned out to be relevant would stay average
    chance = _to_chance(logits + _fit_queries(pool.queries, logits, judged, relevant)[pool.queries])
    gold = grades[grades > 0].astype(np.float64)
    gold = gold if len(gold) else np.ones(1)
    mean, square = gold.mean(), (gold**2).mean()
    expected = np.where(judged, grades, chance * mean)
    variance = np.where(judged, 0.0, chance * square - (chance * mean) ** 2)
    return expected, variance


def _order_decisive(pool: RankedPool, grades: Ints, size: int) -> list[int]:
    size = min(size, int((grades == UNJUDGED).sum()))
    weights, chosen = pool.discounts, np.zeros(len(grades), dtype=np.bool_)
    mean, variance = expect_grades(pool, grades)
    order, batch, scores = list[int](), max(-(-size // _BATCHES), 1), weights @ mean
    while len(order) < size:
        gain = np.where((grades == UNJUDGED) & ~chosen, _information(weights, scores, variance), -np.inf)
        taken = np.argsort(-gain, kind="stable")[: min(batch, size - len(order))]
        chosen[taken] = True
        variance[taken] = 0.0  # these will be judged; otherwise all batches would go to the same open difference
        order += taken.tolist()
    return order


def _information(weights: Floats, scores: Floats, variance: Floats) -> Floats:
    """Return by how much each pair's grade reduces the undecided differences between systems (N,).

    A difference between two systems is undecided by the density at 0 of its normal distribution; the share of a pair is
    its variance times the squared difference of its weights.
    """
    scaled = weights * np.sqrt(variance)
    covariance = scaled @ scaled.T
    # a document that two systems have at one rank moves both alike: their difference varies less than their sum
    spread = np.maximum(covariance.diagonal()[:, None] + covariance.diagonal() - 2 * covariance, 1e-12)
    open_ = np.exp(-((scores[:, None] - scores) ** 2) / (2 * spread)) / spread
    np.fill_diagonal(open_, 0)
    # the sum over pairs of systems of open_ times the squared difference of weights, as a quadratic form in the weights
    laplacian = np.diag(open_.sum(axis=1)) - open_
    share: Floats = variance * (weights * (laplacian @ weights)).sum(axis=0)
    return share


def _describe_ranks(pool: RankedPool) -> Floats:
    """Return the features of each pair, a row each.

    They are a constant, the share of systems that have the pair, its reciprocal ranks over all systems, and how high
    each system ranks it: a system that finds more of what is relevant gets a greater weight. Of many systems,
    neighbours share a column.
    """
    reciprocal = np.where(pool.ranks > 0, 1 / np.maximum(pool.ranks, 1), 0.0)
    mean = reciprocal.mean(axis=0)
    share = (pool.ranks > 0).mean(axis=0)
    deepest = max(int(pool.ranks.max(initial=0)), 1)
    height = np.where(pool.ranks > 0, np.log((deepest + 1) / np.maximum(pool.ranks, 1)), 0.0)
    columns = [group.mean(axis=0) for group in np.array_split(height, min(len(height), _MOST_COLUMNS))]
    return np.stack([np.ones(len(mean)), share, mean, reciprocal.max(axis=0), np.sqrt(mean), *columns], axis=1)


def _prior_logits(pool: RankedPool) -> Floats:
    chance = 0.1 + 0.5 * np.where(pool.ranks > 0, 1 / np.maximum(pool.ranks, 1), 0.0).mean(axis=0)
    logits: Floats = np.log(chance / (1 - chance))
    return logits


def _fit_queries(queries: Ints, logits: Floats, judged: NDArray[np.bool_], relevant: Floats) -> Floats:
    """Return the effect of each query on the logits, by Newton's method with a ridge penalty."""
    n = int(queries.max(initial=0)) + 1
    own, effects = queries[judged], np.zeros(n)
    for _ in range(_ROUNDS):
        chance = _to_chance(logits[judged] + effects[own])
        surprise = np.bincount(own, relevant[judged] - chance, n) - _QUERY_RIDGE * effects
        curvature = np.bincount(own, chance * (1 - chance), n) + _QUERY_RIDGE
        effects += np.clip(surprise / curvature, -1, 1)  # a full step can overshoot where a query surprises
    return effects


def _fit_logistic(features: Floats, relevant: Floats) -> Floats:
    """Return the coefficients of a logistic regression with a ridge penalty, by Newton's method."""
    penalty = np.full(features.shape[1], _RIDGE)  # one relevant document must not decide the weight of a system
    penalty[0] = 1e-3  # the constant is free: the share of relevant pairs differs between collections
    weights = np.zeros(features.shape[1])
    for _ in range(_ROUNDS):
        chance = _to_chance(features @ weights)
        gradient = features.T @ (chance - relevant) + penalty * weights
        curvature = (features * (chance * (1 - chance))[:, None]).T @ features + np.diag(penalty)
        weights -= np.linalg.solve(curvature, gradient)
    return weights


def _to_chance(logits: Floats) -> Floats:
    chance: Floats = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
    return chance


class JudgingOrder(NamedTuple):
    """An order of judging: what it puts first, and the function that returns the next pairs."""

    description: str
    choose: Callable[[RankedPool, Ints, int], list[int]]


ORDERS: Mapping[str, JudgingOrder] = {
    "decisive": JudgingOrder("pairs that can change the ranking of systems most", _order_decisive),
    "prominence": JudgingOrder(
        "the best ranks first, and among these the documents of most systems", _order_by_prominence
    ),
    "depth": JudgingOrder("the best ranks first", _order_by_depth),
}

PairOrder = Annotated[
    str,
    OneOf({"random": "a random sample, which can correct a judge"} | {n: own.description for n, own in ORDERS.items()}),
]
"""How pairs are chosen for people to grade."""
