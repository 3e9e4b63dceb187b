"""Scores and values of measures, few enough that ties are common."""

from __future__ import annotations

import math
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

MEASURE_VALUES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, math.nan])
"""Values of a measure for a query; NaN if the query does not count."""

DIFFERENCES = st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.125, 0.25, 0.5, 1.0])
"""Differences of two systems on a query."""


def fractions(low: int, high: int, denominator: int) -> st.SearchStrategy[float]:
    """Draw multiples of 1 / denominator from low to high; float32 holds them exactly if it is a power of 2."""
    return st.integers(low * denominator, high * denominator).map(lambda n: n / denominator)


DESCENDING_SCORES = st.lists(fractions(-2, 6, 4), max_size=8).map(lambda row: sorted(row, reverse=True))
"""Scores of the hits of a query, best first."""


def value_pairs(values: st.SearchStrategy[T], min_size: int, max_size: int) -> st.SearchStrategy[list[tuple[T, T]]]:
    """Draw lists of pairs, whose two sides are compared."""
    return st.lists(st.tuples(values, values), min_size=min_size, max_size=max_size)


TIED_SAMPLES = st.integers(5, 80).flatmap(
    lambda n: st.tuples(*[st.lists(st.sampled_from([-1.5, 0, 0.25, 1, 3, 7]), min_size=n, max_size=n)] * 2)
)
"""Two samples of the same length, in which most values are tied."""
