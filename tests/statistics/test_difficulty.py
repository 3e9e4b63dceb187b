"""How hard queries are by what several systems make of them."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import given
from hypothesis.extra.numpy import array_shapes, arrays

from runner.statistics.difficulty import difficulty
from tests.strategies.scores import MEASURE_VALUES

NAN = float("nan")


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=MEASURE_VALUES))
def test_the_folds_are_numpys_over_the_systems_that_count(scores: np.ndarray) -> None:
    found = difficulty(scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, of a query that counts for no system
        for ours, theirs in (
            (found.means, np.nanmean),
            (found.spreads, np.nanstd),
            (found.lowest, np.nanmin),
            (found.highest, np.nanmax),
        ):
            np.testing.assert_allclose(ours, theirs(scores, axis=0), atol=1e-12)
    assert (found.systems == np.count_nonzero(~np.isnan(scores), axis=0)).all()


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=MEASURE_VALUES))
def test_an_order_has_every_query_that_belongs_in_it_once(scores: np.ndarray) -> None:
    found = difficulty(scores)
    counted = ~np.isnan(found.means)
    assert sorted(found.hardest) == np.flatnonzero(counted).tolist()
    assert (np.diff(found.means[found.hardest]) >= -1e-9).all()
    assert (np.diff(found.spreads[found.divisive]) <= 1e-9).all()
    assert set(found.unanswered) == set(np.flatnonzero(counted & (found.highest == 0)))


def test_the_hardest_are_first_and_those_that_none_answers_are_named() -> None:
    found = difficulty(np.array([[0.0, 1.0, 0.2, NAN], [0.0, 0.0, 0.4, NAN]]))
    assert found.hardest.tolist() == [0, 2, 1]
    assert found.unanswered.tolist() == [0]
    assert found.divisive.tolist() == [1, 2]
    assert found.answering.tolist() == [0, 1, 2, 0]


def test_of_equal_means_the_one_that_all_fail_alike_is_harder() -> None:
    assert difficulty(np.array([[0.2, 0.1, 0.1], [0.0, 0.1, 0.1]])).hardest.tolist() == [1, 2, 0]


def test_rounding_errors_are_not_disagreement() -> None:
    assert not len(difficulty(np.array([[0.1 + 0.2], [0.3]])).divisive)


def test_without_a_system_no_query_counts() -> None:
    found = difficulty(np.zeros((0, 3)))
    assert np.isnan(found.means).all()
    assert not len(found.hardest)
    assert not len(found.unanswered)
