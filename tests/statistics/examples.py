"""Scores that several tests are about."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from runner.statistics.paired_tests import PAIRED_TESTS

Floats = NDArray[np.float64]

SAKAI: Floats = np.array(
    [
        [0.7, 0.3, 0.2, 0.6, 0.4, 0.4, 0.0, 0.7, 0.1, 0.3, 0.5, 0.4, 0.0, 0.6, 0.5, 0.3, 0.1, 0.5, 0.2, 0.1],
        [0.5, 0.1, 0.0, 0.2, 0.4, 0.3, 0.0, 0.5, 0.3, 0.3, 0.4, 0.4, 0.1, 0.4, 0.2, 0.1, 0.1, 0.6, 0.3, 0.2],
        [0.0, 0.0, 0.2, 0.1, 0.3, 0.3, 0.1, 0.2, 0.4, 0.4, 0.4, 0.3, 0.3, 0.2, 0.2, 0.2, 0.1, 0.5, 0.4, 0.3],
    ]
)
"""Three systems and twenty topics: Sakai (2015), Information Access Evaluation Methodology, table 5.1."""


def p_values(differences: Floats, test: str, permutations: int = 10000, seed: int = 0) -> Floats:
    """Return the p-values of paired differences (m x queries) by the test of a name."""
    return PAIRED_TESTS[test].compute_p_values(differences, permutations, seed, None, None)


def unequal() -> Floats:
    """Return five systems on 60 queries of unequal difficulty: the third is the best, the last all but equal to it."""
    rng = np.random.default_rng(7)
    easy = rng.beta(2, 2, 60)
    quality = np.array([0.3, 0.5, 0.9, 0.6, 0.9])
    found: Floats = np.clip(easy * quality[:, None] + rng.normal(0, 0.05, (5, 60)), 0, 1)
    found[4] = found[2]
    found[4, :4] -= [0.01, -0.01, 0.02, 0.01]
    return found
