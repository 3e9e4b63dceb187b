"""Measure how much the best of several systems gains by being chosen: the largest of their means less the mean of all.

Systems are rows, queries are columns, and NaN marks a query that does not count for a system. Even equal systems have
different means on a sample of queries, and the best of them looks better than it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.statistics.blas import single_threaded
from runner.statistics.clusters import Clusters, by_cluster
from runner.statistics.signs import sign_blocks

Floats = NDArray[np.float64]

_FLIPS = 1000
"""How many assignments of signs are averaged; the standard error of the mean is then some 2 % of it."""


@dataclass(frozen=True)
class SearchGain:
    """The gain of the best of `systems` over the mean of all: what was `observed`, and what equal systems `expected`.

    Both are NaN with fewer than two systems or queries (clusters).
    """

    systems: int = 0
    observed: float = math.nan
    expected: float = math.nan


def measure_search_gain(scores: Floats, clusters: Clusters | None = None, seed: int = 0) -> SearchGain:
    """Return the gain of the best of some systems (m x queries), and the one to expect if all of them were equal.

    Equal systems differ in their means by the noise of the queries alone. This noise is drawn by random signs for the
    centred scores of each query (or cluster), the same for all systems (the wild bootstrap; Wu 1986), so it has the
    variances and the correlations of the scores: the best of many similar systems gains little. Scores are centred by
    system, or true differences between systems would count as noise. Dealing the scores of a query to systems at
    random would make them all equally similar to each other, and counts true differences, too
    (`benchmarks.simulations.search_gain` compares these).
    """
    scores = scores[~np.isnan(scores).all(axis=1)]
    units = by_cluster(scores, clusters)
    m, n = len(scores), int(units.independent.min(initial=scores.shape[1]))
    if m < 2 or n < 2:
        return SearchGain(m)
    means = units.means
    # Subtracting the mean of all systems changes no gain; the residuals of a sample are too small by n / (n - 1).
    noise = (units.residuals / units.counts.sum(axis=1, keepdims=True)) * math.sqrt(n / (n - 1))
    gains = []
    for signs in sign_blocks(units.sums.shape[1], _FLIPS, seed):
        with single_threaded():
            drawn = noise @ signs.T
        gains.append(drawn.max(axis=0) - drawn.mean(axis=0))
    return SearchGain(m, float(means.max() - means.mean()), float(np.concatenate(gains).mean()))
