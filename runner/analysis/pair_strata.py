"""Divide a pool into strata for a random sample: by the judge's grade, and by how many results have a pair.

A pair that many results have counts in many measures, and it is more often relevant than the judge's grade alone says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runner.analysis.judging import SCALE
from runner.analysis.judging_order import RankedPool
from runner.analysis.prediction_powered import PARTS_APART, Floats, Ints
from runner.analysis.verdicts import GradeVerdict

NO_GRADE = SCALE.greatest + 1
"""The stratum of pairs that the judge has not graded."""

_WRONG = 0.2
"""The share of wrong grades that is assumed of a judge to allocate a sample; no estimate depends on it."""
_MOST_PARTS = 3
_PAIRS_PER_STRATUM = 15
"""The fewest pairs of the sample per stratum, on average, for which the pool is divided further."""


def list_strata(verdicts: Sequence[GradeVerdict]) -> Ints:
    """Return the judge's grade of each pair, rounded (N,); `NO_GRADE` if there is none."""
    grades = [NO_GRADE if verdict.grade is None else int(verdict.grade + 0.5) for verdict in verdicts]
    return np.array(grades, dtype=np.int64)


def divide_strata(strata: Ints, pool: RankedPool, size: int) -> Ints:
    """Return the strata of a sample of a `size`, divided by the number of results that have each pair (N,).

    Each part holds about as many results' pairs as the others. A small sample has one part only.
    """
    parts = min(max(size // (_PAIRS_PER_STRATUM * NO_GRADE), 1), _MOST_PARTS)
    counts, place, pairs = np.unique((pool.ranks > 0).sum(axis=0), return_inverse=True, return_counts=True)
    mass = np.cumsum(counts * pairs) - counts * pairs / 2
    part = np.minimum(mass * parts // max((counts * pairs).sum(), 1), parts - 1).astype(np.int64)
    divided: Ints = strata + PARTS_APART * part[place]
    return divided


def predict_spreads(strata: Ints) -> Floats:
    """Return the expected standard deviation of people's grades in each stratum, to allocate a sample (H,).

    By Bayes' rule: a pair has each grade as often as the judge gives it in the same part, and the judge is wrong on a
    fifth of the pairs, in any direction. The allocation does not follow people's grades: strata whose first grades
    happen to be equal would get fewer more, and estimates would be biased.
    """
    sizes, grades = np.bincount(strata), np.arange(SCALE.greatest + 1)
    part, judged = np.divmod(np.arange(len(sizes)), PARTS_APART)
    given = judged <= SCALE.greatest
    shares = np.ones((int(part.max(initial=0)) + 1, len(grades)))
    np.add.at(shares, (part[given], judged[given]), sizes[given])
    likelihood = np.where(judged[:, None] == grades, 1 - _WRONG, _WRONG / SCALE.greatest)
    chances = shares[part] * np.where(given[:, None], likelihood, 1.0)
    chances /= chances.sum(axis=1, keepdims=True)
    spreads: Floats = np.sqrt(chances @ grades**2 - (chances @ grades) ** 2)
    return spreads


def merge_parts(strata: Ints) -> Ints:
    """Return each stratum as it was before it was divided."""
    merged: Ints = strata % PARTS_APART
    return merged


def extract_grades(strata: Ints) -> Ints:
    """Return the judge's grade of each stratum; 0 if it has none."""
    grades = merge_parts(strata)
    return np.where(grades > SCALE.greatest, 0, grades)


def weigh_pairs(pool: RankedPool) -> Floats:
    """Return the weight of each pair for allocating a sample (N,).

    Its square is the mean of two: equal for all pairs, as in the mean grade of the pool, and proportional to the number
    of results that have the pair, as in the sum of their variances of P@k.
    """
    counts = (pool.ranks > 0).sum(axis=0)
    weights: Floats = np.sqrt((1 + counts / max(counts.mean(), 1e-12)) / 2)
    return weights
