"""Agreement of assessors is that of the literature and of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from runner.features.judge.assessors import compare_assessors, compute_alpha

EXAMPLE = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
"""The reliability data of four observers in Krippendorff (2011), section C; ordinal alpha is 0.815."""


def test_alpha_is_that_of_krippendorffs_example() -> None:
    own = [{unit: int(value) for unit, value in enumerate(row.split()) if value != "."} for row in EXAMPLE]
    agreement = compare_assessors(dict(zip("abcd", own, strict=True)))
    assert agreement.alpha == pytest.approx(0.815, abs=5e-4)
    assert (agreement.items, len(agreement.pairs)) == (11, 6)  # one unit has a single value


def test_kappas_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    one = rng.integers(0, 4, 60)
    other = np.where(rng.random(60) < 0.6, one, rng.integers(0, 4, 60))
    grades = {"a": dict(enumerate(one.tolist())), "b": dict(enumerate(other.tolist())) | {99: 3}}
    (pair,) = compare_assessors(grades).pairs
    assert (pair.items, pair.same) == (60, int((one == other).sum()))
    assert pair.kappa == pytest.approx(cohen_kappa_score(one, other))
    assert pair.weighted_kappa == pytest.approx(cohen_kappa_score(one, other, weights="quadratic"))


def test_agreement_of_equal_grades_or_of_none_is_not_defined() -> None:
    assert compare_assessors({"a": {1: 2}, "b": {1: 2}}).alpha is None
    assert compare_assessors({"a": {1: 2}, "b": {2: 2}}) == compare_assessors({"a": {1: 2, 2: 2}})
    assert compute_alpha(np.zeros((0, 3))) is None
