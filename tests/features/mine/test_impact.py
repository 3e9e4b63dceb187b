"""What documents contribute to answers: a model that needs certain documents is the oracle."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrievers.llm.chat import ChatError
from runner.features.mine.base import Case, ImpactSettings, Query
from runner.features.mine.impact import measure_impact
from runner.features.mine.impacts import count_impacts, iter_impact_rows
from runner.llm.journal import Journal
from tests.evaluation.chats import Scripted
from tests.features.mine.worlds import EVERYTHING, LETTERS, create_query, measure, require_documents


def test_impact_is_the_success_rate_with_a_document_minus_without_it(tmp_path: Path) -> None:
    """All subsets but the empty one are asked: the rates are those of counting."""
    (impact,) = measure(Scripted(require_documents("A", misled_by="C")), tmp_path / "journal")
    assert (impact.baseline, impact.subsets, impact.converged) == (False, 31, False)
    by_document = {each.document: each for each in impact.documents}
    assert by_document[0].impact == pytest.approx(8 / 16)
    assert by_document[2].impact == pytest.approx(0 - 8 / 15)
    assert (by_document[1].with_it, by_document[1].without_it) == (16, 15)
    assert by_document[1].impact == pytest.approx(4 / 16 - 4 / 15)


def test_equal_answers_have_an_error_of_one_over_their_number(tmp_path: Path) -> None:
    (impact,) = measure(Scripted(require_documents("A")), tmp_path / "journal")
    assert impact.documents[0].impact == 1
    assert impact.documents[0].error == pytest.approx((1 / 16**2 + 1 / 15**2) ** 0.5)


def test_a_query_ends_when_all_its_documents_have_converged(tmp_path: Path) -> None:
    llm = Scripted(require_documents("A"))
    (impact,) = measure(llm, tmp_path / "journal", ImpactSettings(subsets=31, batch=4, error=0.5))
    assert (impact.converged, impact.why) == (True, "")
    assert impact.subsets == len(llm.asked) - 1 < 31
    assert all(each.error is not None and each.error <= 0.5 for each in impact.documents)


def test_a_query_answered_without_documents_is_not_measured(tmp_path: Path) -> None:
    llm = Scripted(require_documents())
    (impact,) = measure(llm, tmp_path / "journal")
    assert (impact.baseline, impact.subsets, len(llm.asked)) == (True, 0, 1)
    assert impact.why == "the model answers it without any document"


def test_a_query_without_an_expected_answer_is_not_measured(tmp_path: Path) -> None:
    llm = Scripted(require_documents("A"))
    assert measure(llm, tmp_path / "journal", queries=[Query(Case("q", "s", "What?", ("kit.A",)), (), (0,))]) == []
    assert llm.asked == []


def test_a_budget_limits_the_questions_of_all_queries(tmp_path: Path) -> None:
    llm = Scripted(require_documents("A"))
    settings = ImpactSettings(subsets=31, batch=8, error=1e-9, calls=12)
    first, second = measure(llm, tmp_path / "journal", settings, [create_query("one"), create_query("two")])
    assert len(llm.asked) == 10
    assert (first.subsets, second.subsets) == (8, 0)
    assert first.why == second.why == "the call budget is spent"


def test_measuring_impact_resumes_without_repeating_a_question(tmp_path: Path) -> None:
    settings = ImpactSettings(subsets=16, batch=4, error=1e-9)
    whole = Scripted(require_documents("A"))
    expected = measure(whole, tmp_path / "whole", settings)
    parts = [Scripted(require_documents("A"), budget=budget) for budget in (1, 6, 1000)]
    after = [
        measure_impact([create_query()], LETTERS, part, Journal(tmp_path / "parts"), settings, 0)[0] for part in parts
    ]
    assert [each.unfinished for each in after] == [True, True, False]
    assert [after[-1].impact] == expected
    assert sorted(question for part in parts for question in part.asked) == sorted(whole.asked)


def test_answers_that_the_model_refuses_do_not_count(tmp_path: Path) -> None:
    refused = ChatError("it will not say", "refusal")
    llm = Scripted(lambda text, before: refused if "About D." in text else require_documents("A")(text, before))
    (impact,) = measure(llm, tmp_path / "journal")
    assert impact.subsets == 15
    assert {each.document: each.impact for each in impact.documents}[3] is None


def test_rows_and_counts_have_the_impact_of_each_role(tmp_path: Path) -> None:
    llm = Scripted(require_documents("A", misled_by="C"))
    after = measure_impact([create_query()], LETTERS, llm, Journal(tmp_path / "journal"), EVERYTHING, 0)
    roles = [(row["fqn"], row["role"]) for row in iter_impact_rows(after, LETTERS)]
    assert roles[:2] == [("kit.A", "gold"), ("kit.B", "gold")]
    assert roles[2:] == [("kit.C", "hard negative"), ("kit.D", "hard negative"), ("kit.E", "random negative")]
    counts = count_impacts(after)
    assert (counts.queries, counts.subsets) == (1, 31)
    assert (counts.roles["gold"].helpful, counts.roles["hard negative"].harmful) == (1, 1)
