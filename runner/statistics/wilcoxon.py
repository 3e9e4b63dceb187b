"""Compute Wilcoxon's signed-rank test (1945) and the signed ranks."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXACT = 50
"""Up to this number of queries the p-value is exact, unless differences are 0 or tied."""

EXACT_ALWAYS = 13
"""Up to this number of queries it is always exact: there are at most 8,192 assignments of signs."""


def compute_signed_ranks(differences: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return the signed ranks of differences (m x queries) by size, and how many share the size of each.

    Both are 0 where there is no difference or it is unknown (NaN). Ties share their mean rank.
    """
    from scipy.stats import rankdata

    differing = ~np.isnan(differences) & (differences != 0)
    sizes = np.where(differing, np.abs(differences), np.inf)  # last, where they change no other rank
    least, most = (rankdata(sizes, method=method, axis=1) for method in ("min", "max"))
    ranks = np.sign(np.nan_to_num(differences)) * (least + most) / 2
    return ranks, np.where(differing, most - least + 1, 0).astype(np.int64)


def wilcoxon_test(differences: Floats) -> Floats:
    """Return the two-sided p-values of paired differences (m x queries) by their signed ranks (m,).

    Zeros are dropped, as by Wilcoxon. The test is exact for few queries, as in scipy; otherwise it uses the normal
    approximation with the correction for ties and without a continuity correction.
    """
    from scipy.special import ndtr

    ranks, equals = compute_signed_ranks(differences)
    n, differing = np.count_nonzero(~np.isnan(differences), axis=1), np.count_nonzero(ranks, axis=1)
    less, expected = np.minimum(ranks.clip(0).sum(axis=1), -ranks.clip(None, 0).sum(axis=1)), _sum_to(differing) / 2
    variance = (_sum_to(differing) * (2 * differing + 1) - (equals**2 - np.sign(equals)).sum(axis=1) / 4) / 12
    p_values = np.ones(len(differences))
    np.divide(less - expected, np.sqrt(variance), out=p_values, where=differing > 0)
    p_values = np.where(differing > 0, 2 * ndtr(p_values), 1.0)
    plain = (differing == n) & (equals <= 1).all(axis=1)
    for row in np.flatnonzero((differing > 0) & ((n <= EXACT_ALWAYS) | (plain & (n <= EXACT)))):
        doubled = np.sort(np.abs(2 * ranks[row][ranks[row] != 0])).astype(np.int64)
        p_values[row] = min(1.0, 2 * _at_most(tuple(doubled.tolist()))[int(2 * less[row])])
    return p_values


def _sum_to(n: NDArray[np.int64]) -> NDArray[np.int64]:
    return n * (n + 1) // 2


@lru_cache(maxsize=256)  # without ties, systems with equally many differences have the same ranks
def _at_most(ranks: tuple[int, ...]) -> Floats:
    """Return the probability that the ranks of one sign sum to at most each number, if all signs are equally likely."""
    chances = np.zeros(sum(ranks) + 1)
    chances[0] = 1
    for rank in ranks:
        chances[rank:] += chances[: len(chances) - rank].copy()
        chances /= 2
    return np.cumsum(chances)
