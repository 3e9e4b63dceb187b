"""Compute effect sizes, and how many queries it takes to detect a difference.

Differences are paired (m x queries), and NaN marks a query that does not count. With clusters, clusters take the place
of queries.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from runner.statistics.clusters import Clusters
from runner.statistics.significance import moments

Floats = NDArray[np.float64]


def cohens_d(differences: Floats, clusters: Clusters | None = None, weights: Floats | None = None) -> Floats:
    """Return Cohen's d_z (1988), the mean difference in units of its standard deviation (m,); NaN below two queries.

    It is 0 where all differences are 0, and infinite where all are equal and not 0.
    """
    _, means, deviations = moments(differences, clusters, weights)
    with np.errstate(divide="ignore"):
        return np.divide(means, deviations, out=np.zeros_like(means), where=(means != 0) | (deviations != 0))


def hedges_g(differences: Floats, clusters: Clusters | None = None, weights: Floats | None = None) -> Floats:
    """Return Cohen's d_z without its small-sample bias (Hedges 1981, exact factor) (m,); NaN below three queries."""
    from scipy.special import gammaln

    degrees = np.maximum(moments(differences, clusters, weights)[0] - 1.0, 1)
    factor = np.exp(gammaln(degrees / 2) - gammaln((degrees - 1) / 2)) * np.sqrt(2 / degrees)
    return cohens_d(differences, clusters, weights) * np.where(degrees > 1, factor, np.nan)


def power(queries: Floats, effect: Floats, alpha: float | Floats = 0.05) -> Floats:
    """Return the power of a two-sided paired t-test for an effect (d_z) with this many queries, at least 2.

    The test statistic has a noncentral t distribution (Cohen 1988; Faul et al. 2007).
    """
    from scipy.special import nctdtr, stdtrit

    # From the lower tail, which has a quantile for any level: 1 - alpha / 2 is 1 below 1e-16.
    least, centre = -stdtrit(queries - 1, alpha / 2), np.abs(effect) * np.sqrt(queries)
    # Compute both tails as lower tails, by symmetry; scipy.stats has the upper tail but takes half a second to import.
    upper, lower = nctdtr(queries - 1, -centre, -least), nctdtr(queries - 1, centre, -least)
    chance: Floats = upper + np.where(np.isnan(lower), 0.0, lower)  # NaN where it underflows for a large effect
    return chance


def queries_needed(
    differences: Floats, deviations: Floats, alpha: float | Floats = 0.05, chance: float = 0.8
) -> Floats:
    """Return how many queries a paired t-test needs to detect mean differences with power `chance` (m,).

    `deviations` are the standard deviations of the differences of single queries, and `alpha` the level of all tests or
    of each. Infinite for a difference of 0 and for a level of 0, NaN where the deviation is unknown.
    """
    from scipy.special import ndtri

    levels = np.broadcast_to(alpha, differences.shape)
    impossible = (differences == 0) | (levels <= 0)
    needed = np.where(impossible, np.inf, np.where(deviations == 0, 2.0, np.nan))
    seen = ~impossible & (deviations > 0)
    alpha = levels[seen]
    effects = np.abs(differences[seen] / deviations[seen])
    # With a known deviation (the normal approximation), this many queries suffice: slightly fewer than for a t-test.
    low, high = np.ones_like(effects), np.maximum(2, np.ceil(((ndtri(chance) - ndtri(alpha / 2)) / effects) ** 2))
    while (short := power(high, effects, alpha) < chance).any():
        low, high = np.where(short, high, low), np.where(short, 2 * high, high)
    while ((high - low) > np.maximum(1, np.spacing(high))).any():  # within the resolution of floats of this size
        middle = np.maximum(np.floor((low + high) / 2), 2)
        short = power(middle, effects, alpha) < chance
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    needed[seen] = high
    return needed


def detectable_difference(
    queries: NDArray[np.int64], deviations: Floats, alpha: float | Floats = 0.05, chance: float = 0.8
) -> Floats:
    """Return the smallest mean differences that a paired t-test detects with power `chance` on these queries (m,).

    `deviations` are the standard deviations of the differences of single queries, and `alpha` the level of all tests or
    of each; `chance` is above it. Infinite for a level of 0, NaN below two queries and where the deviation is unknown.
    """
    from scipy.special import stdtrit

    levels = np.broadcast_to(alpha, queries.shape)
    effects = np.where(queries > 1, np.inf, np.nan)
    possible = (queries > 1) & (levels > 0)
    # Most rows have the same number of queries and the same level: each pair of these has one effect.
    (n, alpha), row = np.unique(np.stack([queries, levels])[:, possible], axis=1, return_inverse=True)
    low, high = np.zeros(len(n)), 10 * (1 - stdtrit(n - 1, alpha / 2)) / np.sqrt(n)
    while ((high - low) > 1e-10 * high).any():
        middle = (low + high) / 2
        short = power(n, middle, alpha) < chance
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    effects[possible] = high[row]
    return np.multiply(effects, deviations, out=np.where(queries > 1, 0.0, np.nan), where=deviations != 0)
