"""How often language models will be asked is what a sweep then asks them, and its price what such calls took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from retrievers.base import Corpus, Retriever, Searcher
from retrievers.composed.agentic import Agentic
from retrievers.composed.expanded import Expanded
from retrievers.composed.fusion import Hybrid
from retrievers.composed.reranked import Reranked
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.llm.chat import Chat, Reply
from retrievers.llm.model_calls import ModelCalls
from retrievers.rerankers.base import Rerank
from retrievers.rerankers.listwise import ListwiseReranker
from retrievers.rerankers.pointwise import PointwiseReranker
from retrievers.search import search_cached
from retrievers.services.http_api import Http
from retrievers.store import MemoryStore, Store
from retrievers.vectors.dense import Dense
from runner.datasets.base import Queries
from runner.datasets.dataset import Dataset
from runner.datasets.own_documents import search_others
from runner.evaluation.experiment import Experiment
from runner.evaluation.grading import Grading
from runner.llm.client import TEMPLATE_TOKENS
from runner.llm.embedding import ApiEncoder
from runner.llm.providers import OpenAI
from runner.metrics.settings import MetricSettings
from runner.sweep.calls import estimate_calls
from runner.sweep.work import PlannedCalls
from tests.evaluation.chats import always
from tests.evaluation.test_bench import Small
from tests.fake_embeddings import EmbeddingService, write_tokenizer
from tests.fake_llm import FakeLLM
from tests.retrievers.http_search import FORM

DATASET = Small().load()
N = len(DATASET.queries)


@pytest.fixture
def llm(tmp_path: Path) -> OpenAI:
    """Return a model with prices, that was never asked."""
    ledger = str(tmp_path / "llm.db")
    return OpenAI(model="m", ledger=ledger, price_in=1.0, price_out=2.0, max_tokens=100, base_url="http://localhost:1")


def experiment(retriever: object, grading: Grading | None = None) -> Experiment:
    return Experiment("one", "one", retriever, Small(), MetricSettings(), {}, {}, grading=grading)  # type: ignore[arg-type]  # any retriever


def plan_all(*experiments: Experiment, to_search: bool = True) -> dict[str, PlannedCalls]:
    return {calls.purpose: calls for calls in estimate_calls((e, DATASET, to_search) for e in experiments)}


def test_each_way_to_ask_is_counted_wherever_it_is(llm: OpenAI) -> None:
    parts = {
        "expanded": Expanded(base=BM25(), llm=llm),
        "agentic": Agentic(base=BM25(), llm=llm, max_calls=4),
        "reranked": Reranked(base=BM25(), reranker=ListwiseReranker(llm, window=2, step=1), depth=40),
    }
    found = plan_all(experiment(Hybrid(parts), Grading(llm=llm, repeats=2)))
    assert {purpose: calls.calls for purpose, calls in found.items()} == {
        "expand": N, "agent": 4 * N, "rerank": 3 * N, "grade": 2 * N,
    }  # fmt: skip


@dataclass(frozen=True)
class Rewriting:
    """A retriever of a plug-in that has a language model rewrite each query."""

    base: Retriever
    llm: Chat

    def index(self, corpus: Corpus, store: Store) -> Searcher:
        return self.base.index(corpus, store)

    def plan_calls(self, corpus: Corpus, queries: Sequence[str]) -> list[ModelCalls]:
        return [ModelCalls(self.llm, "rewrite", len(queries), 7 * len(queries), replies_read=2)]


@dataclass(frozen=True)
class Pointwise:
    """A reranker of a plug-in that asks a language model about each candidate."""

    llm: Chat

    def open(self, store: Store) -> Rerank:
        raise NotImplementedError

    def plan_candidate_calls(self, corpus: Corpus, queries: Sequence[str], n: int) -> ModelCalls:
        return ModelCalls(self.llm, "judge", n * len(queries), n * len(queries))


def test_retrievers_and_rerankers_of_plug_ins_plan_their_calls_wherever_they_are(llm: OpenAI) -> None:
    nested = Reranked(base=Hybrid({"a": Rewriting(BM25(), llm), "b": BM25()}), reranker=Pointwise(llm), depth=3)
    calls = plan_all(experiment(nested))
    tokens = N * (TEMPLATE_TOKENS + 7) + 2 * llm.max_tokens
    assert (calls["rewrite"].calls, calls["rewrite"].tokens_in, calls["rewrite"].most) == (N, tokens, True)
    assert (calls["judge"].calls, calls["judge"].tokens_in) == (3 * N, 3 * N * (TEMPLATE_TOKENS + 1))


def test_cached_or_shared_searches_need_no_new_calls_but_grades_do(llm: OpenAI) -> None:
    one = experiment(Expanded(base=BM25(), llm=llm), Grading(llm=llm))
    both = plan_all(one, replace(one, name="two"))
    assert (both["expand"].calls, both["grade"].calls) == (N, 2 * N)
    assert plan_all(one, to_search=False).keys() == {"grade"}


def test_without_a_language_model_there_is_nothing_to_plan() -> None:
    assert plan_all(experiment(BM25())) == {}


def test_before_any_call_a_grading_is_estimated_by_what_is_shown(llm: OpenAI) -> None:
    grade = plan_all(experiment(BM25(), Grading(llm=llm)))["grade"]
    assert (grade.rough, grade.most) == (True, False)
    assert grade.tokens_out == 100 * N
    assert grade.tokens_in is not None
    assert grade.tokens_in > N * 64
    assert grade.cost == pytest.approx((grade.tokens_in + 2 * 100 * N) / 1e6, rel=0.01)
    assert not Path(llm.ledger).exists()  # no book is opened for a plan


@dataclass(frozen=True)
class Listener:
    """Answers with one reply after the other, and notes what each call is booked at: the bytes of what it is shown."""

    replies: Iterator[str] = field(repr=False)
    heard: list[int] = field(default_factory=list, repr=False)

    def ask(self, question: str, system: str = "", purpose: str = "") -> Reply:
        self.heard.append(len(question.encode()) + len(system.encode()) + TEMPLATE_TOKENS)
        return Reply(next(self.replies))


def searches(llm: Chat) -> dict[str, Any]:
    few = BM25(analyzer=Analyzer(stemmer=None, stopwords=None))
    return {
        "expand": Expanded(base=few, llm=llm, method="hyde", n=2),
        "agent": Agentic(base=few, llm=llm, max_calls=3, shown=2, max_words=1),
        "rerank": Reranked(base=few, reranker=ListwiseReranker(llm, window=2, step=1, max_words=1), depth=100),
    }


def test_a_query_that_is_a_document_has_one_more_candidate_to_rerank() -> None:
    texts = {f"d{number}": f"boat {number}" for number in range(6)}
    queries = {name: texts[name] for name in ("d0", "d1")}
    dataset = Dataset.of(texts, queries, {name: ["d5"] for name in queries})
    listener = Listener(repeat("1"))
    reranked = Reranked(BM25(), PointwiseReranker(listener, threads=1), depth=3)
    (planned,) = estimate_calls([(experiment(reranked), dataset, True)])
    search_others(
        dataset,
        reranked,
        4,
        lambda deeper, k: search_cached(deeper, dataset.corpus, dataset.queries.inputs, k, MemoryStore()),
    )
    assert planned.calls == len(listener.heard) == 2 * 4


@pytest.mark.parametrize("purpose", ["expand", "agent", "rerank"])
def test_before_any_call_a_search_has_an_upper_bound_that_no_search_exceeds(llm: OpenAI, purpose: str) -> None:
    bound = plan_all(experiment(searches(llm)[purpose]))[purpose]
    assert (bound.rough, bound.most) == (False, True)
    assert bound.tokens_in is not None
    assert bound.cost == pytest.approx((bound.tokens_in + 2 * 100 * bound.calls) / 1e6)
    for reply in ("", "boat house " * 9, "ENOUGH", "[2] > [1]"):
        listener = Listener(repeat(reply))
        search_cached(searches(listener)[purpose], DATASET.corpus, DATASET.queries.texts, 4, MemoryStore())
        assert len(listener.heard) <= bound.calls
        assert sum(listener.heard) <= bound.tokens_in


def test_the_bound_of_an_agent_is_met_where_all_that_it_may_show_is_shown(llm: OpenAI) -> None:
    """Each call shows every search so far with documents of the same length, and replies are as long as they may be."""
    how = searches(llm)["agent"]
    corpus = Corpus(["a", "b"], ["boat x", "boat y"])
    queries = Queries(["q"], ["boat"], [""])
    alike = replace(DATASET, corpus=corpus, queries=queries)
    (bound,) = estimate_calls([(experiment(how), alike, True)])
    replies = iter([f"{'boat ' * 19} {i:04}" for i in range(3)])
    assert bound.tokens_in is not None
    listener = Listener(replies)
    search_cached(replace(how, llm=listener), corpus, queries.texts, 2, MemoryStore())
    assert sum(listener.heard) == pytest.approx(bound.tokens_in, rel=0.02)


def test_after_a_call_tokens_are_what_such_calls_took(llm: OpenAI) -> None:
    with FakeLLM(answer=lambda *_: "three short words") as fake:
        asked = replace(llm, base_url=fake.url)
        asked.ask("two words", purpose="expand")
        asked.ask("two words and then some", purpose="expand")
        asked.ask("not of this purpose at all", purpose="grade")
        found = plan_all(experiment(Expanded(base=BM25(), llm=asked)))["expand"]
    assert found == PlannedCalls("expand", "m", N, round(3.5 * N), 3 * N, pytest.approx((3.5 + 6) * N / 1e6))


def test_cost_is_unknown_without_prices(llm: OpenAI) -> None:
    assert plan_all(experiment(BM25(), Grading(llm=replace(llm, price_in=None))))["grade"].cost is None


def test_of_a_model_that_is_a_plugins_only_the_calls_are_known() -> None:
    found = plan_all(experiment(BM25(), Grading(llm=always('{"grade": 5}'))))["grade"]
    assert found == PlannedCalls("grade", "Scripted", N)


WORDS = len(["red", "boat", "blue", "boat", "red", "house", "green"]) + len(["red", "boat", "blue", "purple", "boat"])
"""The words of all texts: those of a document and a query that are equal count for both."""


@pytest.fixture
def encoder(tmp_path: Path) -> ApiEncoder:
    """Return an embedding API with a price and a tokenizer, whose documents and queries do not share vectors."""
    return ApiEncoder(
        model="e", base_url="http://localhost:1", ledger=str(tmp_path / "llm.db"), price_in=2.0, document_type="d",
        query_type="q", batch_size=3, tokenizer=str(write_tokenizer(tmp_path / "tokenizer.json")),
    )  # fmt: skip


def test_the_price_of_embeddings_is_planned_once_for_all_searches_and_exactly(encoder: ApiEncoder) -> None:
    searches = [Dense(encoder), Dense(encoder, metric="dot"), Hybrid({"a": Dense(encoder, metric="l2"), "b": BM25()})]
    found = plan_all(*map(experiment, searches))["embed"]
    price = "encoder.price_in"
    assert found == PlannedCalls("embed", "e", 4, WORDS, None, pytest.approx(2 * WORDS / 1e6), price_settings=price)
    assert not Path(encoder.ledger).exists()
    assert plan_all(*map(experiment, searches), to_search=False) == {}


def test_a_service_that_has_embedded_its_documents_only_needs_vectors_of_queries(encoder: ApiEncoder) -> None:
    found = plan_all(experiment(Http("http://localhost:1", encoder=encoder, **FORM | {"request": {"v": "{vector}"}})))
    assert found["embed"].tokens_in == len(["red", "boat", "blue", "purple", "boat"])


def test_without_a_tokenizer_embeddings_have_an_upper_bound_and_later_an_estimate(encoder: ApiEncoder) -> None:
    with FakeLLM(respond=EmbeddingService()) as fake:
        rough = replace(encoder, tokenizer=None, base_url=fake.url)
        bound = plan_all(experiment(Dense(rough)))["embed"]
        assert (bound.most, bound.rough) == (True, False)
        assert bound.tokens_in is not None and bound.tokens_in > WORDS
        rough.load_vectors(["red boat", "blue"], "query")  # 3 words, 12 bytes
        estimate = plan_all(experiment(Dense(rough)))["embed"]
    texts = ["red boat", "blue boat", "red house", "green", "purple", "boat"]
    assert (estimate.most, estimate.rough, estimate.calls) == (False, True, 3)
    assert estimate.tokens_in == round(sum(map(len, texts)) * 3 / 12)


def test_embeddings_without_a_price_have_no_cost(encoder: ApiEncoder) -> None:
    assert plan_all(experiment(Dense(replace(encoder, price_in=None))))["embed"].cost is None
