from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from runner.evaluation.grades import Grades
from runner.evaluation.report.grades import grade_table, lowest_table, missing_line, verdict_table
from runner.evaluation.result import Result, ResultError
from runner.evaluation.verdicts import GradeVerdict
from tests.pages.factory import result as make_result


@pytest.fixture
def result() -> Result:
    """Return a result of three questions: one graded well, one badly, one not at all for want of budget."""
    rows = [
        [GradeVerdict(9.0, "graded", "all is there", calls=1)],
        [GradeVerdict(2.0, "rescued", "nothing is", calls=1)],
        [GradeVerdict(None, "unasked", "llm.max_calls=2: all have been made")],
    ]
    ranks = np.array([1, np.inf, 2])
    grades = Grades("judge", "hash", 5, (1.0, 0.8, 0.5), rows, ranks, [False] * 3)
    return replace(make_result(queries=3, no_result=0, types=()), grades=grades)


def test_the_figures_are_in_the_table(result: Result) -> None:
    table = dict(grade_table(result).texts())
    assert table["grade (1 to 10)"] == "5.500"
    assert table["total score"] == "5.000"
    assert table["Hit@1"] == "0.333"
    assert table["Hit@5"] == "0.667"


def test_what_verdicts_took_is_in_the_table(result: Result) -> None:
    table = dict(verdict_table(result).texts())
    assert (table["unasked"], table["rescued"], table["calls"]) == ("1", "1", "2")


def test_the_lowest_are_first_and_those_without_a_grade_last(result: Result) -> None:
    rows = lowest_table(result, 3).texts()
    assert [row[-1] for row in rows] == ["nothing is", "all is there", "llm.max_calls=2: all have been made"]
    assert [row[2] for row in rows][1:] == ["1", "2"]


def test_what_is_missing_is_said_with_the_way_on(result: Result) -> None:
    assert missing_line(result) == (
        "1 of 3 verdicts are missing (llm.max_calls=2: all have been made); run the same command to request them"
    )


def test_a_result_without_grades_says_how_to_have_them() -> None:
    with pytest.raises(ResultError, match="llm=openai"):
        grade_table(make_result())
