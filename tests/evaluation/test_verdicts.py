from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.llm.chat import BudgetSpent, ChatError, Reply
from runner.evaluation.verdicts import Patience, Scale, collect_verdicts, read, shorten
from runner.llm.journal import Journal
from tests.evaluation.chats import Scripted, always

TEN = Scale(1, 10)
AT_ONCE = Patience(retries=3, backoff_s=0)


@pytest.mark.parametrize(
    ("reply", "grade", "outcome", "clamped"),
    [
        ('{"grade": 7, "reasoning": "good"}', 7, "graded", False),
        ('```json\n{"grade": 7, "reasoning": "good"}\n```', 7, "graded", False),
        ('```\n{"grade": 7}\n```\n', 7, "graded", False),
        ('Sure! Here it is: {"grade": 6.5, "reasoning": "{odd} braces"} Anything else?', 6.5, "graded", False),
        ('{"note": {"x": 1}} {"grade": "8"}', 8, "graded", False),
        ('First {"grade": 2}, but then {"grade": 8, "reasoning": {"grade": 5}}', 8, "graded", False),
        ('[{"grade": 2}, {"grade": 6}]', 6, "graded", False),
        ('{"grade": 4} in the form {"grade": "<number>"}', 4, "graded", False),
        ('{"grade": 57}', 10, "graded", True),
        ('{"grade": -3}', 1, "graded", True),
        ('{"grade": 0}', 1, "graded", True),
        ('{"grade": 8, "reasoning": "cut o', 8, "rescued", False),
        ("{'grade': 8, 'reasoning': 'single quotes'}", 8, "rescued", False),
        ("Grade: 4 because half is missing", 4, "rescued", False),
        ("**Grade:** 4", 4, "rescued", False),
        ("I would say 9/10.", 9, "rescued", False),
        ("score: 3", 3, "rescued", False),
        ("Score = 30", 10, "rescued", True),
        ("grade: 2, or in other words 9/10", 2, "rescued", False),
        ("These chunks are quite good.", None, "unreadable", False),
        ('{"grade": "good"}', None, "unreadable", False),
        ('{"grade": true}', None, "unreadable", False),
        ('{"grade": NaN}', None, "unreadable", False),
        ('{"grade": null}', None, "unreadable", False),
        ("see 1/100 and 2024/10/3", None, "unreadable", False),
        ("I can't grade this: 3 of the chunks are empty", None, "unreadable", False),
        ("", None, "unreadable", False),
        ("{" * 5000, None, "unreadable", False),
    ],
)
def test_a_reply_is_read(reply: str, grade: float | None, outcome: str, clamped: bool) -> None:
    verdict = read(reply, TEN)
    assert (verdict.grade, verdict.outcome, verdict.clamped) == (grade, outcome, clamped)


def test_a_verdict_includes_the_reasoning() -> None:
    assert read('{"grade": 7, "reasoning": "all is there"}', TEN).reasoning == "all is there"
    assert "no grade" in read("nothing to see", TEN).reasoning


@given(st.text() | st.from_regex(r'\{"grade": ?-?[0-9.e+]{1,9}.{0,9}'))
def test_whatever_is_replied_a_grade_is_on_the_scale_or_there_is_none(reply: str) -> None:
    verdict = read(reply, TEN)
    assert verdict.grade is None or 1 <= verdict.grade <= 10
    assert (verdict.grade is None) == (verdict.outcome == "unreadable")


def test_a_reply_without_a_grade_is_retried_and_all_calls_are_counted(tmp_path: Path) -> None:
    llm = Scripted(lambda question, before: "hm" if before < 2 else '{"grade": 5}')
    ((verdict,),) = collect_verdicts(llm, ["how good?"], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE)
    assert (verdict.grade, verdict.attempts, verdict.calls, verdict.tokens_in) == (5, 3, 3, 6)


def test_the_grade_is_none_after_the_last_attempt(tmp_path: Path) -> None:
    llm = always("hm")
    ((verdict,),) = collect_verdicts(llm, ["how good?"], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE)
    assert (verdict.grade, verdict.outcome, verdict.attempts) == (None, "unreadable", 4)
    assert len(set(llm.asked)) == 4  # no two alike, so that no cache answers one with the reply to another


