"""Embeddings from an API: what is sent, what is kept, and what it costs."""

from __future__ import annotations

import base64
import math
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from retrievers.base import Corpus, RetrieverError
from retrievers.composed.reranked import Reranked
from retrievers.lexical.bm25 import BM25
from retrievers.store import MemoryStore
from retrievers.vectors.dense import Dense
from runner.config.composing import open_loader
from runner.config.objects import ConfigError
from runner.config.values import settle
from runner.evaluation.experiment import build_experiment
from runner.evaluation.text_cuts import describe_silent_cuts
from runner.llm.embedding import ApiEncoder
from runner.llm.ledger import Usage, open_ledger
from runner.llm.reranking import ApiReranker
from runner.sweep.compose import Composer
from tests.fake_embeddings import DIMENSIONS, EmbeddingService, embed, write_tokenizer
from tests.fake_llm import FakeLLM

MakeEncoder = Callable[..., ApiEncoder]


@pytest.fixture
def make(tmp_path: Path) -> MakeEncoder:
    def make(fake: FakeLLM, **given: Any) -> ApiEncoder:
        usual = {"model": "m", "base_url": fake.url, "ledger": str(tmp_path / "llm.db"), "backoff_s": 0.001}
        return ApiEncoder(**(usual | given))

    return make


def spent(encoder: ApiEncoder) -> Usage:
    return encoder.usage().get("embed", Usage())


def test_each_text_has_its_vector_and_is_sent_once(make: MakeEncoder) -> None:
    service = EmbeddingService()
    with FakeLLM(respond=service) as fake:
        encoder = make(fake, batch_size=2)
        texts = ["one boat", "", "two boats", "one boat", " \n", "lone \udce9", "three"]
        vectors = encoder.load_vectors(texts, "document")
        again = make(fake).load_vectors(["three", "one boat"], "query")
    assert vectors[[1, 4]].tolist() == [[0.0] * DIMENSIONS] * 2
    assert vectors[[0, 2, 3, 5, 6]].tolist() == [*map(embed, ("one boat", "two boats", "one boat", "lone ?", "three"))]
    assert again.tolist() == [embed("three"), embed("one boat")]
    assert sorted(map(len, service.requests)) == [2, 2]
    assert set(service.billed.values()) == {1}
    assert (spent(encoder).calls, spent(encoder).tokens_in) == (2, service.tokens)


def test_documents_and_queries_differ_if_their_types_or_prompts_do(make: MakeEncoder) -> None:
    request = {"model": "{model}", "input": "{texts}", "input_type": "{input_type}"}
    service = EmbeddingService()
    with FakeLLM(respond=service) as fake:
        encoder = make(fake, request=request, document_type="d", query_type="q")
        for role in ("document", "query", "query"):
            encoder.load_vectors(["boat"], role)  # type: ignore[arg-type]  # two of the roles
        assert [asked.body["input_type"] for asked in fake.asked] == ["d", "q"]
        prompted = make(fake, document_prompt="passage: ")
        assert prompted.load_vectors(["boat"], "document").tolist() == [embed("passage: boat")]


def test_a_search_embeds_only_the_texts_it_uses(make: MakeEncoder) -> None:
    service = EmbeddingService()
    with FakeLLM(respond=service) as fake:
        encoder, corpus = make(fake), Corpus(["a", "b"], ["red boat", "blue house"])
        embedded = encoder.embed(corpus, MemoryStore())
        _, seconds = embedded.queries(["sea"], MemoryStore())
        assert service.requests == [["sea"]] and math.isnan(seconds[0])
        found = Dense(encoder).index(corpus, MemoryStore()).search(["blue house"], 1)
    assert found.documents.tolist() == [[1]]
    assert service.billed == {"sea": 1, "red boat": 1, "blue house": 1}


def test_batches_hold_the_limits_and_a_long_text_goes_alone(make: MakeEncoder, tmp_path: Path) -> None:
    service = EmbeddingService()
    with FakeLLM(respond=service) as fake:
        tokenizer = str(write_tokenizer(tmp_path / "tokenizer.json"))
        encoder = make(fake, tokenizer=tokenizer, batch_tokens=5, batch_size=3, concurrency=1)
        encoder.load_vectors(["a b", "c d", "e f", "g", "h", "i", "j", "k l m n o p q", "r"], "document")
    assert service.requests == [["a b", "c d"], ["e f", "g", "h"], ["i", "j"], ["k l m n o p q"], ["r"]]


