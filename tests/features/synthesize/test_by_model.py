from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from retrievers.llm.chat import ChatError
from runner.config.objects import ConfigError
from runner.features.synthesize.base import COMPARISON, QUERY_TYPES, Draft, check_types
from runner.features.synthesize.by_model import ByModel, find_query
from runner.llm.journal import Journal
from tests.evaluation.chats import Scripted, always
from tests.features.synthesize.pages import TEXTS, create_request, harbour_chunks

CHUNKS = harbour_chunks()
GOOD = "when can deep boats come in"


def test_there_is_a_prompt_for_every_type() -> None:
    assert ByModel(llm=always(GOOD)).possible_types == frozenset(QUERY_TYPES)


def test_the_model_sees_goldens_distractors_and_the_bounds(journal: Journal) -> None:
    llm = always(GOOD)
    assert list(ByModel(llm=llm).drafts(CHUNKS, [create_request("medium")], journal)) == [(0, Draft(GOOD))]
    (question,) = llm.asked
    assert all(text in question for text in TEXTS)
    assert "at least 5 and at most 20 words" in question
    assert CHUNKS.doc_ids[0] not in question


@pytest.mark.parametrize(
    ("first", "feedback", "reason"),
    [
        ("berth", "fewer words", "too short"),
        (f"{GOOD} " * 9, "more words", "too long"),
        ("A tide window is the span of hours", "word for word", "copied"),
        ("is ops mooring scheduler the one to ask", "names the document", "names its document"),
        ("``` ```", "no query in it", "empty"),
        ("Sure! Here is a query:", "no query in it", "empty"),
        ("when does the first passage say boats come", "speaks of the passages", "mentions the passages"),
        ("The keeper replaces lamps, and it is important to note that this is done " * 3, "more words", "too long"),
    ],
)
def test_a_query_beyond_a_limit_is_requested_again_with_the_reason(
    first: str, feedback: str, reason: str, journal: Journal
) -> None:
    llm = Scripted(lambda question, _: GOOD if "Write another one" in question else first)
    assert dict(ByModel(llm=llm).drafts(CHUNKS, [create_request("medium")], journal)) == {0: Draft(GOOD)}
    assert feedback in llm.asked[1]
    stubborn = always(first)
    assert dict(ByModel(llm=stubborn, retries=2).drafts(CHUNKS, [create_request("medium")], journal)) == {
        0: Draft("", reason)
    }
    assert len(stubborn.asked) == 3


def test_a_query_may_mention_passages_other_than_those_of_the_prompt(journal: Journal) -> None:
    for query in ("how does the passage of time wear a quay", "what is the passage through the straits like in winter"):
        drafts = dict(ByModel(llm=always(query), retries=0).drafts(CHUNKS, [create_request("medium")], journal))
        assert drafts == {0: Draft(query)}


def test_a_snippet_that_is_not_verbatim_is_refused(journal: Journal) -> None:
    drafts = dict(
        ByModel(llm=always("A tide window is a span"), retries=0).drafts(
            CHUNKS, [create_request("exact_snippet")], journal
        )
    )
    assert drafts[0].reason == "not verbatim"


def test_a_low_overlap_query_with_the_words_of_its_golden_is_dropped(journal: Journal) -> None:
    near = "when can pilots compute the tide windows"
    llm = Scripted(lambda question, _: "how do big boats know the hours" if "other words" in question else near)
    want = create_request("low_overlap")
    assert dict(ByModel(llm=llm).drafts(CHUNKS, [want], journal))[0] == Draft("how do big boats know the hours")
    assert "too many of its words are in the passages" in llm.asked[1]
    stubborn = always(near)
    assert dict(ByModel(llm=stubborn, retries=1).drafts(CHUNKS, [want], journal))[0] == Draft("", "overlaps")
    assert dict(ByModel(llm=stubborn, most_overlap=1).drafts(CHUNKS, [want], journal))[0] == Draft(near)
    assert dict(ByModel(llm=stubborn).drafts(CHUNKS, [create_request("medium")], journal))[0] == Draft(near)


def test_a_comparison_of_one_golden_costs_no_call(journal: Journal) -> None:
    llm = always(GOOD)
    assert dict(ByModel(llm=llm).drafts(CHUNKS, [create_request(COMPARISON)], journal))[0].reason == "needs two goldens"
    assert llm.asked == []


