"""What choosing the best of several systems gains, against simulations in which the truth is known."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.statistics.search_gain import SearchGain, measure_search_gain

Floats = NDArray[np.float64]


def draw(rng: np.random.Generator, n: int, m: int = 9, similar: float = 0.3) -> Floats:
    """Return scores of equal systems that share the difficulty of a query, and for a third each a family."""
    family = rng.normal(0, 0.2, (3, n))[np.arange(m) % 3]
    return np.clip(0.5 + rng.normal(0, 0.3, n) + family + rng.normal(0, similar, (m, n)), 0, 1).round(1)


@pytest.mark.parametrize(("n", "similar"), [(40, 0.3), (200, 0.05)])
def test_the_expected_gain_is_that_of_searches_with_other_queries(n: int, similar: float) -> None:
    rng = np.random.default_rng(0)
    means = np.stack([draw(rng, n, similar=similar).mean(axis=1) for _ in range(2000)])
    truth = float((means.max(axis=1) - means.mean(axis=1)).mean())
    estimates = [measure_search_gain(draw(rng, n, similar=similar)).expected for _ in range(40)]
    assert np.mean(estimates) == pytest.approx(truth, rel=0.06)
    assert truth > 0.01


def test_true_differences_between_systems_do_not_raise_the_expected_gain() -> None:
    scores = draw(np.random.default_rng(1), 60)
    better = scores + np.linspace(0, 0.5, 9)[:, None]
    gains = [measure_search_gain(each) for each in (scores, better)]
    assert gains[0].expected == pytest.approx(gains[1].expected)
    assert gains[1].observed == pytest.approx(better.mean(axis=1).max() - better.mean())
    assert gains[1].observed > gains[0].observed + 0.1


def test_all_signs_of_few_queries_are_averaged() -> None:
    scores = np.array([[0.2, 0.9, 0.4], [0.7, 0.1, 0.4]])
    noise = (scores - scores.mean(axis=1, keepdims=True)) / 3 * math.sqrt(3 / 2)
    drawn = [noise @ signs for signs in product((1, -1), repeat=3)]
    expected = np.mean([max(means) - np.mean(means) for means in drawn])
    assert measure_search_gain(scores) == SearchGain(2, pytest.approx(0.05), pytest.approx(expected))
    assert expected > 0.1


def test_copies_of_a_system_gain_nothing_and_copies_of_queries_are_one_observation() -> None:
    scores = draw(np.random.default_rng(2), 30)
    once = measure_search_gain(scores)
    copied = measure_search_gain(np.repeat(scores[:1], 5, axis=0))
    assert (copied.systems, copied.expected) == (5, pytest.approx(0, abs=1e-12))
    again = measure_search_gain(np.tile(scores, 3), np.tile(np.arange(30), 3))
    assert again.expected == pytest.approx(once.expected)
    assert measure_search_gain(np.tile(scores, 3)).expected < 0.7 * once.expected


def test_a_query_that_counts_for_no_system_has_no_influence() -> None:
    scores = draw(np.random.default_rng(3), 10)
    padded = np.concatenate([scores, np.full((9, 2), np.nan)], axis=1)
    assert measure_search_gain(padded).expected == pytest.approx(measure_search_gain(scores).expected)


@pytest.mark.parametrize("scores", [np.ones((1, 5)), np.ones((3, 1)), np.full((3, 4), np.nan), np.empty((0, 4))])
def test_one_system_or_one_query_has_no_expected_gain(scores: Floats) -> None:
    assert math.isnan(measure_search_gain(scores).expected)