def test_texts_are_cut_by_tokens(make: MakeEncoder, tmp_path: Path) -> None:
    service = EmbeddingService()
    with FakeLLM(respond=service) as fake:
        write_tokenizer(tmp_path / "tokenizer.json")
        make(fake, tokenizer=str(tmp_path), max_length=2).load_vectors(["a  bé c d", "a  bé"], "document")
    assert service.billed == {"a  bé": 1}


def test_texts_that_are_cut_before_they_are_sent_are_counted(make: MakeEncoder, tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer.json")
    corpus = Corpus(["x", "y", "z", "blank"], ["a b c d", "a", "a b c d e f", " "])
    with FakeLLM(respond=EmbeddingService()) as fake:
        encoder = make(fake, tokenizer=str(tmp_path), max_length=2, query_prompt="q ")
        searcher = Dense(encoder).index(corpus, MemoryStore())
        assert searcher.diagnostics(["a b", "a"], 2, MemoryStore()) == {
            "documents_cut": 2, "documents_tokens": 4 + 1 + 6, "documents_tokens_unread": 2 + 4,
            "queries_cut": 1, "queries_tokens": 3 + 2, "queries_tokens_unread": 1,
        }  # fmt: skip
        assert describe_silent_cuts(Dense(encoder), Corpus(["x"], ["a" * 3_000])) == []


@pytest.mark.parametrize("part", ["encoder", "reranker"])
def test_a_service_that_may_cut_is_named_if_a_document_is_long(part: str) -> None:
    def build(**settings: Any) -> Any:
        if part == "encoder":
            return Dense(ApiEncoder(model="m", **settings))
        return Reranked(BM25(), ApiReranker(model="m", base_url="http://127.0.0.1:1", **settings))

    long, short = (Corpus(["x"], ["a" * n]) for n in (3_000, 500))
    (sentence,) = describe_silent_cuts(build(), long)
    assert sentence.startswith(f"{part}.model=m: the service may cut long texts without saying so")
    assert sentence.endswith(". The longest document has 3,000 bytes")
    assert describe_silent_cuts(build(), short) == describe_silent_cuts(build(truncation=False), long) == []


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("rate_limited", "rate_limited"), ("server", "server"), ("dropped", "connection"), ("html", "malformed")],
)
def test_what_may_pass_is_retried(fault: str, kind: str, make: MakeEncoder) -> None:
    service = EmbeddingService()
    with FakeLLM(respond=service, script=[fault]) as fake:
        encoder = make(fake)
        encoder.load_vectors(["boat"], "document")
    assert service.billed == {"boat": 1}
    assert (spent(encoder).calls, spent(encoder).failures) == (2, {kind: 1})


