"""Find the result that leads by the grades so far, and whether more grades could change that.

The measure is the mean DCG at the depth of the pool, which is linear in the grades, so ranges need no expansion.
They are about these queries: they show what the missing grades could change, not how results differ on other queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from runner.analysis.judging_order import UNJUDGED, RankedPool, expect_grades
from runner.analysis.people import merge_ungraded
from runner.analysis.prediction_powered import Floats, GradedSample, Ints, estimate, expand_linear

FEWEST_GRADES = 10
"""The fewest grades from which differences are estimated."""

_QUANTILE = 1.959964


@dataclass(frozen=True)
class Lead:
    """The leader's DCG minus that of another result, with a range from `low` to `high`.

    The range is a 95 % confidence interval if the grades are a random sample. By a model, it is nominal only.
    `more` is about how many further grades would decide the lead, None if it is decided or the pool is too small for
    that.
    """

    other: str
    difference: float
    low: float
    high: float
    more: int | None = None

    @property
    def is_decided(self) -> bool:
        """Return whether the range excludes 0, or both results rank the pool alike."""
        return self.low > 0 or self.low == self.high == 0


@dataclass(frozen=True)
class Contest:
    """The result with the highest expected DCG, and how it compares with the others, closest first."""

    leader: str
    dcg: float
    leads: Sequence[Lead]

    @property
    def is_decided(self) -> bool:
        """Return whether the leader beats each other result or ranks the pool alike."""
        return all(lead.is_decided for lead in self.leads)


def expect_contest(pool: RankedPool, grades: Ints, names: Sequence[str]) -> Contest:
    """Return the contest by a model: ungraded pairs have the grades expected from their ranks and the grades so far.

    Its ranges miss the true difference more often than in 5 % of cases, because the model is not right and the graded
    pairs are not a random sample (`benchmarks.simulations.judging_contest`). `grades` (N,) has `UNJUDGED` for pairs
    without a grade.
    """
    expected = expect_grades(pool, grades)
    weights = pool.discounts
    scores = weights @ expected.mean
    leader = int(scores.argmax())
    leads = []
    for other in range(len(names)):
        if other != leader:
            apart = weights[leader] - weights[other]
            variance = expected.estimate_variance(apart, pool.queries)
            parts = apart**2 * expected.variance
            parts *= variance / max(parts.sum(), 1e-300)  # the model's share shrinks with the others
            difference, half = float(scores[leader] - scores[other]), _QUANTILE * variance**0.5
            more = _count_deciding(parts, difference) if difference <= half else None
            leads.append(Lead(names[other], difference, difference - half, difference + half, more))
    return _close(names[leader], float(scores[leader]), leads)


def estimate_contest(
    pool: RankedPool, grades: Ints, known: Ints, strata: Ints, greatest: int, names: Sequence[str]
) -> Contest:
    """Return the contest by a random sample, without a model; the pairs with a grade must be a random part of the pool.

    `grades` and `known` (N + M,) are the grades so far and earlier grades; `strata` (N,) are the grades of a language
    model, if any, which shorten the intervals.
    """
    size = len(strata)
    sampled = np.flatnonzero(grades[:size] != UNJUDGED)
    sample = merge_ungraded(GradedSample(strata, sampled, grades[sampled], greatest))
    chances, scale = sample.chances()[sample.strata], np.arange(greatest + 1)
    weights, before = pool.discounts, np.where(known == UNJUDGED, 0, known)

    def estimate_row(row: Floats) -> tuple[float, float, float]:
        result = estimate(sample, expand_linear(float(row @ before), row[:size, None] * scale, chances))
        return result.value, result.low, result.high

    scores = [estimate_row(row)[0] for row in weights]
    leader = int(np.argmax(scores))
    leads = []
    for other in range(len(names)):
        if other != leader:
            difference, low, high = estimate_row(weights[leader] - weights[other])
            ratio = (high - low) / 2 / max(abs(difference), 1e-12)
            needed = size * ratio**2 * len(sampled) / max(size - len(sampled) + ratio**2 * len(sampled), 1)
            more = max(int(needed) - len(sampled), 1) if low <= 0 < high and needed < size else None
            leads.append(Lead(names[other], difference, low, high, more))
    return _close(names[leader], scores[leader], leads)


def _close(leader: str, dcg: float, leads: list[Lead]) -> Contest:
    return Contest(leader, dcg, sorted(leads, key=lambda lead: lead.low))


def _count_deciding(parts: Floats, difference: float) -> int | None:
    """Return how many grades of the most uncertain pairs would make the interval exclude 0, at the same difference."""
    left = parts.sum() - np.cumsum(-np.sort(-parts))
    enough = np.flatnonzero(_QUANTILE * np.sqrt(np.maximum(left, 0)) < difference)
    return int(enough[0]) + 1 if len(enough) else None
