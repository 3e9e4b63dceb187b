"""Losses that are excluded, and how many queries it takes to exclude them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.statistics.noninferiority import bound_losses, queries_to_exclude

LEVEL, MARGIN = 0.05, 0.05


def share_that_exclude(population: NDArray[np.float64], size: int) -> float:
    """Return the share of 2,000 samples of the differences that exclude a loss of the margin."""
    samples = np.random.default_rng(1).choice(population, (2000, size))
    unlimited = np.full((2000, 2), np.inf)
    return float(np.mean(bound_losses(samples, unlimited, LEVEL, np.ones(2000)) <= MARGIN))


@pytest.mark.parametrize("differing", [0.01, 0.1, 1.0])
def test_the_queries_needed_exclude_a_loss_with_a_power_of_80_percent(differing: float) -> None:
    rng = np.random.default_rng(0)
    half = rng.uniform(0, 0.5, 2000) * (rng.random(2000) < differing)
    population = np.concatenate([half, -half])  # of equal systems
    needed = int(queries_to_exclude(population[None], np.array([MARGIN]), LEVEL, np.ones(1))[0])
    assert share_that_exclude(population, round(1.15 * needed)) > 0.78
    assert share_that_exclude(population, round(needed / 1.15)) < 0.82


def test_no_number_of_queries_excludes_a_loss_that_is_there() -> None:
    differences = np.tile([-0.2, 0.0], 50)[None]
    assert queries_to_exclude(differences, np.array([MARGIN]), LEVEL, np.ones(1))[0] == np.inf


def test_sizes_are_sought_further_than_the_normal_approximation() -> None:
    """One query of 300 differs by 1: the approximation takes its few differences for normal."""
    population = np.zeros(600)
    population[:2] = 1, -1
    needed = int(queries_to_exclude(population[None], np.array([MARGIN]), LEVEL, np.ones(1))[0])
    assert 50 < needed < 60
    assert share_that_exclude(population, needed) >= 0.8 > share_that_exclude(population, 50)
