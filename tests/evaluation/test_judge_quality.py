from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from runner.evaluation.judge_quality import agreement, compute_weighted_kappa, earlier_grades, spread
from tests.strategies.scores import value_pairs


@given(value_pairs(st.integers(1, 10), 2, 40))
def test_kappa_is_scikit_learns_with_quadratic_weights(pairs: list[tuple[int, int]]) -> None:
    one, other = np.array(pairs, dtype=np.float64).T
    if one.var() + other.var() + (one.mean() - other.mean()) ** 2 == 0:
        assert compute_weighted_kappa(one, other) is None
    else:
        oracle = cohen_kappa_score(one, other, weights="quadratic", labels=np.arange(1, 11))
        assert compute_weighted_kappa(one, other) == pytest.approx(oracle, abs=1e-9)


def test_agreement_is_over_what_both_have_graded() -> None:
    judge = np.array([9, 7, np.nan, 3, 5, 10.0])
    others = np.array([8, 7, 5, 4, np.nan, 10.0])
    found, both = agreement(judge, others), np.array([0, 1, 3, 5])
    assert found.questions == 4
    assert found.spearman == pytest.approx(spearmanr(judge[both], others[both]).statistic)
    assert found.mean_error == pytest.approx(0)
    assert found.mean_absolute_error == pytest.approx(0.5)


def test_where_there_is_nothing_to_compare_nothing_is_said() -> None:
    nothing = agreement(np.array([np.nan, 3.0]), np.array([3.0, np.nan]))
    assert (nothing.questions, nothing.kappa, nothing.spearman, nothing.mean_error) == (0, None, None, None)
    flat = agreement(np.array([5.0, 5.0]), np.array([5.0, 5.0]))
    assert (flat.kappa, flat.spearman, flat.mean_error) == (None, None, 0)


def test_the_spread_is_pooled_within_questions() -> None:
    assert_allclose(spread([[1.0, 3.0], [5.0, 5.0], [9.0]]), np.sqrt((2 + 0) / 2))
    assert spread([[1.0], []]) is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "g.jsonl",
            '{"query_id": "q1", "grade": 8}\n{"query_id": 2, "grade": "4"}\n{"query_id": "q3", "grade": null}\n',
        ),
        ("g.csv", "query_id,grade\nq1,8\n2,4\nq3,\n"),
    ],
)
def test_earlier_grades_are_read(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert earlier_grades(str(tmp_path / name)) == {"q1": 8, "2": 4}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "g.jsonl",
            '{"query_id": "q1", "grade": 8, "reasoning": "one\u2028two\x85three"}\r\n{"query_id": 2, "grade": 4}',
        ),
        ("g.csv", 'query_id,grade,reasoning\nq1,8,"one\u2028two\nthree"\n2,4,\n'),
    ],
)
def test_the_words_beside_earlier_grades_may_have_any_line_break(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    assert earlier_grades(str(tmp_path / name)) == {"q1": 8, "2": 4}


@pytest.mark.parametrize(
    ("name", "content"),
    [("g.json", '[{"query_id": "q1", "grade": 8}]'), ("g.csv", ""), ("g.csv", "query_id,grade\nq1,\n")],
)
def test_a_file_without_grades_is_refused_as_a_reference(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match="contains no grades"):
        earlier_grades(str(tmp_path / name))


def test_several_earlier_grades_of_a_question_are_averaged(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("query_id,grade\nq1,8\nq1,5\n")
    assert earlier_grades(str(tmp_path / "g.csv")) == {"q1": 6.5}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.csv", "id,grade\nq1,8\n", r"g\.csv:2: needs query_id and grade; its fields are id, grade"),
        ("g.csv", "query_id,grade\nq1,8\nq2,good\n", r"g\.csv:3: the grade 'good' is not a number"),
        ("g.csv", "query_id,grade\nq1,8\nq2,1_0\n", r"g\.csv:3: the grade '1_0' is not a number"),
        ("g.csv", "query_id,grade\nq1,8\n,7\n", r"g\.csv:3: 'query_id' is ''"),
        ("g.jsonl", '{"query_id": "q1", "grade": 8}\n[5]\n', r"g\.jsonl:2: expected a JSON object"),
        (
            "g.jsonl",
            '{"query_id": "q1", "grade": 8}\n{"query_id": "q2", "grade": true}\n',
            r"g\.jsonl:2: the grade True",
        ),
        ("g.csv", None, r"g\.csv: cannot be read \(No such file"),
    ],
)
def test_what_cannot_be_read_as_grades_is_refused_with_its_line(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        earlier_grades(str(tmp_path / name))
