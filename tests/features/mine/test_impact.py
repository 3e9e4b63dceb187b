"""What documents contribute to answers: a model that needs certain documents is the oracle."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from retrievers.llm.chat import ChatError
from runner.features.mine.base import Case, Impact, ImpactSettings, Query
from runner.features.mine.impact import measure_impact
from runner.features.mine.impacts import count_impacts, iter_impact_rows
from runner.features.mine.targets import Target, Targets
from runner.llm.journal import Journal
from tests.evaluation.chats import Answer, Scripted

TARGETS = Targets([Target(f"kit.{name}", "CLASS", docstring=f"About {name}.") for name in ("A", "B", "C", "D", "E")])
EVERYTHING = ImpactSettings(subsets=31, batch=8, error=1e-9)


def query(name: str = "q") -> Query:
    """Return a query with two golds, A and B, and three negatives."""
    case = Case(name, "s", f"What is it, {name}?", ("kit.A",), answers=("yes",))
    return Query(case, (), (0, 1), hard_negatives=(2, 3), random_negatives=(4,))


def needing(*names: str, misled_by: str = "nothing") -> Callable[[str, int], Answer]:
    """Return how a model answers that needs all of certain documents, and is misled by another."""

    def reply(question: str, before: int) -> Answer:
        is_right = all(f"About {name}." in question for name in names) and f"About {misled_by}." not in question
        return json.dumps({"answerable": True, "answer": "yes" if is_right else "no"})

    return reply


def measured(
    llm: Scripted, journal: Path, settings: ImpactSettings = EVERYTHING, queries: Sequence[Query] = (query(),)
) -> list[Impact]:
    after = measure_impact(queries, TARGETS, llm, Journal(journal), settings, seed=0)
    return [each.impact for each in after if each.impact]


def test_a_document_s_impact_is_the_success_rate_with_it_minus_without_it(tmp_path: Path) -> None:
    """All subsets but the empty one are asked: the rates are those of counting."""
    (impact,) = measured(Scripted(needing("A", misled_by="C")), tmp_path / "journal")
    assert (impact.baseline, impact.subsets, impact.converged) == (False, 31, False)
    by_document = {each.document: each for each in impact.documents}
    assert by_document[0].impact == pytest.approx(8 / 16)
    assert by_document[2].impact == pytest.approx(0 - 8 / 15)
    assert (by_document[1].with_it, by_document[1].without_it) == (16, 15)
    assert by_document[1].impact == pytest.approx(4 / 16 - 4 / 15)


def test_equal_answers_have_an_error_of_one_over_their_number(tmp_path: Path) -> None:
    (impact,) = measured(Scripted(needing("A")), tmp_path / "journal")
    assert impact.documents[0].impact == 1
    assert impact.documents[0].error == pytest.approx((1 / 16**2 + 1 / 15**2) ** 0.5)


def test_a_query_is_done_once_all_of_its_documents_have_converged(tmp_path: Path) -> None:
    llm = Scripted(needing("A"))
    (impact,) = measured(llm, tmp_path / "journal", ImpactSettings(subsets=31, batch=4, error=0.5))
    assert (impact.converged, impact.why) == (True, "")
    assert impact.subsets == len(llm.asked) - 1 < 31
    assert all(each.error is not None and each.error <= 0.5 for each in impact.documents)


def test_what_is_answered_without_any_document_is_measured_no_further(tmp_path: Path) -> None:
    llm = Scripted(needing())
    (impact,) = measured(llm, tmp_path / "journal")
    assert (impact.baseline, impact.subsets, len(llm.asked)) == (True, 0, 1)
    assert impact.why == "the model answers it without any document"


def test_what_has_no_expected_answer_is_not_asked(tmp_path: Path) -> None:
    llm = Scripted(needing("A"))
    assert measured(llm, tmp_path / "journal", queries=[Query(Case("q", "s", "What?", ("kit.A",)), (), (0,))]) == []
    assert llm.asked == []


def test_a_budget_limits_the_questions_of_all_queries(tmp_path: Path) -> None:
    llm = Scripted(needing("A"))
    settings = ImpactSettings(subsets=31, batch=8, error=1e-9, calls=12)
    first, second = measured(llm, tmp_path / "journal", settings, [query("one"), query("two")])
    assert len(llm.asked) == 10
    assert (first.subsets, second.subsets) == (8, 0)
    assert first.why == second.why == "the call budget is spent"


def test_work_that_was_cut_short_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    settings = ImpactSettings(subsets=16, batch=4, error=1e-9)
    whole = Scripted(needing("A"))
    expected = measured(whole, tmp_path / "whole", settings)
    parts = [Scripted(needing("A"), budget=budget) for budget in (1, 6, 1000)]
    after = [measure_impact([query()], TARGETS, part, Journal(tmp_path / "parts"), settings, 0)[0] for part in parts]
    assert [each.unfinished for each in after] == [True, True, False]
    assert [after[-1].impact] == expected
    assert sorted(question for part in parts for question in part.asked) == sorted(whole.asked)


def test_answers_that_the_model_refuses_do_not_count(tmp_path: Path) -> None:
    refused = ChatError("it will not say", "refusal")
    llm = Scripted(lambda text, before: refused if "About D." in text else needing("A")(text, before))
    (impact,) = measured(llm, tmp_path / "journal")
    assert impact.subsets == 15
    assert {each.document: each.impact for each in impact.documents}[3] is None


def test_rows_and_counts_say_what_each_role_contributes(tmp_path: Path) -> None:
    llm = Scripted(needing("A", misled_by="C"))
    after = measure_impact([query()], TARGETS, llm, Journal(tmp_path / "journal"), EVERYTHING, 0)
    roles = [(row["fqn"], row["role"]) for row in iter_impact_rows(after, TARGETS)]
    assert roles[:2] == [("kit.A", "gold"), ("kit.B", "gold")]
    assert roles[2:] == [("kit.C", "hard negative"), ("kit.D", "hard negative"), ("kit.E", "random negative")]
    counts = count_impacts(after)
    assert (counts.queries, counts.subsets) == (1, 31)
    assert (counts.roles["gold"].helpful, counts.roles["hard negative"].harmful) == (1, 1)