def test_a_refused_question_has_no_grade_and_is_not_retried(tmp_path: Path) -> None:
    llm = always(ChatError("refused", "refusal", calls=1, tokens_in=7, cost=0.5))
    ((verdict,),) = collect_verdicts(llm, ["how good?"], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE)
    assert (verdict.grade, verdict.outcome, verdict.reasoning) == (None, "refused", "refused")
    assert (verdict.attempts, verdict.calls, verdict.tokens_in, verdict.cost) == (1, 1, 7, 0.5)


@pytest.mark.parametrize(("kind", "outcome"), [("server", "error"), ("unreachable", "error"), ("request", "refused")])
def test_temporary_errors_are_distinguished_from_refused_requests(kind: str, outcome: str, tmp_path: Path) -> None:
    ((verdict,),) = collect_verdicts(
        always(ChatError("no", kind)), ["?"], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE
    )
    assert verdict.outcome == outcome


def test_repeats_are_sent_after_all_first_requests(tmp_path: Path) -> None:
    llm = Scripted(lambda question, before: json.dumps({"grade": before + 1}), budget=3)
    said = collect_verdicts(llm, ["a", "b"], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE, repeats=2)
    assert [row[0].grade for row in said] == [1, 1]
    assert sorted(row[1].outcome for row in said) == ["graded", "unasked"]


def test_a_spent_budget_leaves_the_rest_for_the_next_start(tmp_path: Path) -> None:
    questions = [f"question {i}" for i in range(20)]
    poor = always('{"grade": 5}', budget=7)
    said = collect_verdicts(poor, questions, TEN, "grade", Journal(tmp_path / "j"), AT_ONCE)
    outcomes = [row[0].outcome for row in said]
    assert (outcomes.count("graded"), outcomes.count("unasked")) == (7, 13)
    rich = always('{"grade": 5}')
    said = collect_verdicts(rich, questions, TEN, "grade", Journal(tmp_path / "j"), AT_ONCE)
    assert {row[0].outcome for row in said} == {"graded"}
    assert len(rich.asked) == 13


def test_an_unreadable_reply_stays_if_the_budget_ends_before_the_retry(tmp_path: Path) -> None:
    poor = always("Sorry, I cannot.", budget=7)
    said = collect_verdicts(poor, [f"question {i}" for i in range(20)], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE)
    outcomes = [row[0].outcome for row in said]
    assert (outcomes.count("unreadable"), outcomes.count("unasked")) == (7, 13)


def test_a_final_error_ends_the_asking_of_all_repeats(tmp_path: Path) -> None:
    gone = always(ChatError("no such host", "unreachable", calls=6))
    said = collect_verdicts(
        gone, [f"question {i}" for i in range(50)], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE, 5
    )
    assert len(gone.asked) <= 2 + gone.concurrency  # three in a row, and those that were under way
    assert [row[1].outcome for row in said] == ["unasked"] * 50


def test_grades_in_the_journal_count_when_the_budget_is_zero(tmp_path: Path) -> None:
    questions = ["a", "b"]
    collect_verdicts(always('{"grade": 5}'), questions, TEN, "grade", Journal(tmp_path / "j"), AT_ONCE, 2)
    said = collect_verdicts(always("", budget=0), [*questions, "c"], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE, 3)
    assert [[verdict.grade for verdict in row] for row in said] == [[5, 5, None], [5, 5, None], [None] * 3]


def test_progress_advances_once_per_question_despite_retries(tmp_path: Path) -> None:
    failed: list[bool] = []
    kinds = {"good": '{"grade": 5}', "prose": "hm", "refused": ChatError("refused", "refusal", calls=1)}
    llm = Scripted(lambda question, before: kinds[question])  # type: ignore[arg-type,return-value]  # of any kind
    collect_verdicts(llm, list(kinds), TEN, "grade", Journal(tmp_path / "j"), AT_ONCE, advance=failed.append)
    assert sorted(failed) == [False, False, True]


