"""Fit the two-parameter logistic model of item response theory to the hits and misses of systems.

The chance that a system of ability t hits a query is 1 / (1 + exp(-a (t - b))), with the difficulty b and the
discrimination a of the query (Birnbaum 1968). Abilities are standard normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NODES = np.linspace(-4.5, 4.5, 61)
_WEIGHTS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()

LOG_DISCRIMINATION, DIFFICULTY = 0.5, 2.0
"""The deviations of the normal priors of log a and b, with mean 0, which keep the estimates of few systems finite."""

_ITERATIONS, _CONVERGED, _LARGEST_STEP = 500, 1e-6, 0.5


@dataclass(frozen=True, eq=False)
class ItemResponse:
    """The difficulty and the discrimination of each query (n,), and the expected ability of each system (m,).

    `information` (n,) is the Fisher information of a query about an ability, averaged over the systems.
    """

    difficulties: Floats
    discriminations: Floats
    abilities: Floats
    information: Floats


def fit_item_response(hits: NDArray[np.bool_]) -> ItemResponse:
    """Return the model of hits (m x n) with the largest posterior, by the EM algorithm (Bock & Aitkin 1981).

    Abilities are integrated out over a grid, and the parameters of each query are updated by Fisher scoring.
    """
    answers = hits.astype(np.float64)
    n = answers.shape[1]
    log_a, b = np.zeros(n), np.zeros(n)
    for _ in range(_ITERATIONS):
        posterior = _weigh_abilities(answers, log_a, b)
        step = _score_queries(posterior.sum(axis=0), answers.T @ posterior, log_a, b)
        log_a, b = log_a + step[0], b + step[1]
        if np.abs(step).max() < _CONVERGED:
            break
    posterior = _weigh_abilities(answers, log_a, b)
    abilities = posterior @ _NODES
    chances = _compute_chances(log_a, b, abilities)
    information = (np.exp(2 * log_a)[:, None] * chances * (1 - chances)).mean(axis=1)
    return ItemResponse(b, np.exp(log_a), abilities, information)


def _compute_chances(log_a: Floats, b: Floats, abilities: Floats) -> Floats:
    """Return the chance of a hit of each query by ability (n x abilities), away from 0 and 1."""
    chances: Floats = 1 / (1 + np.exp(-np.exp(log_a)[:, None] * (abilities - b[:, None])))
    return np.clip(chances, 1e-12, 1 - 1e-12)


def _weigh_abilities(answers: Floats, log_a: Floats, b: Floats) -> Floats:
    """Return the posterior of each system's ability on the grid (m x nodes)."""
    chances = _compute_chances(log_a, b, _NODES)
    logs = answers @ np.log(chances) + (1 - answers) @ np.log1p(-chances) + np.log(_WEIGHTS)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    posterior: Floats = weights / weights.sum(axis=1, keepdims=True)
    return posterior


def _score_queries(expected: Floats, hits: Floats, log_a: Floats, b: Floats) -> Floats:
    """Return a step of Fisher scoring for log a and b (2 x n), given expected systems and hits by ability."""
    chances, a = _compute_chances(log_a, b, _NODES), np.exp(log_a)[:, None]
    slopes = a * (_NODES - b[:, None]), -a
    residuals, weights = hits - expected * chances, expected * chances * (1 - chances)
    gradient = (
        (residuals * slopes[0]).sum(axis=1) - log_a / LOG_DISCRIMINATION**2,
        (residuals * slopes[1]).sum(axis=1) - b / DIFFICULTY**2,
    )
    first = (weights * slopes[0] ** 2).sum(axis=1) + LOG_DISCRIMINATION**-2
    second = (weights * slopes[1] ** 2).sum(axis=1) + DIFFICULTY**-2
    both = (weights * slopes[0] * slopes[1]).sum(axis=1)
    determinant = first * second - both**2
    steps = np.stack([second * gradient[0] - both * gradient[1], first * gradient[1] - both * gradient[0]])
    step: Floats = np.clip(steps / determinant, -_LARGEST_STEP, _LARGEST_STEP)
    return step
