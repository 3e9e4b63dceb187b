"""Test the mean of bounded paired differences by betting: valid at any level and whenever one stops.

A gambler bets on each query that the mean is higher than a hypothesis allows. The capital, which starts with 1, reaches
1 / level at any time with a probability of at most the level if the hypothesis is true (Ville 1939; Waudby-Smith and
Ramdas 2024, "Estimating means of bounded random variables by betting"). No distribution is assumed but that queries are
drawn independently, or in random order from a finite set (Waudby-Smith and Ramdas 2020). The bets are those of a race.
"""

from __future__ import annotations

import math

import numpy as np

from runner.statistics.clusters import Clusters, by_cluster
from runner.statistics.racing import BETS, Floats, log_growth


def bet(gains: Floats, bound: float, most_lost: float, whole: int | None = None) -> Floats:
    """Return the logarithm of the capital after each query (m x n), given the gains (m x n) in the order of the search.

    The hypothesis is that the mean gain is at most `bound`: of all queries that could be drawn or, if `whole` is given,
    of a set of that many queries from which these are drawn. A gain is at least `-most_lost`.
    """
    bounds: Floats | float = bound
    if whole is not None:
        sums, seen = np.cumsum(gains, axis=-1), np.arange(1, gains.shape[-1] + 1)
        bounds = (bound * whole - sums + gains) / (whole - seen + 1)
    logs = np.cumsum(log_growth(gains, bounds, most_lost), axis=-2)
    pooled: Floats = np.logaddexp.reduce(logs, axis=-1) - math.log(len(BETS))
    if whole is not None:  # the remaining queries cannot make up for it
        pooled[sums - most_lost * (whole - seen) > bound * whole + 1e-9] = np.inf
    return pooled


def bet_against_loss(differences: Floats, limit: float, span: float, clusters: Clusters | None = None) -> float:
    """Return the p-value of the hypothesis that the mean loss is at least `limit`, given all differences (n,).

    NaN marks a query that does not count, and `span` is the largest possible loss. With clusters, the gambler bets on
    each cluster, in the units of the largest one.
    """
    units = by_cluster(differences[None] + limit, clusters)
    largest = units.counts.max(initial=1.0)
    capital = bet(units.sums / largest, 0.0, span - limit)[:, -1:] if units.sums.size else np.zeros((1, 1))
    return min(1.0, math.exp(-float(capital.max(initial=0.0))))
