"""Compute Pearson's, Spearman's and Kendall's coefficients as scipy.stats does.

Importing scipy.stats takes half a second and 30 MiB, too much for every evaluation to spend on a dozen coefficients.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import accumulate, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_EXACT = 33
"""Kendall's p-value is exact for up to this many pairs without ties, as in scipy."""

_MOST_ENUMERATED, _MOST_SAMPLED, _SAMPLED_ORDERS = 8, 30, 20_000
"""Spearman's p-value is from all orders, or from a sample, for up to these numbers of pairs."""


class Coefficient(NamedTuple):
    """A correlation coefficient and its two-sided p-value."""

    value: float
    p_value: float


def compute_pearson(x: Floats, y: Floats) -> float:
    """Return Pearson's r; neither column may be constant."""
    return float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))


def compute_spearman(x: Floats, y: Floats) -> float:
    """Return Spearman's rho, the correlation of mean ranks; neither column may be constant."""
    return compute_pearson(_mean_ranks(x), _mean_ranks(y))


def correlate_ranks(x: Floats, y: Floats) -> Coefficient:
    """Return Spearman's rho and its two-sided p-value.

    Needs at least three pairs; neither column may be constant. The p-value is the share of orders of one column whose
    rho is at least as far from 0: of all orders for up to eight pairs, and of 20,000 random ones and the observed order
    for up to 30. Student's t with n - 2 degrees of freedom, used for more pairs, would be too small.
    """
    from scipy.special import stdtr

    rho, n = compute_spearman(x, y), len(x)
    if n <= _MOST_SAMPLED:
        orders, observed = _list_orders(n), int(n > _MOST_ENUMERATED)
        first, second = (ranks - ranks.mean() for ranks in (_mean_ranks(x), _mean_ranks(y)))
        # Sums of quarters are exact, so equal sums are equal.
        extreme = int(np.count_nonzero(np.abs(second[orders] @ first) >= abs(second @ first)))
        return Coefficient(rho, (extreme + observed) / (len(orders) + observed))
    t = math.inf if abs(rho) == 1 else abs(rho) * math.sqrt((n - 2) / ((1 - rho) * (1 + rho)))
    return Coefficient(rho, float(2 * stdtr(n - 2, -t)))


@lru_cache(maxsize=4)  # all correlations of a report are over nearly the same tasks
def _list_orders(n: int) -> NDArray[np.int64]:
    """Return all orders of n, or a random sample of them (orders x n)."""
    if n <= _MOST_ENUMERATED:
        return np.array(list(permutations(range(n))))
    return np.random.default_rng(0).permuted(np.tile(np.arange(n), (_SAMPLED_ORDERS, 1)), axis=1)


def compute_kendall(x: Floats, y: Floats) -> Coefficient:
    """Return Kendall's tau-b (Kendall 1945) and its p-value.

    Needs at least three pairs; neither column may be constant. The p-value is exact for few pairs without ties, or with
    at most one discordant (or concordant) pair. Otherwise, it is that of the normal approximation with the variance for
    ties (Kendall 1970, Rank Correlation Methods, chapter 4).
    """
    from scipy.special import ndtr

    n = len(x)
    (x_codes, x_ties), (y_codes, y_ties) = _code(x), _code(y)
    both = np.unique(x_codes * n + y_codes, return_counts=True)[1]
    pairs, (equal_x, equal_y, equal) = n * (n - 1) // 2, (_count_pairs(t) for t in (x_ties, y_ties, both))
    discordant = _count_inversions(y_codes[np.lexsort((y_codes, x_codes))])
    difference = pairs - equal_x - equal_y + equal - 2 * discordant
    tau = min(max(difference / math.sqrt(pairs - equal_x) / math.sqrt(pairs - equal_y), -1.0), 1.0)
    fewer = min(discordant, pairs - discordant)
    if equal_x == equal_y == 0 and (n <= _EXACT or fewer <= 1):
        return Coefficient(tau, _exact_p_value(n, fewer))
    m = n * (n - 1)
    spread = (m * (2 * n + 5) - _sum_twice(x_ties) - _sum_twice(y_ties)) / 18
    variance = spread + 2 * equal_x * equal_y / m + _sum_triples(x_ties) * _sum_triples(y_ties) / (9 * m * (n - 2))
    return Coefficient(tau, float(2 * ndtr(-abs(difference) / math.sqrt(variance))))


def _mean_ranks(values: Floats) -> Floats:
    codes, counts = _code(values)
    return (np.cumsum(counts) - (counts - 1) / 2)[codes]


def _code(values: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the position of each value among the distinct values, ascending, and the count of each distinct value."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return codes, counts


def _count_pairs(ties: NDArray[np.int64]) -> int:
    return int((ties * (ties - 1) // 2).sum())


def _sum_triples(ties: NDArray[np.int64]) -> int:
    return int((ties * (ties - 1) * (ties - 2)).sum())


def _sum_twice(ties: NDArray[np.int64]) -> int:
    return int((ties * (ties - 1) * (2 * ties + 5)).sum())


def _count_inversions(codes: NDArray[np.int64]) -> int:
    """Return how many pairs are in descending order.

    From the highest bit down, the codes are sorted (stably) by the bits above it. A pair is an inversion if these are
    equal and the first code has a bit that the second lacks.
    """
    inversions = 0
    for bit in reversed(range(int(codes.max()).bit_length())):
        above, has_bit = codes >> (bit + 1), (codes >> bit & 1).astype(bool)
        ones = np.cumsum(has_bit)
        firsts = np.searchsorted(above, above)  # where codes with the same higher bits start
        inversions += int((ones - (ones[firsts] - has_bit[firsts]))[~has_bit].sum())
        codes = codes[np.argsort(codes >> bit, kind="stable")]
    return inversions


def _exact_p_value(n: int, inversions: int) -> float:
    """Return the two-sided probability that a random order of n has at most this many inversions."""
    orders = [1] + [0] * inversions  # by number of inversions
    for size in range(2, n + 1):
        sums = list(accumulate(orders))
        orders = [total - (sums[i - size] if i >= size else 0) for i, total in enumerate(sums)]
    return min(1.0, 2 * sum(orders) / math.factorial(n))
