"""Measure the rank correlation of two columns, with its confidence interval and p-value.

A correlation need not be cause and effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.statistics.clusters import Clusters
from runner.statistics.coefficients import correlate_ranks
from runner.statistics.significance import cluster_means

Floats = NDArray[np.float64]

FEWEST = 5
"""The fewest pairs for which a correlation is computed."""


@dataclass(frozen=True)
class RankCorrelation:
    """A rank correlation of `n` pairs, its confidence interval and its two-sided p-value.

    The interval is None for a perfect correlation, for which the method has none.
    """

    n: int
    rho: float
    interval: tuple[float, float] | None
    p_value: float


def spearman(x: Floats, y: Floats, confidence: float = 0.95, clusters: Clusters | None = None) -> RankCorrelation | str:
    """Return Spearman's correlation of the pairs that have both values, or the reason why there is none.

    With clusters, the means of the pairs of each cluster count as one pair. The interval is Fisher's with the variance
    of Bonett & Wright (2000), (1 + rho^2 / 2) / (n - 3); the p-value is from orders of one column if n is small
    (`correlate_ranks`).
    """
    both = np.isfinite(x) & np.isfinite(y)
    x, y = x[both], y[both]
    if clusters is not None:  # rounded, so that equal means are ties
        x, y = np.round(cluster_means(np.stack([x, y]), clusters[both]), 12)
    n = len(x)
    if n < FEWEST:
        return f"insufficient_paired_data (n={n}, need >= {FEWEST})"
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return "no_variation (all values of one are the same)"
    rho, p_value = correlate_ranks(x, y)
    return RankCorrelation(n, rho, _interval(rho, n, confidence), p_value)


def _interval(rho: float, n: int, confidence: float) -> tuple[float, float] | None:
    from scipy.special import ndtri

    if math.isclose(abs(rho), 1, abs_tol=1e-12):
        return None
    reach = float(ndtri((1 + confidence) / 2)) * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return math.tanh(math.atanh(rho) - reach), math.tanh(math.atanh(rho) + reach)
