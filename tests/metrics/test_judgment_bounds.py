"""Bounds by unjudged documents are those of trying every judgment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest

from runner.metrics.judgment_bounds import BOUNDED, QueryJudgments, bound_difference

K = 4
MISSING = 30
"""How many relevant documents may be in neither ranking when every judgment is tried."""


def score(measure: str, documents: Sequence[int], grades: Mapping[int, int], gold: Sequence[int]) -> float:
    """Return a measure of a ranking, from its definition; `gold` has the grades of all relevant documents."""
    gains = [grades.get(document, 0) for document in documents[:K]]
    hits = [rank for rank, gain in enumerate(gains, 1) if gain > 0]
    if measure == "P":
        return len(hits) / K
    if measure == "R":
        return len(hits) / len(gold)
    if measure == "RR":
        return 1 / hits[0] if hits else 0.0
    if measure == "Success":
        return float(bool(hits))
    ideal = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(sorted(gold, reverse=True)[:K], 1))
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1)) / ideal


@pytest.mark.parametrize("measure", BOUNDED)
def test_bounds_are_the_extremes_over_all_judgments(measure: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(12):
        one, other = rng.permutation(7)[:K].tolist(), rng.permutation(7)[:K].tolist()
        known = {document: int(rng.integers(0, 3)) for document in range(7) if rng.random() < 0.4}
        unseen = [int(grade) for grade in rng.integers(1, 3, size=rng.integers(1, 3))]  # gold that neither ranking has
        gold = [*unseen, *(grade for grade in known.values() if grade > 0)]
        union = [document for document in {*one, *other} if document not in known]
        differences = []
        for relevant in product((0, 2), repeat=len(union)):
            grades = {**known, **dict(zip(union, relevant, strict=True))}
            for missing in (0, 1, 2, K, MISSING):
                every = [*gold, *(grade for grade in relevant if grade), *[2] * missing]
                differences.append(score(measure, one, grades, every) - score(measure, other, grades, every))
        lists = [[(document, known.get(document)) for document in documents] for documents in (one, other)]
        low, high = bound_difference(measure, K, lists[0], lists[1], QueryJudgments(gold, 2))
        if measure == "R":  # more missing documents bring a difference closer to 0, which is the bound
            assert low <= min(differences) + 1e-12
            assert high >= max(differences) - 1e-12
            assert low == pytest.approx(min(differences), abs=K / MISSING)
            assert high == pytest.approx(max(differences), abs=K / MISSING)
        else:
            assert (low, high) == pytest.approx((min(differences), max(differences)))


def test_without_unjudged_documents_precision_is_certain() -> None:
    one, other = [(1, 1), (2, 0)], [(2, 0), (3, 0)]
    assert bound_difference("P", 2, one, other, QueryJudgments([1], 1)) == (0.5, 0.5)


def test_a_document_that_both_rank_alike_cancels_out() -> None:
    one, other = [(1, None), (2, 1)], [(1, None), (3, 0)]
    assert bound_difference("P", 2, one, other, QueryJudgments([1], 1)) == (0.5, 0.5)
