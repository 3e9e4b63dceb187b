"""Rerankers behind APIs: what is sent, what is kept, and what a failure leaves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from retrievers.base import Corpus
from retrievers.composed.reranked import Reranked
from retrievers.lexical.bm25 import BM25
from retrievers.llm.model_calls import iter_model_calls
from retrievers.rerankers.base import CandidateScores
from retrievers.search import search_cached
from retrievers.store import MemoryStore
from runner.config.composing import open_loader
from runner.config.objects import ConfigError
from runner.config.values import settle
from runner.evaluation.experiment import build_experiment
from runner.llm.ledger import Usage
from runner.llm.reranking import ApiReranker
from runner.sweep.compose import Composer
from tests.fake_llm import FakeLLM

MakeReranker = Callable[..., ApiReranker]


class RerankService:
    """Cohere's `/rerank`: the score of a text is the number of the query's letters in it, over 16."""

    def __init__(self) -> None:
        self.billed: Counter[tuple[str, str]] = Counter()
        self.requests: list[Sequence[str]] = []

    def __call__(self, path: str, body: Any) -> Any:
        assert path.endswith("/rerank")
        query, texts = body["query"], body["documents"]
        self.requests.append(texts)
        self.billed.update((query, text) for text in texts)
        results = [{"index": i, "relevance_score": score(query, text)} for i, text in enumerate(texts)]
        return {"results": results[::-1], "usage": {"total_tokens": 10 * len(texts)}}


def score(query: str, text: str) -> float:
    return sum(text.count(letter) for letter in query) / 16


@pytest.fixture
def make(tmp_path: Path) -> MakeReranker:
    def make(fake: FakeLLM, **given: Any) -> ApiReranker:
        usual = {"model": "m", "base_url": fake.url, "ledger": str(tmp_path / "llm.db"), "backoff_s": 0.001}
        return ApiReranker(**(usual | {"tokens": "usage.total_tokens?"} | given))

    return make


def rerank(reranker: ApiReranker, *pairs: tuple[str, Sequence[str]]) -> list[CandidateScores]:
    queries, candidates = zip(*pairs, strict=True)
    return reranker.open(MemoryStore())(queries, candidates, MemoryStore())


def spent(reranker: ApiReranker) -> Usage:
    return reranker.usage().get("rerank", Usage())


def test_each_pair_is_scored_and_paid_for_once(make: MakeReranker) -> None:
    service = RerankService()
    with FakeLLM(respond=service) as fake:
        reranker = make(fake, batch_size=2, price_in=1.0)
        first, second = rerank(reranker, ("ab", ["a", "b b", "aa b", "a"]), ("c", ["cc", "a"]))
        again, deeper = rerank(reranker, ("ab", ["aa b", "a"]), ("c", ["cc", "a", "c"]))
    assert first.scores.tolist() == [1 / 16, 2 / 16, 3 / 16, 1 / 16]
    assert second.scores.tolist() == [2 / 16, 0]
    assert again.scores.tolist() == [3 / 16, 1 / 16] and math.isnan(again.log.seconds)
    assert deeper.scores.tolist() == [2 / 16, 0, 1 / 16] and deeper.log.seconds > 0
    assert set(service.billed.values()) == {1} and len(service.billed) == 6
    assert spent(reranker).calls == len(service.requests) == 4
    assert spent(reranker).cost == pytest.approx(60e-6)
    assert first.log.figures["llm_calls"] == 2


def test_a_list_that_is_scored_together_is_sent_together(make: MakeReranker) -> None:
    service = RerankService()
    with FakeLLM(respond=service) as fake:
        reranker = make(fake, by_pair=False, batch_size=1)
        for texts in (["a", "b"], ["a", "b"], ["a", "b", "c"]):
            rerank(reranker, ("ab", texts))
    assert service.requests == [["a", "b"], ["a", "b", "c"]]


def test_a_blank_text_is_last_and_a_single_candidate_needs_no_call(make: MakeReranker) -> None:
    service = RerankService()
    with FakeLLM(respond=service) as fake:
        blank, single, none = rerank(make(fake), ("a", [" ", "a", "b"]), ("a", ["a"]), ("a", []))
    assert blank.scores.tolist() == [-1, 1 / 16, 0]
    assert single.scores.tolist() == [0] and none.scores.tolist() == []
    assert service.requests == [["a", "b"]]


def test_after_a_failure_the_base_order_remains_and_nothing_is_cached(make: MakeReranker) -> None:
    service = RerankService()
    with FakeLLM(respond=service, script=["ok", "bad_request"]) as fake:
        reranker = make(fake, concurrency=1)
        fine, failed = rerank(reranker, ("a", ["b", "a"]), ("b", ["a", "b"]))
        assert fine.scores.tolist() == [0, 1 / 16] and fine.log.settled
        assert failed.scores.tolist() == [0, -1] and not failed.log.settled
        (later,) = rerank(reranker, ("b", ["a", "b"]))
    assert later.scores.tolist() == [0, 1 / 16]


def test_after_a_failure_that_no_call_escapes_there_are_no_further_calls(make: MakeReranker) -> None:
    with FakeLLM(respond=RerankService(), rates={"unauthorized": 1.0}) as fake:
        results = rerank(make(fake, concurrency=1), *((name, ["a", "b"]) for name in "abc"))
    assert len(fake.asked) == 1
    assert [result.log.settled for result in results] == [False] * 3
    assert sum(result.log.figures["llm_calls"] for result in results) == 1


def test_a_missing_key_is_reported(make: MakeReranker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    with (
        FakeLLM() as fake,
        pytest.raises(ConfigError, match=r"^reranker\.api_key_env=SOME_KEY: the variable"),
    ):
        rerank(make(fake, api_key_env="SOME_KEY"), ("a", ["a", "b"]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"base_url": ""}, "base_url"),
        ({"max_cost": 1}, "needs prices; set price_in, the price per million tokens, or price_search, the price per"),
        ({"request": {"query": "{query}"}}, 'request should contain "{texts}"'),
    ],
)
def test_settings_that_cannot_work_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ApiReranker(**({"model": "m", "base_url": "http://x"} | given))


@pytest.mark.parametrize("by_pair", [True, False])
def test_no_search_costs_more_than_its_plan(make: MakeReranker, by_pair: bool) -> None:
    service = RerankService()
    corpus = Corpus([f"d{i}" for i in range(9)], ["boat " * (i + 1) for i in range(9)])
    queries = ["boat", "boat boats"]

    def respond(path: str, body: Any) -> Any:
        reply = service(path, body)
        tokens = sum(len(f"{body['query']} {text}") for text in body["documents"])
        return reply | {"usage": {"total_tokens": tokens}, "searches": 1}

    with FakeLLM(respond=respond) as fake:
        reranker = make(fake, by_pair=by_pair, batch_size=4, units="searches", price_in=1.0, price_search=2.0)
        retriever = Reranked(base=BM25(), reranker=reranker, depth=7)
        (planned,) = iter_model_calls(retriever, corpus, queries)
        search_cached(retriever, corpus, queries, 5, MemoryStore())
    assert planned.calls == len(service.requests) == (4 if by_pair else 2)
    most = reranker.nanos((planned.prompt_bytes, 0), planned.units) / 1e9
    assert 0 < spent(reranker).cost <= most
    assert spent(reranker).cost >= 2e-3 * planned.units


PRESETS: dict[str, tuple[str, Any, Any, Usage]] = {
    # choice: the address's path, the body, the reply, and what it costs
    "cohere": (
        "/v2/rerank",
        {"model": "m", "query": "q", "documents": ["a", "b"], "max_tokens_per_doc": 4096},
        {
            "id": "07734bd2-2473-4f07-94e1-0d9f0e6843cf",
            "results": [{"index": 1, "relevance_score": 0.75}, {"index": 0, "relevance_score": 0.5}],
            "meta": {"api_version": {"version": "2", "is_experimental": False}, "billed_units": {"search_units": 1}},
        },
        Usage(1, cost=2e-3),
    ),
    "voyage": (
        "/rerank",
        {"model": "m", "query": "q", "documents": ["a", "b"], "truncation": True},
        {
            "object": "list",
            "data": [{"relevance_score": 0.75, "index": 1}, {"relevance_score": 0.5, "index": 0}],
            "model": "rerank-2.5",
            "usage": {"total_tokens": 26},
        },
        Usage(1, tokens_in=26, cost=26e-6),
    ),
    "jina": (
        "/rerank",
        {"model": "m", "query": "q", "documents": ["a", "b"], "return_documents": False},
        {
            "model": "jina-reranker-v2-base-multilingual",
            "object": "list",
            "usage": {"total_tokens": 26},
            "results": [{"index": 1, "relevance_score": 0.75}, {"index": 0, "relevance_score": 0.5}],
        },
        Usage(1, tokens_in=26, cost=26e-6),
    ),
    "tei": (
        "/rerank",
        {"query": "q", "texts": ["a", "b"], "raw_scores": True, "truncate": True},
        [{"index": 1, "score": 0.75}, {"index": 0, "score": 0.5}],
        Usage(1, cost=0.0),
    ),
}  # fmt: skip
"""Requests and replies as in the references that the presets name, in November 2026."""


def build_reranker(choice: str, **given: object) -> ApiReranker:
    with open_loader("evaluate", []) as (loader, _):
        composer = Composer(loader, "evaluate", [])
        settings = [f"reranker.{name}={value}" for name, value in given.items()]
        cfg = composer.compose(["retriever=reranked", f"reranker={choice}", *settings])
    retriever = build_experiment(settle(cfg, cfg.hydra.runtime.choices)).retriever
    assert isinstance(retriever, Reranked) and isinstance(retriever.reranker, ApiReranker)
    return retriever.reranker


@pytest.mark.parametrize("choice", PRESETS)
def test_a_preset_speaks_as_the_reference_of_its_api_says(
    choice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, body, reply, usage = PRESETS[choice]
    with FakeLLM(respond=lambda path, body: reply) as fake:
        prices = (
            {"price_search": 2.0} if usage.tokens_in == 0 and usage.cost else {"price_in": 1.0} if usage.cost else {}
        )
        given: dict[str, object] = {"ledger": tmp_path / "llm.db", "base_url": fake.address, "model": "m"}
        reranker = build_reranker(f"api/{choice}", **given, **prices)
        if reranker.api_key_env:
            monkeypatch.setenv(reranker.api_key_env, "s3cret")
        (result,) = rerank(reranker, ("q", ["a", "b"]))
    assert result.scores.tolist() == [0.5, 0.75]
    (asked,) = fake.asked
    assert (asked.path, asked.body) == (path, body)
    assert asked.headers.get("authorization") == ("Bearer s3cret" if reranker.api_key_env else None)
    assert spent(reranker) == usage


def test_what_the_file_says_is_what_the_class_does() -> None:
    made = build_reranker("api", model="m", base_url="http://x")
    assert made == ApiReranker(model="m", base_url="http://x", tokens="usage.total_tokens?")
