"""Pairs are judged in an order: each once, classic orders as defined, decisive ones by what they can change."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from benchmarks.simulations.judging_order import score_ndcg
from runner.features.judge.order import (
    ORDERS,
    UNJUDGED,
    RankedPool,
    _describe_ranks,
    expect_grades,
    order_pairs,
)

POOL = RankedPool(
    queries=np.array([0, 0, 0, 1, 1, 1]),
    ranks=np.array([[1, 2, 0, 1, 0, 2], [1, 0, 2, 1, 2, 0], [1, 0, 2, 1, 0, 2]]),
)


def unjudged(size: int = 6) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.full(size, UNJUDGED)


@pytest.mark.parametrize("order", ORDERS)
def test_each_order_has_every_unjudged_pair_once(order: str) -> None:
    grades = unjudged()
    grades[[1, 3]] = [2, 0]
    assert sorted(order_pairs(order, POOL, grades, 99)) == [0, 2, 4, 5]
    assert len(order_pairs(order, POOL, grades, 3)) == 3
    assert order_pairs(order, POOL, grades, 3) == order_pairs(order, POOL, grades, 99)[:3] or order == "decisive"


def test_depth_goes_by_rank_and_prominence_also_by_the_number_of_systems() -> None:
    assert order_pairs("depth", POOL, unjudged(), 6) == [0, 3, 1, 2, 4, 5]
    assert order_pairs("prominence", POOL, unjudged(), 6) == [0, 3, 2, 5, 1, 4]


def test_a_document_that_all_systems_have_at_one_rank_decides_nothing() -> None:
    assert sorted(order_pairs("decisive", POOL, unjudged(), 4)) == [1, 2, 4, 5]


def test_pairs_that_separate_close_systems_come_first() -> None:
    """Two systems find the same but for one document each; the third finds nothing that was ever relevant."""
    ranks = np.zeros((3, 60), dtype=np.int64)
    ranks[0, :20] = ranks[1, :20] = ranks[2, 20:40] = 1
    ranks[0, 40:50], ranks[1, 50:] = 2, 2
    pool = RankedPool(np.tile(np.arange(20), 3), ranks)
    grades = unjudged(60)
    grades[:20], grades[20:38] = 1, 0
    assert min(order_pairs("decisive", pool, grades, 20)[:5]) >= 40


def test_judged_pairs_are_certain_and_a_rich_query_expects_more() -> None:
    queries = np.repeat(np.arange(10), 4)
    pool = RankedPool(queries, np.tile([1, 2, 3, 4], (2, 10)))
    grades = unjudged(40)
    grades[::4], grades[1::4] = [3, 3, 3, 3, 3, 0, 0, 0, 0, 0], [2, 2, 2, 2, 2, 0, 0, 0, 0, 1]
    mean, variance = expect_grades(pool, grades)
    judged = grades != UNJUDGED
    assert (mean[judged] == grades[judged]).all() and not variance[judged].any()
    rich, poor = mean[2::4][:5], mean[2::4][5:9]
    assert rich.min() > poor.max() > 0
    assert (variance[~judged] > 0).all()
    assert (expect_grades(pool, unjudged(40))[0] > 0).all()  # without any grade


def test_ndcg_of_known_grades_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    ranks = np.stack([np.concatenate([rng.permutation(8) + 1 for _ in range(5)]) for _ in range(3)])
    pool, grades = RankedPool(np.repeat(np.arange(5), 8), ranks), rng.integers(0, 4, 40)
    for system, value in enumerate(score_ndcg(pool, grades.astype(np.float64), 4)):
        expected = ndcg_score(grades.reshape(5, 8), -ranks[system].reshape(5, 8), k=4)
        assert value == pytest.approx(expected)


def test_what_a_better_system_finds_is_expected_to_be_more_relevant() -> None:
    """Two systems find nothing in common; only what the first finds is relevant, as far as it is judged."""
    ranks = np.zeros((2, 80), dtype=np.int64)
    ranks[0, ::2] = ranks[1, 1::2] = np.tile([1, 2, 3, 4], 10)
    pool = RankedPool(np.repeat(np.arange(10), 8), ranks)
    grades = np.where(np.arange(80) < 40, (np.arange(80) + 1) % 2, UNJUDGED)
    mean, _ = expect_grades(pool, grades)
    assert mean[40::2].min() > 0.5 > mean[41::2].max()


def test_of_hundreds_of_systems_neighbours_are_described_together() -> None:
    pool = RankedPool(np.repeat(np.arange(10), 4), np.tile([1, 2, 3, 4], (300, 10)))
    assert _describe_ranks(pool).shape == (40, 45)
