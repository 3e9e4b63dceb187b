from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from retrievers.base import Corpus
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.llm.chat import ChatError
from retrievers.store import MemoryStore
from runner.features.synthesize.base import Bundle, Chunks, Request
from runner.features.synthesize.llm_checks import parse_rating
from runner.features.synthesize.nonllm import measure_contrast
from runner.features.synthesize.terms import content, count_terms
from runner.features.synthesize.validation import Gates, QueryVerdict, Validation, validate_queries
from runner.llm.journal import Journal
from tests.evaluation.chats import Scripted, always
from tests.features.synthesize.pages import create_request, harbour_chunks

CHUNKS = harbour_chunks()


def _item(query: str, goldens: tuple[int, ...] = (0,), query_type: str = "medium") -> tuple[Request, str]:
    return create_request(query_type, 0, goldens), query


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _verdict(settings: Validation, item: tuple[Request, str]) -> QueryVerdict:
    ((position, verdict),) = validate_queries(settings, CHUNKS, [item], Journal(Path("journal.jsonl")))
    assert position == 0
    return verdict


def _rater(answer: str, first: str, second: str) -> Scripted:
    def reply(question: str, _: int) -> str:
        if "NO ANSWER" in question:
            return answer
        return first if "Rate the passages" in question else second

    return Scripted(reply)


def test_mode_none_accepts_any_query() -> None:
    assert _verdict(Validation(mode="none"), _item("cheese")) == QueryVerdict(True)


def test_a_query_in_the_words_of_its_golden_is_accepted() -> None:
    verdict = _verdict(Validation(), _item("tide window of a deep vessel"))
    assert verdict.accepted
    assert verdict.evaluation == "nonllm"
    assert verdict.metrics["bm25_rank"] == 1
    assert verdict.metrics["coverage_golden"] == 1


@pytest.mark.parametrize(
    ("query", "goldens", "reason"),
    [
        ("lamp of the lighthouse", (0,), "bm25 rank"),
        ("cheese and wine", (0,), "bm25 rank"),
        ("scheduler cheese wine olives", (0,), "coverage"),
        ("ship owner northern", (1,), "coverage gap"),
    ],
)
def test_a_query_that_fits_distractors_as_well_is_rejected(query: str, goldens: tuple[int, ...], reason: str) -> None:
    gates = Gates(min_gap=0.4)
    assert _verdict(Validation(gates=gates), _item(query, goldens)).reason == reason


def test_the_margin_is_a_gate_of_its_own() -> None:
    item = _item("tide window of a deep vessel")
    margin = _verdict(Validation(), item).metrics["bm25_margin"]
    assert margin is not None
    assert _verdict(Validation(gates=Gates(min_margin=margin)), item).accepted
    assert _verdict(Validation(gates=Gates(min_margin=margin + 0.01)), item).reason == "bm25 margin"


def test_a_type_can_have_other_gates() -> None:
    item = _item("cheese scheduler olives", query_type="low_overlap")
    assert _verdict(Validation(), item).reason == "coverage"
    assert _verdict(Validation(by_type={"low_overlap": Gates(min_coverage=0, min_gap=0)}), item).accepted


def test_scores_are_those_of_bm25_over_all_chunks() -> None:
    """The retriever is the oracle: one golden, all others distractors, the same counts."""
    query = "tide window for a ship with cargo"
    ids = [str(at) for at in range(4)]
    corpus = Corpus(ids, [content(CHUNKS, at) for at in range(4)])
    rankings = BM25().index(corpus, MemoryStore()).search([query], 4)
    scores = dict(zip(rankings.documents[0].tolist(), rankings.scores[0].tolist(), strict=True))
    ours = measure_contrast(
        count_terms(CHUNKS, Analyzer()), CHUNKS, create_request("medium", 0, (1,)).bundle, query, 0.9, 0.4
    )
    best = max(scores[at] for at in (0, 2, 3) if at in scores)
    assert ours.margin == pytest.approx(scores[1] - best, rel=1e-5)
    assert ours.rank == 1 + sum(scores.get(at, -np.inf) >= scores[1] for at in (0, 2, 3))


def test_goldens_count_as_one_document() -> None:
    query = "tide window customs cargo"
    alone, joined = (_verdict(Validation(), _item(query, goldens)) for goldens in ((0,), (0, 1)))
    assert alone.metrics["coverage_golden"] == 0.5
    assert joined.metrics["coverage_golden"] == 1


def test_without_distractors_margin_and_gap_are_score_and_coverage() -> None:
    chunks = Chunks(["a", "b"], ["0", "0"], ["Boats lie at the quay.", "Cheese."])
    contrast = measure_contrast(count_terms(chunks, Analyzer()), chunks, Bundle((0,), ()), "boats", 0.9, 0.4)
    assert (contrast.rank, contrast.coverage, contrast.gap) == (1, 1, 1)
    assert contrast.margin > 0


