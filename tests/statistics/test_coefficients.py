"""Coefficients equal those of scipy.stats, with ties and without."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from runner.statistics.coefficients import compute_kendall, compute_pearson, compute_spearman, correlate_ranks
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
    assert compute_spearman(x, y) == pytest.approx(spearman.statistic, abs=1e-12)
    if len(x) > 30:
        assert correlate_ranks(x, y) == pytest.approx((spearman.statistic, spearman.pvalue), abs=1e-9)
    assert compute_pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize("y", [[1, 2, 3, 5, 4], [2, 2, 3, 3, 1], [5, 4, 3, 1, 2, 6, 7, 7], [0, 0, 0, 0, 0, 1]])
def test_the_p_value_of_few_ranks_is_the_share_of_orders_as_extreme(y: list[float]) -> None:
    x = np.arange(len(y), dtype=float)
    ranks = np.array(list(permutations(stats.rankdata(y))))
    rhos = (ranks - ranks.mean()) @ (x - x.mean()) / (len(y) * ranks[0].std() * x.std())
    rho, p_value = correlate_ranks(x, np.array(y))
    assert p_value == np.mean(np.abs(rhos) >= abs(rho) - 1e-9)
    assert p_value > 0


def test_the_p_value_of_five_tasks_agrees_with_published_tables() -> None:
    assert correlate_ranks(np.arange(5.0), np.array([5.0, 4, 3, 1, 2])) == pytest.approx((-0.9, 10 / 120))


@pytest.mark.parametrize(("rho", "n", "p_value"), [(0.648, 10, 0.049), (0.521, 15, 0.049), (0.447, 20, 0.05)])
def test_the_p_value_of_more_ranks_agrees_with_published_tables(rho: float, n: int, p_value: float) -> None:
    """The critical values at 5 % (Zar 1972); Student's t has p-values below 0.048."""
    rng = np.random.default_rng(n)
    x, orders = np.arange(float(n)), np.array([rng.permutation(n) for _ in range(20_000)], dtype=float)
    rhos = np.array([compute_spearman(x, order) for order in orders[:4000]])
    y = orders[np.abs(rhos - rho).argmin()]
    found = correlate_ranks(x, y)
    assert found.value == pytest.approx(rho, abs=0.005)
    assert found.p_value == pytest.approx(p_value, abs=0.006)


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
