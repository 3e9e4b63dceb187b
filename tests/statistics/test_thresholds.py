"""The curve is what the measures of abstention say, the choice the best there is, and what it is worth is honest."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from retrievers.base import NOTHING, Rankings, create_empty_rankings
from runner.metrics.abstention import measure_abstention
from runner.statistics.selection import folds
from runner.statistics.thresholds import NONE, AnswerScores, ThresholdSettings, Tuning, Untunable, tune
from tests.metrics.worlds import World
from tests.strategies.judgments import worlds

F1 = ThresholdSettings()
RECALL = ThresholdSettings(target="recall", max_recall_lost=0.1)


def answers_of(world: World, k: int = 5) -> AnswerScores:
    graded = world.grader.grade(world.rankings)
    grades = np.full(world.rankings.documents.shape, -1, dtype=np.int32)
    grades[graded.queries, graded.ranks - 1] = graded.grades
    return AnswerScores.of(world.rankings, grades, world.grader.golds, np.ones(len(world.rankings), dtype=np.bool_), k)


def tune_scores(answerable: list[float], no_result: list[float], wanted: ThresholdSettings = F1) -> Tuning:
    """Tune on queries that find one document each, which is gold for those that have an answer; NaN finds nothing."""
    scores = np.array([answerable + no_result], dtype=np.float32).T
    documents = np.where(np.isnan(scores), NOTHING, 0).astype(np.int32)
    golds = np.array([1] * len(answerable) + [0] * len(no_result))
    rankings = Rankings(documents, np.where(np.isnan(scores), -np.inf, scores).astype(np.float32))
    grades = np.where((documents == 0) & (golds[:, None] > 0), 1, -1).astype(np.int32)
    return tune(rankings, grades, golds, np.ones(len(golds), dtype=np.bool_), wanted)


@given(worlds())
def test_the_curve_is_what_abstention_measures_at_each_threshold(world: World) -> None:
    answers = answers_of(world)
    every = answers.answerable | answers.no_result
    curve = answers.curve(answers.candidates(every), every)
    measured = measure_abstention(world.grader, world.rankings, curve.thresholds.tolist(), k=5)
    for i, at in enumerate(measured.thresholds[1:]):
        outcome = curve.outcome(i)
        np.testing.assert_allclose(
            [outcome.tn_rate, outcome.recall, outcome.recall_lost], [at.tn_rate, at.recall, at.recall_lost], atol=1e-12
        )
        answered = measured.answerable * (1 - at.left_with_nothing) if measured.answerable else 0
        all_that_count = answered + at.false_positives + measured.answerable
        assert outcome.f1 == pytest.approx(2 * answered / all_that_count if all_that_count else 0)


@given(worlds(), st.sampled_from([F1, RECALL]))
def test_no_best_score_is_a_better_threshold_than_the_chosen_one(world: World, wanted: ThresholdSettings) -> None:
    answers = answers_of(world)
    every = answers.answerable | answers.no_result
    assume(answers.answerable.any() and answers.no_result.any())
    chosen = answers.curve(np.array([answers.choose(every, wanted)]), every).outcome(0)
    curve = answers.curve(np.unique(np.array([NONE, *answers.best[np.isfinite(answers.best)]])), every)
    if wanted.target == "f1":
        assert chosen.f1 >= curve.f1.max() - 1e-12
    else:
        assert chosen.recall_lost <= wanted.max_recall_lost + 1e-9
        assert chosen.tn_rate >= curve.tn_rate[curve.recall_lost <= wanted.max_recall_lost].max()


def test_separable_queries_are_separated_out_of_fold_too() -> None:
    found = tune_scores([5, 6, 7, 8, 9, 10], [1, 2, 3])
    assert found.threshold == 4
    assert found.in_fold.f1 == found.out_of_fold.f1 == 1
    assert found.in_fold.tn_rate == found.out_of_fold.tn_rate == 1
    assert found.untouched.tn_rate == 0
    assert found.difference.recall_lost == 0


def test_a_bearable_cost_is_paid_and_no_more() -> None:
    answerable, no_result = [1.0, *range(10, 29)], [0.0, 2.0, 3.0, 40.0]
    found = tune_scores(answerable, no_result, ThresholdSettings(target="recall", max_recall_lost=0.05))
    assert found.threshold == 6.5  # one of twenty is lost, three of four are silent
    assert found.in_fold.recall_lost == pytest.approx(0.05)
    assert found.in_fold.tn_rate == 0.75
    free = tune_scores(answerable, no_result, ThresholdSettings(target="recall", max_recall_lost=0))
    assert free.threshold == 0.5
    assert free.in_fold.tn_rate == 0.25


def test_scores_that_tell_nothing_look_better_in_fold_than_they_are() -> None:
    rng = np.random.default_rng(0)
    differences = [
        tune_scores(rng.random(12).tolist(), rng.random(12).tolist(), ThresholdSettings(seed=seed)).difference.f1
        for seed in range(20)
    ]
    assert np.mean(differences) > 0.02


def test_a_threshold_that_does_not_pay_is_none() -> None:
    found = tune_scores([1, 2, 3, 4], [2, 3], ThresholdSettings(target="recall", max_recall_lost=0))
    assert found.threshold is None
    assert found.in_fold == found.untouched


def test_a_query_without_results_returns_nothing_at_any_threshold() -> None:
    found = tune_scores([5, 6, math.nan], [1, 2, math.nan])
    assert found.untouched.tn_rate == pytest.approx(1 / 3)
    assert found.untouched.f1 == pytest.approx(2 * 2 / (2 * 2 + 1 + 2))


def test_the_same_seed_deals_the_same_folds_and_each_has_both_kinds() -> None:
    scores = np.random.default_rng(1).random(30).tolist()
    wanted = ThresholdSettings(seed=3)
    assert tune_scores(scores[:20], scores[20:], wanted).fold_thresholds == (
        tune_scores(scores[:20], scores[20:], wanted).fold_thresholds
    )
    dealt = folds(["answerable"] * 20 + ["no result"] * 10, np.ones(30, dtype=np.bool_), 5, 3)
    assert Counter(dealt[20:].tolist()) == dict.fromkeys(range(5), 2)


def test_there_are_no_more_folds_than_queries_of_a_kind() -> None:
    assert len(tune_scores([3, 4, 5, 6, 7], [1, 2]).fold_thresholds) == 2


def test_neighbouring_float32_scores_are_separated() -> None:
    low = np.float32(1)
    high = np.nextafter(low, np.float32(2))
    found = tune_scores([float(high)] * 2, [float(low)] * 2)
    assert found.threshold == high
    assert found.in_fold.f1 == 1


@pytest.mark.parametrize(
    ("answerable", "no_result", "why"),
    [
        ([1.0, 2.0], [], "every query has an answer"),
        ([], [1.0, 2.0], "no query has an answer"),
        ([1.0, 2.0, 3.0], [1.0], "only one no-result query; .* needs at least two of each kind"),
        ([3.0], [1.0, 2.0], "one answerable query"),
        ([2.0, 2.0], [2.0, 2.0, math.nan], "is 2, so no threshold can separate them"),
        ([math.nan] * 2, [math.nan] * 2, "no query returned any result"),
    ],
)
def test_where_there_is_nothing_to_choose_it_says_why(
    answerable: list[float], no_result: list[float], why: str
) -> None:
    with pytest.raises(Untunable, match=why):
        tune_scores(answerable, no_result)


def test_queries_that_raised_an_error_are_of_neither_kind() -> None:
    golds, ran = np.array([1, 1, 0, 0]), np.array([True, True, False, False])
    with pytest.raises(Untunable, match="every query has an answer"):
        tune(create_empty_rankings(4, 2), np.full((4, 2), -1, dtype=np.int32), golds, ran)