def test_what_is_left_unasked_is_not_advanced_over(tmp_path: Path) -> None:
    failed: list[bool] = []
    questions = [f"question {i}" for i in range(20)]
    poor = always('{"grade": 5}', budget=7)
    collect_verdicts(poor, questions, TEN, "grade", Journal(tmp_path / "j"), AT_ONCE, advance=failed.append)
    assert failed == [False] * 7


def test_a_final_error_ends_the_asking(tmp_path: Path) -> None:
    llm = always(ChatError("401: no such key", "unauthorized", True, calls=1))
    said = collect_verdicts(llm, [f"question {i}" for i in range(100)], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE)
    assert {(row[0].outcome, row[0].reasoning) for row in said} == {("unasked", "401: no such key")}
    assert len(llm.asked) <= llm.concurrency


def test_only_questions_lost_to_a_connection_error_are_sent_again(tmp_path: Path) -> None:
    kinds = {
        "good": '{"grade": 5}',
        "prose": "hm",
        "refused": ChatError("refused", "refusal", calls=1, tokens_in=7),
        "lost": ChatError("out of reach", "connection", calls=6),
    }
    first = Scripted(lambda question, before: kinds[question])  # type: ignore[index,return-value]  # of any kind
    patience = Patience(retries=0, backoff_s=0)
    before = collect_verdicts(first, list(kinds), TEN, "grade", Journal(tmp_path / "j"), patience)
    again = Scripted(lambda question, before: kinds[question])  # type: ignore[index,return-value]  # of any kind
    assert collect_verdicts(again, list(kinds), TEN, "grade", Journal(tmp_path / "j"), patience) == before
    assert again.asked == ["lost"]


def test_a_torn_line_of_a_journal_is_passed_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    collect_verdicts(always('{"grade": 5}'), ["a", "b"], TEN, "grade", journal, AT_ONCE)
    (tmp_path / "j").write_text((tmp_path / "j").read_text()[:-9])
    llm = always('{"grade": 5}')
    collect_verdicts(llm, ["a", "b"], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE)
    assert len(llm.asked) == 1
    last = always('{"grade": 5}')
    collect_verdicts(last, ["a", "b"], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE)
    assert last.asked == []


def test_a_journal_is_of_one_judge(tmp_path: Path) -> None:
    collect_verdicts(always('{"grade": 5}'), ["a"], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE)
    other = Scripted(lambda question, before: '{"grade": 9}', name="other")
    ((verdict,),) = collect_verdicts(other, ["a"], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE)
    assert verdict.grade == 9


def test_a_cached_reply_is_marked_as_one(tmp_path: Path) -> None:
    llm = Scripted(
        lambda question, before: Reply('{"grade": 5}', cached=question == "old", calls=int(question != "old"))
    )
    said = collect_verdicts(llm, ["old", "new"], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE)
    assert [row[0].cached for row in said] == [True, False]


def test_no_questions_have_no_verdicts(tmp_path: Path) -> None:
    assert collect_verdicts(always(""), [], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE) == []
    assert not (tmp_path / "j").exists()


def test_calls_after_an_unreadable_reply_are_counted_though_the_budget_ends_them(tmp_path: Path) -> None:
    spent = BudgetSpent("llm.max_calls=3: all have been made", "budget", True)
    spent.calls, spent.cost = 2, 0.5
    llm = Scripted(lambda question, before: spent if before else "hm")  # type: ignore[arg-type,return-value]  # answers as scripted
    ((verdict,),) = collect_verdicts(llm, ["how good?"], TEN, "grade", Journal(tmp_path / "j"), AT_ONCE)
    assert (verdict.outcome, verdict.attempts, verdict.calls, verdict.cost) == ("unreadable", 1, 3, 0.5)


def test_the_warning_counts_the_grades_outside_the_scale() -> None:
    said = [read(text, TEN) for text in ('{"grade": 57}', '{"grade": 5}', "nothing")]
    assert TEN.warning(said).startswith("1 of 2 grades were outside the scale of 1 to 10")
    assert TEN.warning(said[1:]) == ""


def test_a_text_is_cut_to_the_longest_that_is_allowed() -> None:
    assert shorten("x" * 100, 100) == "x" * 100
    assert shorten("x" * 101, 100) == "x" * 94 + " [...]"
