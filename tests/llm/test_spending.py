"""What is told of the calls that were made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from retrievers.composed.expanded import Expanded
from retrievers.composed.fusion import Hybrid
from retrievers.lexical.bm25 import BM25
from retrievers.llm.chat import ChatError
from retrievers.vectors.dense import Dense
from runner.llm.embedding import ApiEncoder
from runner.llm.none import NoLLM
from runner.llm.spending import compute_figures, describe_spending, measure_spending
from tests.fake_embeddings import EmbeddingService
from tests.fake_llm import FakeLLM
from tests.llm.conftest import CreateLLM


def test_all_calls_on_a_budget_are_summed_once_with_their_cost(create_llm: CreateLLM) -> None:
    with FakeLLM(answer=lambda *_: "three short words") as fake:
        llm = create_llm(fake, price_in=1e6, price_out=1e7, budget="b")
        llm.ask("two words", purpose="grade")
        create_llm(fake, budget="other").ask("?")
        for model in (llm, create_llm(fake, model="n", budget="b", retries=1)):
            model.ask("two words", purpose="reformulate")
        retriever = Expanded(base=BM25(), llm=llm)
        told = describe_spending([Hybrid({"a": retriever, "b": BM25()}), None, retriever])
    assert told == "language model: 3 calls, 6 tokens in, 9 out, cost 64"


def test_failures_are_reported_by_kind_and_cost_only_with_prices(create_llm: CreateLLM) -> None:
    with FakeLLM(rates={"server": 1.0}) as fake:
        llm = create_llm(fake, retries=2, budget="b")
        with pytest.raises(ChatError):
            llm.ask("?")
        assert (
            describe_spending([llm])
            == "language model: 3 calls (2 of them retries), 0 tokens in, 0 out; failed: server 3"
        )


def test_figures_are_of_what_was_spent_since_by_purpose(create_llm: CreateLLM) -> None:
    with FakeLLM(answer=lambda *_: "three short words") as fake:
        llm = create_llm(fake, price_in=1e6, price_out=1e7, budget="b")
        llm.ask("two words", purpose="grade")
        llm.ask("two words", purpose="expand")
        before = measure_spending([llm])
        llm.ask("two more words", purpose="grade")
        told = compute_figures(measure_spending([llm]), before)
    assert told == {
        "llm/grade/calls": 1, "llm/grade/retries": 0, "llm/grade/tokens_in": 3, "llm/grade/tokens_out": 3,
        "llm/grade/cost": pytest.approx(33), "llm/grade/failures": 0,
    }  # fmt: skip


def test_figures_of_failures_are_by_kind_and_have_no_cost_without_prices(create_llm: CreateLLM) -> None:
    with FakeLLM(rates={"server": 1.0}) as fake:
        llm = create_llm(fake, retries=2, budget="b")
        with pytest.raises(ChatError):
            llm.ask("?", purpose="grade")
        told = compute_figures(measure_spending([llm]), {})
    assert (told["llm/grade/calls"], told["llm/grade/failures"], told["llm/grade/failures/server"]) == (3, 3, 3)
    assert "llm/grade/cost" not in told


def test_without_calls_nothing_is_reported_and_no_ledger_is_created(create_llm: CreateLLM, tmp_path: Path) -> None:
    with FakeLLM() as fake:
        assert describe_spending([Expanded(base=BM25(), llm=create_llm(fake)), NoLLM(), BM25(), None]) == ""
    assert not (tmp_path / "llm.db").exists()


def test_embeddings_have_a_budget_and_a_line_of_their_own(create_llm: CreateLLM, tmp_path: Path) -> None:
    with FakeLLM() as fake, FakeLLM(respond=EmbeddingService()) as embeddings:
        llm = create_llm(fake, max_calls=1)
        encoder = ApiEncoder(model="e", base_url=embeddings.url, ledger=llm.ledger, price_in=1e6, max_calls=1)
        encoder.load_vectors(["two words"], "query")
        llm.ask("two words")
        lines = describe_spending([Expanded(base=Dense(encoder), llm=llm)]).splitlines()
        create_llm(fake, budget="b").ask("two words")
        shared = describe_spending([Dense(replace(encoder, budget="b")), create_llm(fake, budget="b")])
    assert lines[0] == "embeddings: 1 call, 2 tokens in, cost 2"
    assert lines[1].startswith("language model: 1 call, 2 tokens in, ")
    assert shared.startswith("embeddings and language model: 1 call, 2 tokens in, ")
