"""Coefficients equal those of scipy.stats, with ties and without."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from runner.analysis.coefficients import compute_kendall, compute_pearson, compute_spearman
from tests.strategies.scores import TIED_SAMPLES


@given(TIED_SAMPLES, st.booleans(), st.integers(0, 1000))
@example(([1.5, 0, 7, 3, 1], [0, 1, 7, 3, 3]), False, 0)
def test_coefficients_equal_those_of_scipy(pairs: tuple[list[float], list[float]], tied: bool, seed: int) -> None:
    x, y = (np.array(values) for values in pairs)
    if not tied:
        x, y = (v + np.random.default_rng(seed).permutation(len(v)) * 1e-3 for v in (x, y))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return
    kendall, spearman = stats.kendalltau(x, y), stats.spearmanr(x, y)
    assert compute_kendall(x, y) == pytest.approx((kendall.statistic, kendall.pvalue), abs=1e-12)
    assert compute_spearman(x, y) == pytest.approx((spearman.statistic, spearman.pvalue), abs=1e-9)
    assert compute_pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize("n", [5, 33, 34, 60])
@pytest.mark.parametrize("swaps", [0, 1, 2])
def test_kendall_is_exact_where_scipy_is(n: int, swaps: int) -> None:
    x = np.arange(n, dtype=float)
    y = x.copy()
    for i in range(swaps):
        y[[2 * i, 2 * i + 1]] = y[[2 * i + 1, 2 * i]]
    for values in (y, -y):
        expected = stats.kendalltau(x, values)
        result = compute_kendall(x, values)
        assert result.value == pytest.approx(expected.statistic, abs=1e-12)
        assert result.p_value == pytest.approx(expected.pvalue, rel=1e-9)
