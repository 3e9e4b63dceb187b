"""The item response model has the largest posterior, and finds what hits were drawn from."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from runner.analysis.item_response import DIFFICULTY, LOG_DISCRIMINATION, fit_item_response

Floats = NDArray[np.float64]


def compute_posterior(hits: NDArray[np.bool_], log_a: Floats, b: Floats) -> float:
    """Return the log posterior of the parameters, with abilities integrated by the trapezium rule."""
    abilities = np.linspace(-7, 7, 401)
    total = -(log_a**2).sum() / 2 / LOG_DISCRIMINATION**2 - (b**2).sum() / 2 / DIFFICULTY**2
    for row in hits:
        chances = 1 / (1 + np.exp(-np.exp(log_a)[:, None] * (abilities - b[:, None])))
        likelihood = np.where(row[:, None], chances, 1 - chances).prod(axis=0) * stats.norm.pdf(abilities)
        total += np.log(((likelihood[1:] + likelihood[:-1]) / 2 * np.diff(abilities)).sum())
    return float(total)


def test_any_other_parameters_have_a_smaller_posterior() -> None:
    hits = np.random.default_rng(0).random((30, 4)) < np.array([0.2, 0.5, 0.7, 1.0])
    model = fit_item_response(hits)
    log_a, b = np.log(model.discriminations), model.difficulties
    largest = compute_posterior(hits, log_a, b)
    for query in range(4):
        for shift in (-0.02, 0.02):
            moved = np.where(np.arange(4) == query, shift, 0)
            assert compute_posterior(hits, log_a + moved, b) < largest
            assert compute_posterior(hits, log_a, b + moved) < largest


def test_parameters_are_found_again() -> None:
    """The full simulation is benchmarks/simulations/item_response.py."""
    rng = np.random.default_rng(1)
    a, b, abilities = np.exp(rng.normal(0, 0.4, 40)), rng.normal(0, 1.2, 40), rng.normal(0, 1, 150)
    hits = rng.random((150, 40)) < 1 / (1 + np.exp(-a * (abilities[:, None] - b)))
    model = fit_item_response(hits)
    assert np.corrcoef(model.difficulties, b)[0, 1] > 0.95
    assert np.corrcoef(np.log(model.discriminations), np.log(a))[0, 1] > 0.7
    assert np.corrcoef(model.abilities, abilities)[0, 1] > 0.9


def test_queries_that_all_or_none_hit_are_easy_or_hard_and_say_little() -> None:
    hits = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 1], [1, 0, 0]], dtype=bool)
    model = fit_item_response(hits)
    assert model.difficulties[0] < -1 < 1 < model.difficulties[1]
    assert model.information.argmax() == 2
    assert model.difficulties[0] == pytest.approx(-model.difficulties[1])