def test_a_permanent_error_stops_embedding_and_paid_vectors_are_reused(
    make: MakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "s3cret")
    service = EmbeddingService()
    with FakeLLM(respond=service, script=["ok", "unauthorized"]) as fake:
        encoder = make(fake, batch_size=1, concurrency=1, api_key_env="SOME_KEY")
        with pytest.raises(RetrieverError) as caught:
            encoder.load_vectors(["a", "b", "c"], "document")
        message = str(caught.value)
        assert message.startswith("encoder: m at 127.0.0.1") and "401" in message and "s3cret" not in message
        assert message.endswith("; 1 of 3 texts are embedded and kept for the next run")
        assert len(fake.asked) == 2 and fake.asked[0].headers["authorization"] == "Bearer s3cret"
        encoder.load_vectors(["a", "b", "c"], "document")
    assert service.billed == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize(
    "reply",
    [
        {"data": []},
        {"data": {}},
        {"data": [{"index": 0}]},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": True, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": [[1.0]]}]},
        {"data": [{"index": 0, "embedding": ["x"]}]},
        {"data": [{"index": 0, "embedding": "?"}]},
        {"data": [{"index": 0, "embedding": [1.0, float("nan")]}]},
        {"data": [{"index": 0, "embedding": [1e300]}]},
        {"data": [{"index": 0, "embedding": [10**400]}]},
        {"data": [{"index": 0, "embedding": ["1", "2"]}]},
        {"data": [{"index": 0, "embedding": [True, 0.5]}]},
        {"data": [{"index": 0, "embedding": [0.0, -0.0]}]},
        {"data": [{"index": 0, "embedding": base64.b64encode(bytes(8)).decode()}]},
        {"data": [{"index": 0, "embedding": [1.0]}], "usage": {"prompt_tokens": "3"}},
        {"data": [{"index": 0, "embedding": [1.0]}], "usage": {"prompt_tokens": -3}},
        {"data": [{"index": 0, "embedding": [1.0]}], "usage": {"prompt_tokens": 2**63}},
        {"data": [{"index": 0, "embedding": [1.0]}], "usage": {"prompt_tokens": float("inf")}},
    ],
)
def test_an_unusable_reply_is_a_failure_that_counts_at_its_most(reply: Any, make: MakeEncoder) -> None:
    with FakeLLM(respond=lambda path, body: reply) as fake:
        encoder = make(fake, retries=1, price_in=1.0)
        with pytest.raises(RetrieverError, match=r"unexpected form of reply .* after 2 attempts; 0 of 1 texts"):
            encoder.load_vectors(["boat"], "document")
    assert spent(encoder).failures == {"malformed": 2}
    assert spent(encoder).cost == pytest.approx(2 * (64 + len("boat")) / 1e6)


def test_base64_is_read(make: MakeEncoder) -> None:
    service = EmbeddingService(embed=lambda text: base64.b64encode(np.array(embed(text), "<f4").tobytes()).decode())
    with FakeLLM(respond=service) as fake:
        assert make(fake).load_vectors(["boat"], "query").tolist() == [embed("boat")]


def test_vectors_of_different_lengths_are_refused(make: MakeEncoder) -> None:
    service = EmbeddingService(embed=lambda text: [1.0] * len(text))
    refused = pytest.raises(RetrieverError, match=r"^encoder.model=m: returned vectors of 2 and of 3 dimensions")
    with FakeLLM(respond=service) as fake, refused:
        make(fake, batch_size=1).load_vectors(["ab", "abc"], "query")


