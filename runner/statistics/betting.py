"""Test the mean of bounded paired differences by betting: valid at any level and whenever one stops.

A gambler bets on each query that the mean is higher than a hypothesis allows. The capital, which starts with 1, reaches
1 / level at any time with a probability of at most the level if the hypothesis is true (Ville 1939; Waudby-Smith and
Ramdas 2024, "Estimating means of bounded random variables by betting"). No distribution is assumed but that queries are
drawn independently, or in random order from a finite set (Waudby-Smith and Ramdas 2020). The bets are those of a race.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from runner.statistics.clusters import Clusters, by_cluster
from runner.statistics.racing import BETS, Floats, log_growth


def bet(gains: Floats, most_lost: float, whole: int | None = None) -> Floats:
    """Return the logarithm of the capital after each query (m x n), given the gains (m x n) in the order of the search.

    The hypothesis is that the mean gain is at most 0: of all queries that could be drawn or, if `whole` is given, of a
    set of that many queries from which these are drawn. A gain is at least `-most_lost`.
    """
    bounds: Floats | float = 0.0
    if whole is not None:
        sums, left = np.cumsum(gains, axis=-1), whole - np.arange(1, gains.shape[-1] + 1)
        bounds = (gains - sums) / (left + 1)
    logs = np.cumsum(log_growth(gains, bounds, most_lost), axis=-2)
    pooled: Floats = np.logaddexp.reduce(logs, axis=-1) - math.log(len(BETS))
    if whole is not None:
        pooled[sums - most_lost * left > 1e-9] = np.inf  # the remaining queries cannot make up for it
    return pooled


def bet_against_loss(differences: Floats, limit: float, span: float, clusters: Clusters | None = None) -> float:
    """Return the p-value of the hypothesis that the mean loss is at least `limit`, given all differences (n,).

    NaN marks a query that does not count, and `span` is the largest possible loss. With clusters, the gambler bets on
    each cluster, in the units of the largest one.
    """
    units = by_cluster(differences[None] + limit, clusters)
    capital = bet(units.sums / units.counts.max(initial=1.0), span - limit)[:, -1:]
    return math.exp(-float(capital.max(initial=0.0)))


@dataclass(frozen=True)
class SequentialTest:
    """A test of a loss that may be looked at after each of `whole` units in random order: queries, or their clusters.

    It passes if a mean loss of the limit or more is excluded at `pass_level`, and fails if a loss is shown at
    `fail_level`; each of these errors has at most its level, whenever one stops. If it is `finite`, it passes if the
    mean loss of all these units is at most the limit, and fails only if that is larger and a loss is shown. The largest
    unit has `largest` queries.
    """

    limit: float
    span: float
    pass_level: float
    fail_level: float
    whole: int
    finite: bool
    largest: float = 1.0

    def find_stops(self, sums: Floats, counts: Floats) -> tuple[Floats, Floats]:
        """Return after how many units each sample passes and fails (m,), infinite if it does not.

        `sums` are the sums of the differences of the queries of each unit, and `counts` their numbers (m x n).
        """
        above, whole = (sums + self.limit * counts) / self.largest, self.whole if self.finite else None
        passes = _find_first(bet(above, self.span - self.limit, whole), self.pass_level)
        fails = _find_first(bet(-sums / self.largest, self.span), self.fail_level)
        if self.finite:
            beyond = _find_first(bet(-above, self.span + self.limit, whole), self.fail_level)
            fails = np.maximum(fails, beyond)
            if sums.shape[1] == self.whole:
                passes = np.where(above.sum(axis=1) >= -1e-9, np.minimum(passes, self.whole), passes)
        return passes, fails

    def bound_mean(self, sums: Floats, counts: Floats) -> tuple[float, float]:
        """Return an interval of the mean difference (of one sample, n each) that holds whenever one stops.

        Each end errs with a probability of at most half of the sum of both levels.
        """
        level = (self.pass_level + self.fail_level) / 2

        def find_lower(sums: Floats) -> float:
            low, high = -self.span, self.span
            for _ in range(40):
                middle = (low + high) / 2
                capital = bet((sums - middle * counts)[None] / self.largest, self.span + middle)
                low, high = (middle, high) if capital.max(initial=0.0) >= -math.log(level) else (low, middle)
            return low

        return find_lower(sums), -find_lower(-sums)


def _find_first(capital: Floats, level: float) -> Floats:
    """Return after how many units the capital reaches 1 / level (m,), infinite if it does not."""
    reached = capital >= -math.log(level)
    first: Floats = np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, np.inf)
    return first
