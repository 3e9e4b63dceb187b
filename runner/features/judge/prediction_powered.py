"""Estimate measures from a judge's grades and a few grades by people: prediction-powered inference.

A judge has graded all pairs; people have graded a random sample of each stratum, the pairs with the same grade by the
judge. The judge's errors are estimated from the sample and removed from the total. A measure must be linear in the
grades; its estimate is then unbiased, whatever the judge's errors are, and a good judge makes the interval short. This
is the difference estimator of survey sampling, or PPI++ with the power tuned for each stratum (Angelopoulos et al.
2023, arXiv:2301.09633 and 2311.01453).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_LEVEL = 0.95
_PRIOR = 2.0
"""The weight, in grades, of the distribution over the pool when that of a stratum is estimated."""


@dataclass(frozen=True)
class GradedSample:
    """The pairs of a pool by stratum, and people's grades of some of them.

    `strata` (N,) is the stratum of each pair, from 0. `sampled` (n,) are positions of pairs, `grades` (n,) their grades
    from 0 to `greatest`.
    """

    strata: Ints
    sampled: Ints
    grades: Ints
    greatest: int

    @property
    def sizes(self) -> Ints:
        """Return the number of pairs of each stratum (H,)."""
        return np.bincount(self.strata)

    def chances(self) -> Floats:
        """Return the estimated probability of each grade in each stratum, shrunk towards the pool (H x grades)."""
        counts = np.zeros((len(self.sizes), self.greatest + 1))
        np.add.at(counts, (self.strata[self.sampled], self.grades), 1)
        taken = counts.sum(axis=1, keepdims=True)
        # unshrunk, a stratum with a few equal grades would expect no other grade, and its interval would be too short
        sizes = np.where(taken > 0, self.sizes[:, None], 0)
        shares = (sizes * counts / np.maximum(taken, 1)).sum(axis=0) / sizes.sum()
        chances: Floats = (counts + _PRIOR * shares) / (taken + _PRIOR)
        return chances


@dataclass(frozen=True)
class Corrected:
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    variance: float


def estimate(sample: GradedSample, parts: Floats, constant: float = 0.0) -> Corrected:
    """Return the estimate of a constant plus the sum of a part for each pair's grade (N x grades).

    It is the sum expected given the judge's grades, corrected by the sampled grades.
    """
    from scipy.stats import t

    sizes, strata = sample.sizes, sample.strata[sample.sampled]
    taken = np.bincount(strata, minlength=len(sizes))
    if (taken[sizes > 0] == 0).any():
        raise ValueError("a stratum has no grade")
    chances = sample.chances()[sample.strata]
    # subtracting what the judge's grade predicts leaves only its errors to estimate: this makes the interval short
    expected = (parts * chances).sum(axis=1, keepdims=True)
    effects = parts - expected
    residuals = effects[sample.sampled, sample.grades]
    means = np.bincount(strata, residuals, len(sizes)) / np.maximum(taken, 1)
    squares = np.bincount(strata, (residuals - means[strata]) ** 2, len(sizes))
    observed = np.divide(squares, taken - 1, out=np.zeros(len(sizes)), where=taken > 1)
    modelled = np.bincount(sample.strata, (chances * effects**2).sum(axis=1), len(sizes)) / np.maximum(sizes, 1)
    spread = (observed + modelled) / 2  # a few equal grades do not show that all are equal
    # a stratum that people graded whole leaves nothing uncertain; without this factor, its interval would never close
    variances = sizes**2 * (1 - taken / np.maximum(sizes, 1)) * spread / np.maximum(taken, 1)
    # the mean errors remove the judge's bias; the expected sum alone would keep it, and that of the shrinkage
    value, variance = constant + float(expected.sum()) + float((sizes * means).sum()), float(variances.sum())
    # Satterthwaite's degrees of freedom: most of the variance may come from one stratum with few grades, for which a
    # normal interval would be too short
    freedom = variance**2 / max(float((variances**2 / np.maximum(taken - 1, 1)).sum()), 1e-300) if variance else 1.0
    half = float(t.ppf((1 + _LEVEL) / 2, freedom)) * variance**0.5
    return Corrected(value, value - half, value + half, variance)


def variance_by_people_alone(sample: GradedSample, parts: Floats) -> float:
    """Return the variance of an estimate from as many grades of a simple random sample, without a judge.

    `parts` (N x grades) are those of the measure. The distribution of grades is that of the sample, weighted to the
    pool.
    """
    n, size, sizes = len(sample.sampled), len(sample.strata), sample.sizes
    strata = sample.strata[sample.sampled]
    weights = (sizes / np.maximum(np.bincount(strata, minlength=len(sizes)), 1))[strata]
    overall = np.bincount(sample.grades, weights, sample.greatest + 1) / weights.sum()
    effects = parts - (parts * overall).sum(axis=1, keepdims=True)
    chances = sample.chances()[sample.strata]
    variance = (chances * effects**2).sum(axis=1).mean()
    return float(size**2 * (1 - n / size) * variance / n)


def tabulate_grades(sample: GradedSample, judged: Sequence[int]) -> Floats:
    """Return the estimated share of pairs with each grade of the judge and of people (H x grades).

    `judged` has the judge's grade of each stratum; the result has one row for each grade up to the largest.
    """
    strata = sample.strata[sample.sampled]
    counts = np.zeros((len(sample.sizes), sample.greatest + 1))
    np.add.at(counts, (strata, sample.grades), 1)
    taken = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    shares = counts / taken * (sample.sizes / len(sample.strata))[:, None]
    table = np.zeros((sample.greatest + 1, sample.greatest + 1))
    np.add.at(table, np.asarray(judged), shares)
    return table


def compute_kappa(table: Floats, quadratic: bool = False) -> float | None:
    """Return Cohen's kappa of a table of shares, optionally with quadratic weights; None if chance explains all."""
    places = np.arange(len(table))
    cost = (places[:, None] - places) ** 2 if quadratic else (places[:, None] != places)
    by_chance = float((cost * np.outer(table.sum(axis=1), table.sum(axis=0))).sum())
    return float(1 - (cost * table).sum() / by_chance) if by_chance > 0 else None
