"""Bets on bounded differences hold at any level, at any time, and for few queries."""

from __future__ import annotations

import math

import numpy as np
import pytest

from runner.statistics.betting import bet, bet_against_loss
from runner.statistics.racing import BETS


def test_equal_systems_grow_the_capital_by_the_limit_on_every_query() -> None:
    limit, queries = 0.2, 7
    expected = np.mean([(1 + share * limit / (1 - limit)) ** queries for share in BETS])
    assert bet_against_loss(np.zeros(queries), limit, 1.0) == pytest.approx(1 / expected)
    capital = np.exp(bet(np.zeros((1, queries)), -limit, 1.0)[0])
    assert capital[-1] == pytest.approx(expected)
    assert (np.diff(capital) > 0).all()


def test_a_loss_of_the_limit_is_excluded_at_any_time_no_more_often_than_the_level() -> None:
    """One query of twenty loses everything: a sample without such a query looks certain."""
    rng, level = np.random.default_rng(0), 0.01
    gains = -(rng.random((20_000, 200)) < 0.05).astype(np.float64)
    is_ever = (bet(gains, -0.05, 1.0) >= -math.log(level)).any(axis=1)
    assert 0 < is_ever.mean() <= level


def test_a_finite_set_is_known_once_the_rest_cannot_change_it() -> None:
    rng = np.random.default_rng(1)
    gains = np.stack([rng.permutation(np.repeat([0.4, -0.5], 10)) for _ in range(2_000)])  # a mean of -0.05
    capital = bet(gains, -0.05, 1.0, whole=20)
    assert (capital >= math.log(20)).any(axis=1).mean() <= 0.05
    assert not np.isinf(capital).any()
    lower = bet(gains, -0.06, 1.0, whole=20)
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
