"""Queries whose right answer is nothing, and what a threshold does for them and to the others."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import Rankings, create_empty_rankings
from runner.metrics.abstention import compute_auroc, list_statuses, measure_abstention
from runner.metrics.measures import parse
from runner.metrics.scores import Grader
from tests.metrics.worlds import World, judgments_of, rankings_of
from tests.strategies.judgments import worlds

IDS = [f"d{position}" for position in range(6)]


@pytest.fixture
def world() -> World:
    """Four answerable queries, three without a right answer, and one of each whose search failed."""
    qrels = {0: {0: 2, 1: 1}, 1: {2: 1}, 2: {3: 1}, 3: {4: 1}, 4: {0: 0}, 5: {1: 0}, 6: {2: 0}, 7: {0: 1}, 8: {0: 0}}
    rows = [
        [(0, 0.9), (1, 0.4)],
        [(5, 0.8), (2, 0.6)],
        [(4, 0.3)],
        [],
        [(3, 0.5)],
        [(3, 0.2)],
        [],
        [],
        [],
    ]
    found = rankings_of(rows, IDS, 3)
    rankings = Rankings(found.documents, found.scores, errors={7: "timed out", 8: "timed out"})
    return World(qrels, rankings, len(IDS), IDS)


def test_without_a_threshold_only_silence_is_a_true_negative(world: World) -> None:
    measured = measure_abstention(world.grader, world.rankings)
    assert (measured.answerable, measured.no_result, measured.errors) == (4, 3, 2)
    (at,) = measured.thresholds
    assert at.threshold is None
    assert (at.true_negatives, at.false_positives) == (1, 2)
    assert [at.tn_rate, at.fp_rate] == pytest.approx([1 / 3, 2 / 3])
    assert (at.recall, at.recall_lost, at.left_with_nothing) == (0.5, 0, 0.25)


def test_a_threshold_silences_more_and_costs_recall(world: World) -> None:
    _, lower, higher = measure_abstention(world.grader, world.rankings, [0.25, 0.55]).thresholds
    assert (lower.true_negatives, lower.recall_lost, lower.left_with_nothing) == (2, 0, 0.25)
    assert (higher.true_negatives, higher.false_positives) == (3, 0)
    assert [higher.recall, higher.recall_lost] == pytest.approx([1.5 / 4, 0.5 / 4])
    assert higher.left_with_nothing == 0.5


def test_a_score_equal_to_the_threshold_passes(world: World) -> None:
    """Scores are 32-bit, thresholds are not: 0.4 and the nearest 32-bit number must count as equal."""
    _, at = measure_abstention(world.grader, world.rankings, [0.4]).thresholds
    assert at.recall == 0.5


def test_the_recall_is_measured_to_k(world: World) -> None:
    assert measure_abstention(world.grader, world.rankings, k=1).thresholds[0].recall == pytest.approx(0.5 / 4)


def test_the_auroc_compares_the_best_scores_and_silence_is_lowest(world: World) -> None:
    """Best scores: 0.9, 0.8, 0.3, none against 0.5, 0.2, none; silence against silence is a tie."""
    assert measure_abstention(world.grader, world.rankings).auroc == pytest.approx((3 + 3 + 2 + 0.5) / 12)


def test_a_query_passes_by_its_first_gold_and_by_the_threshold(world: World) -> None:
    nothing_dropped = ("pass", "partial", "fail", "fail", "false_positive", "false_positive", "true_negative")
    assert list_statuses(world.grader, world.rankings, 10) == (*nothing_dropped, "error", "error")
    above = ("pass", "fail", "fail", "fail", "true_negative", "true_negative", "true_negative", "error", "error")
    assert list_statuses(world.grader, world.rankings, 10, 0.7) == above
    assert list_statuses(world.grader, world.rankings, 1)[:2] == ("pass", "fail")


def test_the_result_is_json_with_null_where_there_is_nothing_to_measure() -> None:
    grader = Grader(judgments_of({0: {0: 1}}), 1, 3)
    found = measure_abstention(grader, create_empty_rankings(1, 2), [0.5]).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == {
        **{"no_result": 0, "answerable": 1, "errors": 0, "k": 10, "auroc": None},
        "thresholds": [
            {
                **{"threshold": threshold, "true_negatives": 0, "false_positives": 0, "tn_rate": None, "fp_rate": None},
                **{"recall": 0.0, "recall_lost": 0.0, "left_with_nothing": 1.0},
            }
            for threshold in (None, 0.5)
        ],
    }


def test_rankings_without_a_place_are_silence() -> None:
    grader = Grader(judgments_of({0: {0: 1}, 1: {0: 0}}), 2, 3)
    assert list_statuses(grader, create_empty_rankings(2, 0), 10) == ("fail", "true_negative")
    assert measure_abstention(grader, create_empty_rankings(2, 0), [1.0]).auroc == 0.5


@given(worlds(), st.lists(st.sampled_from([-1.0, 0.5, 0.7, 1.0, 1.5, 8.0])))
def test_a_higher_threshold_never_has_fewer_true_negatives_nor_more_recall(
    world: World, thresholds: list[float]
) -> None:
    measured = measure_abstention(world.grader, world.rankings, sorted(thresholds), k=5)
    recall = world.grader.score(world.rankings, [parse("R@5")]).means()["R@5"]
    np.testing.assert_allclose(measured.thresholds[0].recall, recall)
    for lower, higher in zip(measured.thresholds, measured.thresholds[1:], strict=False):
        assert higher.true_negatives >= lower.true_negatives
        assert higher.true_negatives + higher.false_positives == measured.no_result
        assert not higher.recall > lower.recall
        np.testing.assert_allclose(higher.recall + higher.recall_lost, measured.thresholds[0].recall)


@given(worlds(), st.sampled_from([None, 0.5, 0.7, 1.5, 8.0]))
def test_statuses_add_up_to_the_rates(world: World, threshold: float | None) -> None:
    found = list_statuses(world.grader, world.rankings, 3, threshold)
    at = measure_abstention(world.grader, world.rankings, [] if threshold is None else [threshold]).thresholds[-1]
    assert found.count("true_negative") == at.true_negatives
    assert found.count("false_positive") == at.false_positives


@given(*(st.lists(st.sampled_from([-np.inf, 0.0, 0.5, 1.0, 2.0]), max_size=8) for _ in range(2)))
def test_the_auroc_counts_pairs(positives: list[float], negatives: list[float]) -> None:
    wins = [(p > n) + (p == n) / 2 for p in positives for n in negatives]
    found = compute_auroc(np.array(positives), np.array(negatives))
    assert found == pytest.approx(sum(wins) / len(wins)) if wins else math.isnan(found)
