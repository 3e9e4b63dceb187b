"""Correct the p-values of many tests for their number.

The corrections do not depend on the test, except for the randomised Tukey test, which is test and correction in one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from runner.analysis.clusters import Clusters, by_cluster

if TYPE_CHECKING:
    from runner.metrics.statistics import Correction

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tukey:
    """The p-values of all pairs of systems (m x m), and how far apart two means must be to differ at a level."""

    p_values: Floats
    least_difference: float

    def intervals(self, differences: Floats) -> Floats:
        """Return the intervals of mean differences (m x queries) that exclude 0 where the p-value is below the level.

        They are simultaneous for all pairs (m x 2), and NaN if no query counts.
        """
        means = by_cluster(differences, None).means
        return np.stack([means - self.least_difference, means + self.least_difference], axis=1)


def correct(p_values: Floats, correction: Correction) -> Floats:
    """Return the p-values of a family of tests, corrected by the named correction.

    Raises `ValueError` for Tukey's correction, which needs scores. Max-T needs them too; Holm's correction, which only
    needs p-values, replaces it.
    """
    match correction:
        case "none":
            return p_values.copy()
        case "holm" | "maxt":
            return holm(p_values)
        case "bh":
            return benjamini_hochberg(p_values)
        case "tukey":
            raise ValueError(
                "correction=tukey: only corrects tests of all pairs of systems on a single measure; choose holm, bh or "
                "none"
            )


def level_of_each(p_values: Floats, level: float, correction: Correction) -> float:
    """Return the level for single p-values that is equivalent to a level for corrected p-values.

    For Holm's correction, this is the level of its last step; for Benjamini and Hochberg's, that of intervals with a
    controlled false coverage rate (Benjamini & Yekutieli 2005).
    """
    tests, significant = len(p_values), int(np.count_nonzero(correct(p_values, correction) < level))
    if correction == "none" or not tests:
        return level
    return level * max(significant, 1) / tests if correction == "bh" else level / max(tests - significant, 1)


def holm(p_values: Floats) -> Floats:
    """Return p-values corrected to control the family-wise error rate (Holm 1979)."""
    order = np.argsort(p_values, kind="stable")
    corrected = np.empty(len(p_values))
    corrected[order] = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    return np.minimum(corrected, 1)


def benjamini_hochberg(p_values: Floats) -> Floats:
    """Return p-values corrected to control the false discovery rate (Benjamini & Hochberg 1995)."""
    n = len(p_values)
    order = np.argsort(-p_values, kind="stable")
    corrected = np.empty(n)
    corrected[order] = np.minimum.accumulate(p_values[order] * n / np.arange(n, 0, -1))
    return corrected


def run_randomised_tukey(
    scores: Floats, permutations: int = 10000, seed: int = 0, *, level: float = 0.05, clusters: Clusters | None = None
) -> Tukey:
    """Return the p-values of all pairs of systems (m x queries), corrected for their number.

    This is Tukey's honestly significant difference by randomisation: the scores of each query (or the sums of each
    cluster) are dealt to the systems at random, and the difference of a pair is compared with the largest among all
    pairs (Carterette 2012). The observed scores count as one more permutation. Where a query does not count for a
    system, the mean of the other systems is used. Systems that share no query have p = 1.
    """
    counted = ~np.isnan(scores)
    known = counted.any(axis=1)
    p_values = np.ones((len(scores), len(scores)))
    if not known.any():
        return Tukey(p_values, np.nan)
    some, queries = scores[known][:, counted.any(axis=0)], None if clusters is None else clusters[counted.any(axis=0)]
    # Subtract the mean of each query, which changes no difference, and round away errors where there is no difference.
    centred = by_cluster(np.round(np.nan_to_num(some - np.nanmean(some, axis=0)), 12), queries).sums
    sums = centred.sum(axis=1)
    rng, dealt = np.random.default_rng(seed), centred.T.copy()
    ranges = np.empty(permutations)
    for i in range(permutations):
        rng.permuted(dealt, axis=1, out=dealt)
        ranges[i] = np.ptp(dealt.sum(axis=0))
    ranges.sort()
    slack = 1e-12 * np.abs(centred).sum()
    least = np.abs(sums[:, None] - sums) - slack
    p_values[np.ix_(known, known)] = (permutations - np.searchsorted(ranges, least) + 1) / (permutations + 1)
    p_values[counted.astype(np.float64) @ counted.T == 0] = 1
    most = math.ceil(level * (permutations + 1) - 1e-9) - 2
    return Tukey(p_values, (ranges[-most - 1] + slack) / some.shape[1] if most >= 0 else np.nan)
