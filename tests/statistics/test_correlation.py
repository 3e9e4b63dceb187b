"""Rank correlations: scipy is the oracle, and the interval is that of the published formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from runner.statistics.coefficients import correlate_ranks
from runner.statistics.correlation import RankCorrelation, spearman
from tests.strategies.scores import value_pairs


@given(value_pairs(st.integers(0, 6), 5, 30))
def test_rho_is_that_of_scipy_and_p_that_of_the_orders(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, dtype=np.float64).T
    found = spearman(x, y)
    if len(set(x.tolist())) == 1 or len(set(y.tolist())) == 1:
        assert isinstance(found, str)
        return
    expected = stats.spearmanr(x, y)
    assert isinstance(found, RankCorrelation)
    assert found.rho == pytest.approx(expected.statistic)
    assert found.p_value == correlate_ranks(x, y).p_value
    if found.interval:
        assert -1 < found.interval[0] < found.rho < found.interval[1] < 1
    else:
        assert abs(found.rho) == pytest.approx(1)


def test_the_interval_is_fishers_with_the_variance_of_bonett_and_wright() -> None:
    x, y = np.arange(20.0), np.random.default_rng(1).permutation(20) + np.arange(20.0)
    found = spearman(x, y, 0.9)
    assert isinstance(found, RankCorrelation)
    assert found.interval is not None
    reach = stats.norm.ppf(0.95) * math.sqrt((1 + found.rho**2 / 2) / 17)
    middle = np.arctanh(found.rho)
    assert found.interval == pytest.approx((np.tanh(middle - reach), np.tanh(middle + reach)))


def test_the_interval_holds_the_true_correlation_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    pearson = 0.6
    truth = 6 / np.pi * np.arcsin(pearson / 2)  # Spearman's rho of a bivariate normal
    samples = rng.multivariate_normal([0, 0], [[1, pearson], [pearson, 1]], size=(400, 40))
    found = [spearman(*sample.T) for sample in samples]
    held = [
        each.interval[0] < truth < each.interval[1]
        for each in found
        if isinstance(each, RankCorrelation) and each.interval
    ]
    assert 0.92 < np.mean(held) < 0.98


def test_five_tasks_are_too_few_for_a_significant_correlation_of_0_9() -> None:
    found = spearman(np.arange(5.0), np.array([5.0, 4, 3, 1, 2]))
    assert isinstance(found, RankCorrelation)
    assert found.rho == pytest.approx(-0.9)
    assert found.p_value == pytest.approx(1 / 12)
    assert found.interval is not None
    assert found.interval[1] > 0


def test_a_perfect_correlation_has_no_interval() -> None:
    found = spearman(np.arange(6.0), -np.arange(6.0))
    assert isinstance(found, RankCorrelation)
    assert (found.rho, found.interval) == (-1, None)


def test_pairs_without_both_values_do_not_count_and_too_few_are_said_to_be() -> None:
    x, y = np.arange(6.0), np.array([0, 2, np.nan, 1, 5, np.inf])
    assert spearman(x, y) == "insufficient_paired_data (n=4, need >= 5)"


def test_what_does_not_vary_correlates_with_nothing() -> None:
    assert spearman(np.arange(6.0), np.ones(6)) == "no_variation (all values of one are the same)"
