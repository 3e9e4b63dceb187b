"""The in-memory retrievers of LangChain, LlamaIndex and Haystack get the rankings that they return themselves.

Skipped where they are not installed: `pip install langchain-core llama-index-core haystack-ai` (340 MB).
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from retrievers.base import NOTHING, Corpus, QueryText
from retrievers.filters import parse_filter
from retrievers.runs.existing import ExistingRetriever
from retrievers.store import NoStore

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")

WORDS = ["red", "blue", "green", "boat", "house", "tree", "sea", "pier"]
TEXTS = [" ".join(WORDS[(i * step + i // 5) % len(WORDS)] for step in (1, 3, 5)) for i in range(40)]
CORPUS = Corpus([f"d{i:02d}" for i in range(40)], TEXTS)
QUERIES = ["red boat", "blue house", "sea pier tree"]
K = 7


def vector(text: str) -> list[float]:
    """Return the word counts of a text, each dimension a little apart so that few scores are equal."""
    counts = np.array([text.split().count(word) for word in WORDS], dtype=float) + 0.01 * np.arange(1, 9)
    return (counts / np.linalg.norm(counts)).tolist()  # type: ignore[no-any-return]  # a list


def search(
    monkeypatch: pytest.MonkeyPatch, build: Callable[..., object], queries: Sequence[str] = QUERIES
) -> list[list[str]]:
    module = ModuleType("my_rag")
    module.build = build  # type: ignore[attr-defined]  # a module of the test
    monkeypatch.setitem(sys.modules, "my_rag", module)
    retriever = ExistingRetriever("my_rag:build", {"k": K}, pass_corpus=True)
    rankings = retriever.index(CORPUS, NoStore()).search(queries, K)
    assert not rankings.errors
    assert not rankings.unknown_ids
    return [[CORPUS.ids[d] for d in row if d != NOTHING] for row in rankings.documents.tolist()]


def load(name: str) -> Any:
    """Import a module or skip; what it warns of while it is imported is no matter of this test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is not installed: no part of `all`")


@pytest.mark.filterwarnings("default")
def test_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, stores = load("langchain_core.embeddings"), load("langchain_core.vectorstores")

    class Words(embeddings.Embeddings):  # type: ignore[misc]  # of a package without types here
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return list(map(vector, texts))

        def embed_query(self, text: str) -> list[float]:
            return vector(text)

    def build(documents: Sequence[tuple[str, str, str]], k: int) -> Any:
        store = stores.InMemoryVectorStore(Words())
        store.add_texts([text for _, _, text in documents], ids=[name for name, _, _ in documents])
        return store.as_retriever(search_kwargs={"k": k})

    own = build([(name, "", text) for name, text in zip(CORPUS.ids, CORPUS.texts, strict=True)], K)
    assert search(monkeypatch, build) == [[hit.id for hit in own.invoke(query)] for query in QUERIES]


@pytest.mark.filterwarnings("default")
def test_llama_index(monkeypatch: pytest.MonkeyPatch) -> None:
    core, base, schema = (load(f"llama_index.core{name}") for name in ("", ".base.embeddings.base", ".schema"))

    class Words(base.BaseEmbedding):  # type: ignore[misc]  # of a package without types here
        def _get_text_embedding(self, text: str) -> list[float]:
            return vector(text)

        def _get_query_embedding(self, query: str) -> list[float]:
            return vector(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return vector(query)

    def build(documents: Sequence[tuple[str, str, str]], k: int) -> Any:
        nodes = [schema.TextNode(id_=name, text=text) for name, _, text in documents]
        return core.VectorStoreIndex(nodes, embed_model=Words()).as_retriever(similarity_top_k=k)

    own = build([(name, "", text) for name, text in zip(CORPUS.ids, CORPUS.texts, strict=True)], K)
    assert search(monkeypatch, build) == [[hit.node_id for hit in own.retrieve(query)] for query in QUERIES]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_haystack(monkeypatch: pytest.MonkeyPatch, in_pipeline: bool) -> None:
    haystack, stores = load("haystack"), load("haystack.document_stores.in_memory")
    components = load("haystack.components.retrievers.in_memory")

    def build(documents: Sequence[tuple[str, str, str]], k: int) -> Any:
        store = stores.InMemoryDocumentStore()
        rows = [haystack.Document(id=n, content=text, meta={"n": int(n[1:])}) for n, _, text in documents]
        store.write_documents(rows)
        retriever = components.InMemoryBM25Retriever(store, top_k=k)
        if not in_pipeline:
            return retriever
        pipeline = haystack.Pipeline()
        pipeline.add_component("retriever", retriever)
        return pipeline

    rows = [(name, "", text) for name, text in zip(CORPUS.ids, CORPUS.texts, strict=True)]
    own = build(rows, K)
    outputs = [own.run({"retriever": {"query": q}})["retriever"] if in_pipeline else own.run(query=q) for q in QUERIES]
    assert search(monkeypatch, build) == [[hit.id for hit in output["documents"]] for output in outputs]
    queries = [QueryText(query, query, own=parse_filter({"n": {"from": 10, "to": 29}})) for query in QUERIES]
    passing = {"field": "meta.n", "operator": ">", "value": 9}, {"field": "meta.n", "operator": "<", "value": 30}
    filters = {"operator": "AND", "conditions": list(passing)}
    inputs = [{"query": query, "filters": filters} for query in QUERIES]
    outputs = [own.run({"retriever": one})["retriever"] if in_pipeline else own.run(**one) for one in inputs]
    filtered = search(monkeypatch, build, queries)
    assert filtered == [[hit.id for hit in output["documents"]] for output in outputs]
    assert filtered != search(monkeypatch, build)