@pytest.mark.parametrize(
    ("answer", "first", "second", "relevance", "reason"),
    [
        ("It is when the tide is high.", "2", "2", 1.0, ""),
        ("It is when the tide is high.", "1", "2", 0.75, "context relevance"),
        ("NO ANSWER", "2", "2", None, "no answer"),
        ("It is when the tide is high.", "2", "very", None, "no score"),
        ("It is when the tide is high.", "between 1 and 2", "2", None, "no score"),
    ],
)
def test_the_model_answers_and_rates(
    answer: str, first: str, second: str, relevance: float | None, reason: str
) -> None:
    verdict = _verdict(Validation(mode="llm", llm=_rater(answer, first, second)), _item("when is the tide right"))
    assert (verdict.metrics["ragas_context_relevance"], verdict.reason) == (relevance, reason)
    assert verdict.accepted is (not reason)
    assert verdict.evaluation == "llm"


def test_the_model_sees_only_goldens() -> None:
    llm = _rater("yes", "2", "2")
    _verdict(Validation(mode="llm", llm=llm), _item("when is the tide right", (1,)))
    assert all(CHUNKS.texts[1] in question and CHUNKS.texts[0] not in question for question in llm.asked)
    assert len(llm.asked) == 3


def test_goldens_that_do_not_answer_are_not_rated() -> None:
    llm = _rater("No answer.", "2", "2")
    _verdict(Validation(mode="llm", llm=llm), _item("cheese"))
    assert len(llm.asked) == 1


def test_hybrid_asks_the_model_only_about_failures(journal: Journal) -> None:
    llm = _rater("yes", "2", "2")
    items = [_item("tide window of a deep vessel"), _item("cheese and wine")]
    verdicts = dict(validate_queries(Validation(mode="hybrid", sample_rate=1, llm=llm), CHUNKS, items, journal))
    assert [verdicts[at].evaluation for at in range(2)] == ["hybrid_nonllm", "hybrid_llm"]
    assert all(verdicts[at].accepted for at in range(2))
    assert verdicts[1].metrics["bm25_rank"] == 4
    assert not any("tide window of a deep vessel" in question for question in llm.asked)
    assert len(llm.asked) == 3


def test_hybrid_asks_about_a_share_that_depends_on_the_query(journal: Journal) -> None:
    settings = Validation(mode="hybrid", sample_rate=0.25, llm=always("2"))
    escalated = [settings.escalates(f"query {at}") for at in range(2000)]
    assert 0.2 < np.mean(escalated) < 0.3
    assert escalated == [settings.escalates(f"query {at}") for at in range(2000)]
    failed = [_item(f"cheese {at}") for at in range(40)]
    verdicts = dict(validate_queries(settings, CHUNKS, failed, journal))
    for at, item in enumerate(failed):
        assert (verdicts[at].evaluation == "hybrid_llm") is settings.escalates(item[1])


def test_modes_that_ask_a_model_need_one() -> None:
    for mode in ("llm", "hybrid"):
        with pytest.raises(ValidationError, match=f"mode={mode}: needs a language model; set, for example,"):
            Validation(mode=mode)  # type: ignore[arg-type]  # one of the modes
    assert Validation(mode="hybrid", sample_rate=0).mode == "hybrid"


def test_gates_of_an_unknown_type_are_refused() -> None:
    with pytest.raises(ValidationError, match="did you mean keyword"):
        Validation(by_type={"keywords": Gates()})


def test_replies_are_paid_once_across_interruptions(journal: Journal) -> None:
    items = [_item(f"tide at berth {at}") for at in range(4)]
    poor = Scripted(lambda question, _: "2", budget=5, concurrency=1)
    with pytest.raises(ChatError, match="max_calls"):
        list(validate_queries(Validation(mode="llm", llm=poor), CHUNKS, items, journal))
    rich = Scripted(lambda question, _: "2", concurrency=1)
    verdicts = dict(validate_queries(Validation(mode="llm", llm=rich), CHUNKS, items, Journal(journal.file)))
    assert all(verdicts[at].accepted for at in range(4))
    assert len(poor.asked) + len(rich.asked) == 12


def test_a_refusal_is_not_accepted() -> None:
    verdict = _verdict(Validation(mode="llm", llm=always(ChatError("no", "refusal"))), _item("tide"))
    assert (verdict.accepted, verdict.reason) == (False, "refused")


@pytest.mark.parametrize(
    ("reply", "rating"),
    [
        ("2", 2),
        (" 1.\n", 1),
        ("Rating: 0", 0),
        ("2/2", 2),
        ("I would say 2.", 2),
        ("3", None),
        ("0 or 1", None),
        ("", None),
    ],
)
def test_a_rating_is_read_from_a_reply_or_missing(reply: str, rating: float | None) -> None:
    assert parse_rating(reply) == rating
