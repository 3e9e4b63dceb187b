"""Queries are reweighted so that real systems are equal, for simulations of error rates."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.simulations.family_wise_error import REWEIGHTED, find_weights, sample
from runner.statistics.significance import compute_differences, t_test


def test_weights_make_all_means_equal_and_stay_near_equal_weights() -> None:
    scores = np.random.default_rng(0).integers(0, 4, (5, 80)) / 3 + np.linspace(0, 0.1, 5)[:, None]
    weights = find_weights(scores)
    assert weights.sum() == pytest.approx(1)
    assert scores @ weights == pytest.approx(np.full(5, (scores @ weights)[0]), abs=1e-5)
    assert np.ptp(scores.mean(axis=1)) > 0.05
    assert 1 / (weights**2).sum() > 60  # as many queries with equal weights


def test_there_are_no_weights_if_one_system_is_better_on_every_query() -> None:
    with pytest.raises(ValueError, match="no weights of queries make the means of all systems equal"):
        find_weights(np.array([[0.1, 0.2, 0.3], [0.2, 0.4, 0.5]]))


def test_t_tests_hold_their_level_on_pairs_that_tie_on_most_queries() -> None:
    rng = np.random.default_rng(1)
    base = rng.integers(0, 2, 300).astype(float)
    scores = np.where(rng.random((100, 300)) < 0.15, rng.integers(0, 4, (100, 300)) / 3, base)
    p_values = [t_test(compute_differences(*sample(scores, 2, 50, REWEIGHTED, rng))[None])[0] for _ in range(500)]
    assert np.mean(np.array(p_values) < 0.05) == pytest.approx(0.05, abs=0.025)
