"""What goes together with retrieval: scipy is the oracle, and too little to say is said."""

from __future__ import annotations

import json
import random
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from runner.features.traces.measures.association import MEASURES, correlate_outcomes
from runner.features.traces.measures.figures import OUTCOMES as FIGURES
from runner.features.traces.measures.figures import FigureNames
from runner.statistics.settings import Statistics
from tests.features.traces.documents import done
from tests.strategies.artifacts import ARTIFACTS
from tests.strategies.settings import at_most

FOUND = [["a.py"], ["x.py"], ["x.py", "a.py"], ["a.py", "b.py"], ["x.py", "y.py", "b.py"], ["b.py", "x.py", "a.py"]]
NAMES = FigureNames()


def row(found: dict[str, Any], measure: str, outcome: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = found["correlations"]
    (one,) = [each for each in rows if (each["retrieval_metric"], each["outcome_metric"]) == (measure, outcome)]
    return one


def test_each_measure_is_held_against_each_outcome() -> None:
    rewards = [0.5, 0.0, 1.0, 1.0, 0.0, 0.5]
    artifacts = [done(f"t{i}", *files, reward=rewards[i]) for i, files in enumerate(FOUND)]
    found = correlate_outcomes(artifacts, NAMES, Statistics())
    recall = [len({"a.py", "b.py"} & {*files}) / 2 for files in FOUND]
    expected = stats.spearmanr(recall, rewards)
    one = row(found, "file_recall", "reward")
    by_order = np.array([stats.spearmanr(recall, order).statistic for order in permutations(rewards)])
    p = np.mean(abs(by_order) >= abs(expected.statistic) - 1e-9)  # too few tasks for scipy's approximation
    assert (one["spearman_r"], one["spearman_p"]) == pytest.approx((expected.statistic, p))
    assert (one["n"], found["n_joined"]) == (6, 6)
    assert one["interval"][0] < one["spearman_r"] < one["interval"][1]
    told = [each for each in found["correlations"] if each["computable"]]
    least = min(told, key=lambda each: float(each["spearman_p"]))
    assert least["spearman_p_corrected"] == pytest.approx(min(least["spearman_p"] * len(told), 1))
    assert least["spearman_p_corrected"] > least["spearman_p"]
    assert len(found["correlations"]) == (len(MEASURES) + 1) * len(FIGURES)
    assert row(found, "mrr", "cost") == {
        "retrieval_metric": "mrr",
        "outcome_metric": "cost",
        "computable": False,
        "reason": "insufficient_paired_data (n=0, need >= 5)",
    }


def test_the_settings_say_how_wide_an_interval_is_and_how_p_values_are_corrected() -> None:
    rewards = [0.5, 0.0, 1.0, 1.0, 0.0, 0.5]
    artifacts = [done(f"t{i}", *files, reward=rewards[i]) for i, files in enumerate(FOUND)]
    usual, other = (
        correlate_outcomes(artifacts, NAMES, Statistics()),
        correlate_outcomes(artifacts, NAMES, Statistics(confidence=0.5, correction="none")),
    )
    wide, narrow = row(usual, "file_recall", "reward"), row(other, "file_recall", "reward")
    assert wide["interval"][0] < narrow["interval"][0] < narrow["spearman_r"] < narrow["interval"][1]
    assert narrow["spearman_p_corrected"] == narrow["spearman_p"] == wide["spearman_p"]
    assert (other["confidence"], other["correction"]) == (0.5, "none")


def test_trials_of_one_task_count_once_with_their_means() -> None:
    rewards = [0.5, 0.0, 1.0, 1.0, 0.0, 0.5]
    once = [done(f"t{i}", *files, reward=rewards[i]) for i, files in enumerate(FOUND)]
    again = [done(f"t{i}", *files, config_name=c, reward=rewards[i]) for c in "abc" for i, files in enumerate(FOUND)]
    found, expected = correlate_outcomes(again, NAMES, Statistics()), correlate_outcomes(once, NAMES, Statistics())
    assert found["n_joined"] == expected["n_joined"] == 6
    for one, other in zip(found["correlations"], expected["correlations"], strict=True):
        assert one.pop("interval", None) == pytest.approx(other.pop("interval", None))
        assert one == pytest.approx(other)
    mixed = [*once, done("t0", "a.py", "b.py", reward=0.0)]  # t0 has a recall of 0.75 and a reward of 0.25 on average
    recall = [len({"a.py", "b.py"} & {*files}) / 2 for files in FOUND]
    of_means = stats.spearmanr([0.75, *recall[1:]], [0.25, *rewards[1:]])
    assert row(correlate_outcomes(mixed, NAMES, Statistics()), "file_recall", "reward")["spearman_r"] == pytest.approx(
        of_means.statistic
    )


def test_four_tasks_are_too_few_to_say_anything() -> None:
    artifacts = [done(f"t{i}", *files, reward=i / 4) for i, files in enumerate(FOUND[:4])]
    found = correlate_outcomes(artifacts, NAMES, Statistics())
    assert not found["computable"]
    assert found["reason"] == "no pair of a measure and an outcome that both vary over at least 5 tasks"
    assert all(not each["computable"] for each in found["correlations"])


@settings(max_examples=at_most(20))
@given(st.lists(ARTIFACTS, max_size=9), st.randoms(use_true_random=False))
def test_another_order_of_tasks_gives_the_same_bytes(artifacts: list[dict[str, Any]], chance: random.Random) -> None:
    shuffled = chance.sample(artifacts, len(artifacts))
    assert json.dumps(correlate_outcomes(shuffled, NAMES, Statistics()), allow_nan=False) == json.dumps(
        correlate_outcomes(artifacts, NAMES, Statistics())
    )
