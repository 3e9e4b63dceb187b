"""Roots are those of scipy."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from runner.statistics.roots import find_root


@given(st.floats(-3, 3), st.integers(1, 7), st.floats(0.01, 10), st.floats(0.01, 10))
def test_a_root_is_that_of_scipy(root: float, power: int, below: float, above: float) -> None:
    def function(x: float) -> float:
        return math.atan((x - root) ** (2 * power - 1)) + math.expm1((x - root) / 3)

    ends = root - below, root + above
    assert find_root(function, *ends) == brentq(function, *ends, xtol=1e-12)
    assert find_root(lambda x: -function(x), *ends) == brentq(lambda x: -function(x), *ends, xtol=1e-12)


def test_an_end_may_be_the_root() -> None:
    assert find_root(lambda x: x, 0.0, 1.0) == 0
    assert find_root(lambda x: x - 1, 0.0, 1.0) == 1
