"""How sure a mean is, and whether a difference between systems is more than luck.

Systems are rows, queries are columns, and NaN is a query that does not count for a system. Every system sees the same
resamples, drawn from a seed. Knows nothing of measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Floats = NDArray[np.float64]

EXACT_QUERIES = 12
"""Up to so many queries every assignment of signs is tried (4,096), not a sample of them."""

_BLOCK = 1 << 20
"""How many numbers a block of resamples has at most. It must not depend on the systems: nor may a result."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Systems (m) against one of them, the reference, by the same queries.

    The mean paired `differences` to the reference, the `p_values` of these, corrected for the number of systems (Holm
    1979), and how many queries each system wins, ties and loses against the reference.
    """

    differences: Floats
    p_values: Floats
    significant: NDArray[np.bool_]
    wins: NDArray[np.int64]
    ties: NDArray[np.int64]
    losses: NDArray[np.int64]


def compare_to(
    reference: int, scores: Floats, alpha: float = 0.05, permutations: int = 10000, seed: int = 0
) -> Comparison:
    """Compare systems (m x queries) to one of them. The reference itself has p = 1 and is not corrected for."""
    differences = scores - scores[reference]
    p_values = permutation_test(differences, permutations, seed)
    others = np.arange(len(scores)) != reference
    corrected = np.ones(len(scores))
    corrected[others] = holm(p_values[others])
    signs = np.sign(np.where(np.abs(differences) < 1e-12, 0, differences))
    return Comparison(
        differences=_means(differences),
        p_values=corrected,
        significant=corrected < alpha,
        wins=np.count_nonzero(signs == 1, axis=1),
        ties=np.count_nonzero(signs == 0, axis=1),
        losses=np.count_nonzero(signs == -1, axis=1),
    )


def bootstrap_interval(values: Floats, confidence: float = 0.95, resamples: int = 2000, seed: int = 0) -> Floats:
    """Return the percentile interval of the mean over queries (Efron 1979).

    `values` are one system (queries) or several (m x queries); the result is (2) or (m x 2), NaN without a query.
    """
    rows = np.atleast_2d(values)
    n = rows.shape[1]
    present = (~np.isnan(rows)).astype(np.float64)
    filled = np.nan_to_num(rows)
    means = np.repeat(_means(rows)[:, None], resamples, axis=1)
    # One thread: so small a product gains little by more, and on a busy machine waits long for them.
    with _blas().limit(limits=1, user_api="blas"):
        for start, size in _blocks(resamples, n):
            times = _times_drawn(n, size, seed, start)
            counts = np.float64(n) if present.all() else present @ times
            np.divide(filled @ times, counts, out=means[:, start : start + size], where=counts > 0)
    low = (1 - confidence) / 2
    intervals: Floats = np.quantile(means, [low, 1 - low], axis=1).T.reshape(*values.shape[:-1], 2)
    return intervals


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def permutation_test(differences: Floats, resamples: int = 10000, seed: int = 0) -> Floats:
    """Return the two-sided p-values of paired differences (m x queries) under random flips of their signs (m).

    Exact for few queries; else the p-value counts the observed signs as one more resample (Phipson & Smyth 2010), so
    that it is never 0. The statistic is the mean; a query without a difference has no say.
    """
    filled = np.nan_to_num(differences)
    n = filled.shape[1]
    least = np.abs(filled.sum(axis=1)) - 1e-12 * np.abs(filled).sum(axis=1)
    if n <= EXACT_QUERIES:
        flips = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        return _extreme(flips, filled, least) / len(flips)
    extreme = np.zeros(len(filled), dtype=np.int64)
    rng = np.random.default_rng(seed)
    for _, size in _blocks(resamples, n):
        extreme += _extreme(rng.integers(0, 2, size=(size, n), dtype=np.int8), filled, least)
    return (extreme + 1) / (resamples + 1)


def holm(p_values: Floats) -> Floats:
    """Return p-values corrected for their number, so that any false discovery stays unlikely (Holm 1979)."""
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(stepped, 1)
    return corrected


@lru_cache(maxsize=8)  # a sweep asks for the same ones again and again
def _times_drawn(n: int, resamples: int, seed: int, start: int) -> Floats:
    """Return how often each of n queries is in each of a block of resamples (n x resamples)."""
    drawn = np.random.default_rng([seed, start]).integers(0, max(n, 1), size=(n, resamples))
    cells = (drawn * resamples + np.arange(resamples)).ravel()
    return np.bincount(cells, minlength=n * resamples).reshape(n, resamples).astype(np.float64)


def _extreme(flips: NDArray[np.integer], differences: Floats, least: Floats) -> NDArray[np.int64]:
    sums = (1.0 - 2.0 * flips) @ differences.T
    counts: NDArray[np.int64] = np.count_nonzero(np.abs(sums) >= least, axis=0)
    return counts


def _blocks(resamples: int, n: int) -> list[tuple[int, int]]:
    """Return where each block of resamples starts and how many it has."""
    size = min(max(_BLOCK // max(n, 1), 1), 1000)
    return [(start, min(size, resamples - start)) for start in range(0, resamples, size)]


def _means(values: Floats) -> Floats:
    counts = np.count_nonzero(~np.isnan(values), axis=1)
    means = np.full(len(values), np.nan)
    np.divide(np.nansum(values, axis=1), counts, out=means, where=counts > 0)
    return means