def test_no_call_is_sent_or_counted_without_a_key(make: MakeEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with FakeLLM() as fake:
        encoder = make(fake, base_url=None)
        with pytest.raises(ConfigError, match=r"^encoder\.api_key_env=OPENAI_API_KEY: the variable is not set"):
            encoder.load_vectors(["boat"], "query")
        assert encoder.load_vectors([" "], "query").shape == (1, 0)
    assert spent(encoder) == Usage()


def test_the_budget_of_calls_holds_and_the_rest_is_embedded_later(make: MakeEncoder) -> None:
    service = EmbeddingService()
    texts = [f"text {i}" for i in range(9)]
    with FakeLLM(respond=service) as fake:
        encoder = make(fake, batch_size=1, max_calls=4, budget="b")
        with pytest.raises(RetrieverError, match=r"^encoder\.max_calls=4: all calls .*; 4 of 9 texts are embedded and"):
            encoder.load_vectors(texts, "document")
        assert len(fake.asked) == 4
        make(fake, batch_size=1, max_calls=9, budget="b").load_vectors(texts, "document")
    assert service.billed == dict.fromkeys(texts, 1)


def test_a_budget_of_money_holds(make: MakeEncoder, tmp_path: Path) -> None:
    service = EmbeddingService()
    tokenizer = str(write_tokenizer(tmp_path / "tokenizer.json"))
    with FakeLLM(respond=service) as fake:
        encoder = make(fake, batch_size=1, tokenizer=tokenizer, price_in=1e6, max_cost=5)
        with pytest.raises(RetrieverError, match=r"encoder\.max_cost=5: the rest of the budget does not cover"):
            encoder.load_vectors(["a b"] + [f"c {i}" for i in range(4)], "document")
    assert spent(encoder).cost == service.tokens == 4
    with pytest.raises(ValidationError, match="max_cost=5: needs prices; set price_in, the price per million tokens"):
        ApiEncoder(model="m", max_cost=5)


def test_the_key_of_a_vector_depends_on_model_settings_and_text_alone(make: MakeEncoder) -> None:
    """These keys are what users have paid for: a change of this test is a change that makes them pay again."""
    encoder = ApiEncoder(model="m", base_url="http://x/v1", dimensions=8)
    (text,) = encoder.list_texts(["boat"], "document")
    assert text is not None and text.key == "9bb6bd412298478c321a32f5d314d1ba"


def test_a_tokenizer_identifies_results_by_its_content_and_only_if_it_cuts(tmp_path: Path) -> None:
    file = str(write_tokenizer(tmp_path / "tokenizer.json"))
    plain, counting, cutting = (
        repr(ApiEncoder(model="m", tokenizer=tokenizer, max_length=length))
        for tokenizer, length in ((None, None), (file, None), (file, 9))
    )
    assert plain == counting != cutting and file not in cutting
    assert repr(ApiEncoder(model="m", tokenizer=str(tmp_path), max_length=9)) == cutting


def test_what_another_thread_is_paying_for_is_waited_for(make: MakeEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.llm.api_model._WAIT_S", 0.001)
    arrived, may_answer = threading.Event(), threading.Event()

    def hold(number: int) -> None:
        arrived.set()
        may_answer.wait(30)

    service = EmbeddingService(before=hold)
    with FakeLLM(respond=service) as fake:
        encoder = make(fake)
        vectors: list[Any] = []
        threads = [
            threading.Thread(target=lambda: vectors.append(encoder.load_vectors(["a", "b"], "query"))) for _ in range(2)
        ]
        threads[0].start()
        arrived.wait(30)
        threads[1].start()
        may_answer.set()
        for thread in threads:
            thread.join()
    assert [v.tolist() for v in vectors] == [[embed("a"), embed("b")]] * 2
    assert service.billed == {"a": 1, "b": 1}


def test_claims_end_with_their_process_and_with_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_ledger(str(tmp_path / "llm.db"))
    assert ledger.claim(["a", "b"], 60) == ["a", "b"]
    assert ledger.claim(["b", "c"], -1) == ["c"]
    assert ledger.claim(["c"], 60) == ["c"]
    ledger.release(["a"])
    assert ledger.claim(["a", "b", "c"], 60) == ["a"]
    monkeypatch.setattr("runner.llm.ledger.is_gone", lambda process: True)
    assert ledger.claim(["a", "b"], 60) == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tokenizer": "missing.json"}, r"tokenizer=missing\.json: no such file; set the path of a tokenizer\.json"),
        ({"max_length": 9}, "max_length=9: needs a tokenizer"),
        ({"request": {"input": "x"}}, 'request should contain "{texts}"'),
        ({"base_url": "http://key@x"}, "base_url should not contain credentials"),
    ],
)
def test_settings_that_cannot_work_are_refused(given: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ApiEncoder(model="m", **given)


def test_an_unreadable_tokenizer_is_named(make: MakeEncoder, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    refused = pytest.raises(RetrieverError, match=r"^encoder\.tokenizer=.*tokenizer\.json: cannot be read")
    with FakeLLM() as fake, refused:
        make(fake, tokenizer=str(tmp_path)).load_vectors(["boat"], "query")


def build_encoder(choice: str, *overrides: str) -> ApiEncoder:
    with open_loader("evaluate", []) as (loader, _):
        composer = Composer(loader, "evaluate", [])
        cfg = composer.compose(["retriever=dense", f"encoder={choice}", *overrides])
    retriever = build_experiment(settle(cfg, cfg.hydra.runtime.choices)).retriever
    assert isinstance(retriever, Dense) and isinstance(retriever.encoder, ApiEncoder)
    return retriever.encoder


PRESETS: dict[str, tuple[str, str, Any, Any, Any]] = {
    # choice: the address's path, the header of the key, the body for a document and for a query, and the reply
    "azure": (
        "/openai/deployments/m/embeddings?api-version=2024-10-21",
        "api-key",
        {"input": ["boat"], "dimensions": 2},
        {"input": ["sea"], "dimensions": 2},
        {
            "object": "list",
            "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}],
            "model": "text-embedding-3-small",
            "usage": {"prompt_tokens": 3, "total_tokens": 3},
        },
    ),
    "cohere": (
        "/v2/embed",
        "authorization",
        {
            "model": "m", "texts": ["boat"], "input_type": "search_document", "embedding_types": ["float"],
            "output_dimension": 2, "truncate": "END",
        },
        {
            "model": "m", "texts": ["sea"], "input_type": "search_query", "embedding_types": ["float"],
            "output_dimension": 2, "truncate": "END",
        },
        {
            "id": "da6e531f-54c5-4a73-bf92-f60566d8d753",
            "embeddings": {"float": [[0.5, 0.25]]},
            "texts": ["boat"],
            "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 3}},
            "response_type": "embeddings_by_type",
        },
    ),
    "voyage": (
        "/embeddings",
        "authorization",
        {"model": "m", "input": ["boat"], "input_type": "document", "truncation": True, "output_dimension": 2},
        {"model": "m", "input": ["sea"], "input_type": "query", "truncation": True, "output_dimension": 2},
        {
            "object": "list",
            "data": [{"object": "embedding", "embedding": [0.5, 0.25], "index": 0}],
            "model": "voyage-4",
            "usage": {"total_tokens": 3},
        },
    ),
    "jina": (
        "/embeddings",
        "authorization",
        {"model": "m", "input": ["boat"], "task": "retrieval.passage", "dimensions": 2, "truncate": True},
        {"model": "m", "input": ["sea"], "task": "retrieval.query", "dimensions": 2, "truncate": True},
        {
            "model": "jina-embeddings-v3",
            "object": "list",
            "usage": {"total_tokens": 3, "prompt_tokens": 3},
            "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}],
        },
    ),
    "google": (
        "/models/m:batchEmbedContents",
        "x-goog-api-key",
        {
            "requests": [{
                "model": "models/m", "content": {"parts": [{"text": "boat"}]}, "taskType": "RETRIEVAL_DOCUMENT",
                "outputDimensionality": 2,
            }]
        },
        {
            "requests": [{
                "model": "models/m", "content": {"parts": [{"text": "sea"}]}, "taskType": "RETRIEVAL_QUERY",
                "outputDimensionality": 2,
            }]
        },
        {"embeddings": [{"values": [0.5, 0.25]}]},
    ),
}  # fmt: skip
"""Requests and replies as in the vendors' references that the presets name, in November 2026."""


@pytest.mark.parametrize("choice", PRESETS)
def test_a_preset_speaks_as_the_reference_of_its_api_says(
    choice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, header, document, query, reply = PRESETS[choice]
    with FakeLLM(respond=lambda path, body: reply) as fake:
        places = [f"encoder.ledger={tmp_path / 'llm.db'}", f"encoder.base_url={fake.address}"]
        encoder = build_encoder(f"api/{choice}", *places, "encoder.dimensions=2", "encoder.model=m")
        monkeypatch.setenv(str(encoder.api_key_env), "s3cret")
        assert encoder.load_vectors(["boat"], "document").tolist() == [[0.5, 0.25]]
        assert encoder.load_vectors(["sea"], "query").tolist() == [[0.5, 0.25]]
    key = "Bearer s3cret" if header == "authorization" else "s3cret"
    assert [(asked.path, asked.headers[header]) for asked in fake.asked] == [(path, key)] * 2
    assert [asked.body for asked in fake.asked] == [document, query]
    assert spent(encoder).tokens_in == (0 if choice == "google" else 6)


@pytest.mark.parametrize("choice", ["api", *(f"api/{name}" for name in PRESETS)])
def test_no_preset_has_a_price_and_each_is_sent_to_its_vendor(choice: str) -> None:
    overrides = ["encoder.base_url=https://x.example"] if choice == "api/azure" else []
    encoder = build_encoder(choice, "encoder.model=m", *overrides)
    assert encoder.price_in is None
    assert encoder.address.startswith("https://")


def test_what_the_file_says_is_what_the_class_does() -> None:
    assert build_encoder("api", "encoder.model=m") == ApiEncoder(model="m")
