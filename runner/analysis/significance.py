"""How sure a mean is, and whether a difference between systems is more than luck.

Systems are rows, queries are columns, and NaN is a query that does not count for a system. Every system sees the same
resamples, drawn from a seed. A test takes paired differences (m x queries) and returns two-sided p-values (m): 1 where
nothing differs, and where fewer than two queries count. Knows nothing of measures.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from runner.analysis.wilcoxon import wilcoxon_test

if TYPE_CHECKING:
    from runner.metrics.settings import Test

Floats = NDArray[np.float64]

EXACT_QUERIES = 12
"""Up to so many queries every assignment of signs is tried (4,096), not a sample of them."""

_BLOCK = 1 << 20
"""How many numbers a block of resamples has at most. It must not depend on the systems: nor may a result."""


def paired(scores: Floats, others: Floats) -> Floats:
    """Return by how much scores exceed others, query by query; what is equal to 12 decimals is equal.

    Arithmetic leaves noise beyond these, which a test by ranks would take for differences.
    """
    return np.round(scores - others, 12)


def moments(values: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return how many queries count for each system (m x queries), their mean, and their standard deviation (m each).

    The mean is NaN without a query, the deviation (that of a sample) below two.
    """
    counts = np.count_nonzero(~np.isnan(values), axis=1)
    means, deviations = np.full(len(values), np.nan), np.full(len(values), np.nan)
    np.divide(np.nansum(values, axis=1), counts, out=means, where=counts > 0)
    np.divide(np.nansum((values - means[:, None]) ** 2, axis=1), counts - 1, out=deviations, where=counts > 1)
    deviations = np.sqrt(deviations)
    return counts, means, np.where(deviations < 1e-12, 0, deviations)  # what rounding leaves of none


def bootstrap_interval(values: Floats, confidence: float = 0.95, resamples: int = 2000, seed: int = 0) -> Floats:
    """Return the percentile interval of the mean over queries (Efron 1979).

    `values` are one system (queries) or several (m x queries); the result is (2) or (m x 2), NaN without a query.
    """
    rows = np.atleast_2d(values)
    means = np.empty((len(rows), resamples))
    for start, block in _resampled_means(rows, resamples, seed):
        means[:, start : start + block.shape[1]] = block
    low = (1 - confidence) / 2
    intervals: Floats = np.quantile(means, [low, 1 - low], axis=1).T.reshape(*values.shape[:-1], 2)
    return intervals


def p_values(differences: Floats, test: Test, permutations: int = 10000, seed: int = 0) -> Floats:
    """Return the two-sided p-values of paired differences (m x queries) by the test of a name (m)."""
    if test == "t":
        return t_test(differences)
    if test == "wilcoxon":
        return wilcoxon_test(differences)
    resampling = permutation_test if test == "permutation" else bootstrap_test
    return resampling(differences, permutations, seed)


def fewest_queries(test: Test, alpha: float) -> int:
    """Return how many queries it takes for a test to find any difference significant, however large that is.

    A test of flipped signs, which the one of signed ranks is too, has no p-value below 2 in 2 ** queries.
    """
    return math.floor(1 - math.log2(alpha)) + 1 if test in ("permutation", "wilcoxon") else 2


def permutation_test(differences: Floats, resamples: int = 10000, seed: int = 0) -> Floats:
    """Return the p-values of paired differences (m x queries) under random flips of their signs (m).

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


def bootstrap_test(differences: Floats, resamples: int = 10000, seed: int = 0) -> Floats:
    """Return the p-values of paired differences (m x queries) by the bootstrap with a shift (m).

    How often a resample's mean is as far from the observed mean as that is from 0 (Noreen 1989; Smucker, Allan &
    Carterette 2007), counting the observed one as one more resample.
    """
    n, means, _ = moments(differences)
    least = np.abs(means) - 1e-12 * np.nansum(np.abs(differences), axis=1)
    extreme = np.zeros(len(differences), dtype=np.int64)
    for _, block in _resampled_means(differences - means[:, None], resamples, seed):
        extreme += np.count_nonzero(np.abs(block) >= least[:, None], axis=1)
    return np.where(n > 1, (extreme + 1) / (resamples + 1), 1.0)


def t_test(differences: Floats) -> Floats:
    """Return the p-values of paired differences (m x queries) by Student's t (1908) (m)."""
    from scipy.special import stdtr

    n, means, deviations = moments(differences)
    differing = (n > 1) & ((means != 0) | (deviations != 0))
    found = np.ones(len(differences))
    with np.errstate(divide="ignore"):  # the same difference for every query: t is infinite, and p is 0
        t = means[differing] / (deviations[differing] / np.sqrt(n[differing]))
    found[differing] = 2 * stdtr(n[differing] - 1, -np.abs(t))
    return found


def _resampled_means(rows: Floats, resamples: int, seed: int) -> Iterator[tuple[int, Floats]]:
    """Yield the means (m x block) of resamples of the queries, block by block, and where each block starts.

    A resample in which no query counts for a system has the mean of all.
    """
    n = rows.shape[1]
    present = (~np.isnan(rows)).astype(np.float64)
    filled, means = np.nan_to_num(rows), moments(rows)[1]
    for start, size in _blocks(resamples, n):
        times = _times_drawn(n, size, seed, start).astype(np.float64)
        with _single_threaded():
            sums, counts = filled @ times, np.float64(n) if present.all() else present @ times
        block = np.repeat(means[:, None], size, axis=1)
        np.divide(sums, counts, out=block, where=counts > 0)
        yield start, block


_LIMITING = threading.Lock()
"""Whoever limits BLAS puts back the limit that was found: of two at once, the later would put back the other's."""


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Let BLAS use one thread: so small a product gains little by more, and on a busy machine waits long for them."""
    with _LIMITING, _blas().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@lru_cache(maxsize=16)  # of a megabyte at most; a sweep asks for the same ones again and again
def _times_drawn(n: int, resamples: int, seed: int, start: int) -> NDArray[np.uint8]:
    """Return how often each of n queries is in each of a block of resamples (n x resamples).

    A count beyond 255 takes that many draws of one query among more than 255, which has a chance of 1 in 256!.
    """
    drawn = np.random.default_rng([seed, start]).integers(0, max(n, 1), size=(n, resamples))
    cells = (drawn * resamples + np.arange(resamples)).ravel()
    return np.bincount(cells, minlength=n * resamples).reshape(n, resamples).astype(np.uint8)


def _extreme(flips: NDArray[np.integer], differences: Floats, least: Floats) -> NDArray[np.int64]:
    sums = (1.0 - 2.0 * flips) @ differences.T
    counts: NDArray[np.int64] = np.count_nonzero(np.abs(sums) >= least, axis=0)
    return counts


def _blocks(resamples: int, n: int) -> list[tuple[int, int]]:
    """Return where each block of resamples starts and how many it has."""
    size = min(max(_BLOCK // max(n, 1), 1), 1000)
    return [(start, min(size, resamples - start)) for start in range(0, resamples, size)]
