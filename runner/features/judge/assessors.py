"""Measure how far assessors agree: Cohen's kappa of two, and Krippendorff's alpha of any number with missing grades."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from runner.features.judge.prediction_powered import compute_kappa

Item = TypeVar("Item")


@dataclass(frozen=True)
class TwoAssessors:
    """The agreement of two assessors on the items that both graded; a kappa is None if chance agreement is total."""

    first: str
    second: str
    items: int
    same: int
    kappa: float | None
    weighted_kappa: float | None


@dataclass(frozen=True)
class AssessorAgreement:
    """The agreement of each pair of assessors, and alpha over all; None unless common items have two grades."""

    pairs: tuple[TwoAssessors, ...]
    items: int
    alpha: float | None


def compare_assessors(grades: Mapping[str, Mapping[Item, int]]) -> AssessorAgreement:
    """Measure how far assessors agree, given the grades from 0 of each assessor, by item."""
    greatest = max((grade for own in grades.values() for grade in own.values()), default=0)
    pairs = []
    for first, second in combinations(grades, 2):
        common = grades[first].keys() & grades[second].keys()
        if common:
            table = np.zeros((greatest + 1, greatest + 1))
            for item in common:
                table[grades[first][item], grades[second][item]] += 1 / len(common)
            same = sum(grades[first][item] == grades[second][item] for item in common)
            kappas = compute_kappa(table), compute_kappa(table, quadratic=True)
            pairs.append(TwoAssessors(first, second, len(common), same, *kappas))
    items = list(dict.fromkeys(item for own in grades.values() for item in own))
    counts = np.zeros((len(items), greatest + 1))
    for own in grades.values():
        for place, item in enumerate(items):
            if item in own:
                counts[place, own[item]] += 1
    several = counts.sum(axis=1) > 1
    return AssessorAgreement(tuple(pairs), int(several.sum()), compute_alpha(counts))


def compute_alpha(counts: NDArray[np.float64]) -> float | None:
    """Return Krippendorff's alpha for ordinal grades (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability).

    `counts` (items x grades) is how many assessors gave each grade to each item; items with a single grade do not
    count. None if all grades are equal, so that no disagreement is possible.
    """
    counts = counts[counts.sum(axis=1) > 1]
    weighted = counts / np.maximum(counts.sum(axis=1, keepdims=True) - 1, 1)
    coincidences = weighted.T @ counts - np.diag(weighted.sum(axis=0))
    totals = coincidences.sum(axis=1)
    n = totals.sum()
    below = np.cumsum(totals) - totals / 2  # the middle rank of each grade
    distances = (below[:, None] - below) ** 2
    by_chance = float((np.outer(totals, totals) * distances).sum())
    return float(1 - (n - 1) * (coincidences * distances).sum() / by_chance) if by_chance > 0 else None
