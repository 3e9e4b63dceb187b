"""Generate random signs for the differences of queries, or of clusters of queries, for sign-flip tests."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXACT_UNITS = 12
"""Up to this number of queries (or clusters), all assignments of signs (4,096) are tried instead of a sample."""

_BLOCK = 1 << 20
"""Limit on the numbers in a block. It must not depend on the systems, because results must not."""


def blocks(resamples: int, units: int) -> list[tuple[int, int]]:
    """Return the start and the size of each block of resamples."""
    size = min(max(_BLOCK // max(units, 1), 1), 1000)
    return [(start, min(size, resamples - start)) for start in range(0, resamples, size)]


def sign_blocks(units: int, permutations: int, seed: int) -> Iterator[Floats]:
    """Yield signs, 1 or -1, in blocks (permutations x units): all assignments of few units, or a random sample."""
    if units <= EXACT_UNITS:
        yield (1 - 2 * ((np.arange(2**units)[:, None] >> np.arange(units)) & 1)).astype(np.float64)
        return
    rng = np.random.default_rng(seed)
    for _, size in blocks(permutations, units):
        yield (1 - 2 * rng.integers(0, 2, size=(size, units), dtype=np.int8)).astype(np.float64)


def count_signs(units: int, permutations: int) -> int:
    """Return how many assignments of signs are tried."""
    return 2**units if units <= EXACT_UNITS else permutations


def shares(extreme: NDArray[np.int64], units: int, permutations: int) -> Floats:
    """Return p-values from the number of permutations that were as extreme as the observation.

    In a random sample, the observation counts as one more (Phipson & Smyth 2010), so that no p-value is 0.
    """
    whole, more = (2**units, 0) if units <= EXACT_UNITS else (permutations + 1, 1)
    p_values: Floats = np.divide(extreme + more, whole, dtype=np.float64)
    return p_values


def most_extreme(level: float, units: int, permutations: int) -> int:
    """Return how many permutations may be as extreme for a p-value below a level; -1 if none may."""
    if units <= EXACT_UNITS:
        most = math.ceil(level * 2**units - 1e-9) - 1
        return most if most > 1 else -1  # no flip, and the flip of all signs, are always as extreme
    return math.ceil(level * (permutations + 1) - 1e-9) - 2


def sign_test(better: int, worse: int) -> float:
    """Return the two-sided p-value of an exact sign test, on units of which none is equal (Conover 1999, 3.4)."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(better, worse), better + worse, 0.5))) if better + worse else 1.0
