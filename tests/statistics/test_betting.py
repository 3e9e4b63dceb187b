"""Bets on bounded differences hold at any level, at any time, and for few queries."""

from __future__ import annotations

import math

import numpy as np
import pytest

from runner.statistics.betting import SequentialTest, bet, bet_against_loss
from runner.statistics.racing import BETS


def test_equal_systems_grow_the_capital_by_the_limit_on_every_query() -> None:
    limit, queries = 0.2, 7
    expected = np.mean([(1 + share * limit / (1 - limit)) ** queries for share in BETS])
    assert bet_against_loss(np.zeros(queries), limit, 1.0) == pytest.approx(1 / expected)
    capital = np.exp(bet(np.full((1, queries), limit), 1.0 - limit)[0])
    assert capital[-1] == pytest.approx(expected)
    assert (np.diff(capital) > 0).all()


def test_a_loss_of_the_limit_is_excluded_at_any_time_no_more_often_than_the_level() -> None:
    """One query of twenty loses everything: a sample without such a query looks certain."""
    rng, level = np.random.default_rng(0), 0.01
    gains = -(rng.random((20_000, 200)) < 0.05).astype(np.float64)
    is_ever = (bet(gains + 0.05, 0.95) >= -math.log(level)).any(axis=1)
    assert 0 < is_ever.mean() <= level


def test_a_finite_set_is_known_once_the_rest_cannot_change_it() -> None:
    rng = np.random.default_rng(1)
    gains = np.stack([rng.permutation(np.repeat([0.4, -0.5], 10)) for _ in range(2_000)])  # a mean of -0.05
    capital = bet(gains + 0.05, 0.95, whole=20)
    assert (capital >= math.log(20)).any(axis=1).mean() <= 0.05
    assert not np.isinf(capital).any()
    lower = bet(gains + 0.06, 0.94, whole=20)
    assert np.isinf(lower[:, -1]).all()
    assert not np.isinf(lower[:, :5]).any()


def test_variants_of_a_query_count_as_one_query() -> None:
    differences = np.array([0.3, -0.1, 0.2, 0.25, 0.4, -0.05])
    alone = bet_against_loss(differences, 0.1, 1.0)
    variants = np.repeat(differences, 3)
    assert bet_against_loss(variants, 0.1, 1.0, np.repeat(np.arange(6), 3)) == pytest.approx(alone)
    assert bet_against_loss(variants, 0.1, 1.0) < alone / 5


def test_queries_that_do_not_count_and_no_queries_prove_nothing() -> None:
    differences = np.array([0.3, np.nan, 0.2, np.nan])
    assert bet_against_loss(differences, 0.1, 1.0) == pytest.approx(bet_against_loss(differences[::2], 0.1, 1.0))
    assert bet_against_loss(np.full(3, np.nan), 0.1, 1.0) == 1.0
    assert bet_against_loss(np.zeros(0), 0.1, 1.0) == 1.0
    assert bet_against_loss(np.full(9, -0.3), 0.1, 1.0) == 1.0


def test_a_sequential_test_stops_when_a_loss_is_excluded_or_shown() -> None:
    test = SequentialTest(0.1, 1.0, 0.025, 0.025, whole=300, finite=False)
    gains = np.stack([np.full(300, 0.3), np.full(300, -0.4), np.zeros(300), np.full(300, -0.05)])
    passes, fails = test.find_stops(gains, np.ones_like(gains))
    steps = [math.log(40) / np.log1p(share) for share in (0.99 * 0.4 / 0.9, 0.99 * 0.4)]
    assert steps[0] < passes[0] < steps[0] + 4  # the other two bets own two thirds of the capital
    assert steps[1] < fails[1] < steps[1] + 4
    assert passes[2] < 60
    assert np.isinf([*fails[[0, 2]], passes[1]]).all()
    assert max(passes[3], fails[3]) < 150  # a certain loss within the limit: both are true


def test_a_finite_test_decides_on_these_queries() -> None:
    test = SequentialTest(0.1, 1.0, 0.025, 0.025, whole=20, finite=True)
    gains = np.array([[0.0] * 20, [-0.1] * 20, [-0.4] * 20, [-0.5, 0.27] * 10], dtype=np.float64)
    passes, fails = test.find_stops(gains, np.ones_like(gains))
    assert passes[0] < 20
    assert (passes[1], fails[1]) == (20, np.inf)  # exactly the limit: known at the end
    assert (passes[2], fails[2] < 20) == (np.inf, True)
    assert (passes[3], fails[3]) == (np.inf, np.inf)  # beyond the limit, but not shown for other queries


def test_an_interval_at_any_time_contains_the_mean_and_agrees_with_the_test() -> None:
    rng = np.random.default_rng(3)
    test = SequentialTest(0.1, 1.0, 0.025, 0.025, whole=200, finite=False)
    missed = 0
    for _ in range(200):
        differences = rng.choice([-0.6, 0.0, 0.4], size=(1, 60), p=[0.1, 0.75, 0.15])
        low, high = test.bound_mean(differences[0], np.ones(60))
        missed += not low <= 0.0 <= high
        passes, fails = test.find_stops(differences, np.ones((1, 60)))
        assert (low >= -0.1 - 1e-9) == (passes[0] <= 60)
        assert (high <= 1e-9) == (fails[0] <= 60)
    assert missed <= 10


def test_clusters_of_equal_size_count_as_units() -> None:
    rng = np.random.default_rng(4)
    gains = rng.normal(-0.2, 0.2, (5, 100)).clip(-1, 1)
    alone = SequentialTest(0.05, 1.0, 0.025, 0.025, whole=100, finite=True)
    of_three = SequentialTest(0.05, 1.0, 0.025, 0.025, whole=100, finite=True, largest=3.0)
    ones = np.ones_like(gains)
    for mine, others in zip(alone.find_stops(gains, ones), of_three.find_stops(3 * gains, 3 * ones), strict=True):
        np.testing.assert_array_equal(mine, others)