def test_replies_survive_the_end_of_a_budget(journal: Journal) -> None:
    wants = [create_request("medium", 0, (at,)) for at in range(4)]
    poor = Scripted(lambda question, _: GOOD, budget=2, concurrency=1)
    drafts = {}
    with pytest.raises(ChatError, match="max_calls"):
        drafts.update(ByModel(llm=poor).drafts(CHUNKS, wants, journal))
    rich = Scripted(lambda question, _: GOOD, concurrency=1)
    drafts = dict(ByModel(llm=rich).drafts(CHUNKS, wants, Journal(journal.file)))
    assert drafts == dict.fromkeys(range(4), Draft(GOOD))
    assert len(poor.asked) + len(rich.asked) == 4


def test_an_error_of_every_question_ends_the_work(journal: Journal) -> None:
    """A key without the right to a model, or a setting that it does not take, leaves no dataset of refusals."""
    wants = [create_request("medium", 0, (at,)) for at in range(4)]
    with pytest.raises(ChatError, match="no such temperature"):
        dict(ByModel(llm=always(ChatError("no such temperature", "request"))).drafts(CHUNKS, wants, journal))
    once = Scripted(
        lambda question, _: GOOD if TEXTS[1] in question.split("must not")[0] else ChatError("no", "denied")
    )
    reasons = {draft.reason for _, draft in ByModel(llm=once).drafts(CHUNKS, wants, journal)}
    assert reasons == {"", "refused"}
    modest = always(ChatError("I cannot", "refusal"))
    assert {draft.reason for _, draft in ByModel(llm=modest).drafts(CHUNKS, wants, journal)} == {"refused"}


def test_a_refusal_is_final_and_a_temporary_error_is_not(journal: Journal) -> None:
    refused = always(ChatError("no", "refusal"))
    assert dict(ByModel(llm=refused).drafts(CHUNKS, [create_request("medium")], journal)) == {0: Draft("", "refused")}
    with pytest.raises(ChatError, match="later"):
        dict(ByModel(llm=always(ChatError("later", "server"))).drafts(CHUNKS, [create_request("medium")], journal))


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        ("tide times", "tide times"), ('"tide times"', "tide times"), ("Query: tide times", "tide times"),
        ("Here it is:\n\n```\ntide times\n```", "tide times"), ("**tide times**", "tide times"), ("", ""),
        ("error: port closed", "error: port closed"), ("Sure! Here is a query: tide times", "tide times"),
        ("Sure! Here is a query:\n\n1. \"tide times?\"\n\nIt asks for hours.", "tide times?"), ("Here's one:", ""),
        ("tide times\n\nThis query is about tides.", "tide times"), 
        ("Query: no\nQuery: tide times\nWhy: x", "tide times"),
        ("<think>Query: which?</think>\ntide times", "tide times"), ("```text\ntide times\n```", "tide times"),
        ("“tide times”.", "tide times"), ('"tide" or "times"', '"tide" or "times"'), 
        ("Query:\ntide times", "tide times"),
    ],
)  # fmt: skip
def test_the_query_is_read_from_a_reply(reply: str, query: str) -> None:
    assert find_query(reply) == query


def test_own_prompts_replace_the_bundled_ones(tmp_path: Path, journal: Journal) -> None:
    (tmp_path / "keyword.txt").write_text("Words of $goldens that cost $$1")
    llm = always("tide berth")
    generator = ByModel(llm=llm, prompts=str(tmp_path))
    assert dict(generator.drafts(CHUNKS, [create_request("keyword", 0, (2,))], journal)) == {0: Draft("tide berth")}
    assert llm.asked[0].endswith("that cost $1")
    with pytest.raises(ConfigError, match="cannot generate short queries; choose from keyword"):
        check_types(generator, ["short"])


@pytest.mark.parametrize("text", ["no gap", "$goldens $answer", "$goldens $", "$distractors"])
def test_a_prompt_with_other_gaps_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "keyword.txt").write_text(text)
    with pytest.raises(ValidationError, match=r"keyword\.txt: a prompt must contain \$goldens"):
        ByModel(llm=always(GOOD), prompts=str(tmp_path))


def test_a_folder_without_prompts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="the folder contains no prompt"):
        ByModel(llm=always(GOOD), prompts=str(tmp_path))


def test_the_identity_includes_the_prompts(tmp_path: Path) -> None:
    (tmp_path / "keyword.txt").write_text("$goldens")
    before = ByModel(llm=always(GOOD), prompts=str(tmp_path)).identity
    (tmp_path / "keyword.txt").write_text("$goldens!")
    assert ByModel(llm=always(GOOD), prompts=str(tmp_path)).identity != before
