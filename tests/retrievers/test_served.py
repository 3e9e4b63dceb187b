"""A retriever behind the search API, asked over HTTP, against itself."""

from __future__ import annotations

from pathlib import Path

from retrievers.base import Retriever
from retrievers.composed.fusion import Hybrid
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder
from retrievers.lexical.bm25 import BM25
from retrievers.search import search_cached
from retrievers.services.http_api import Http
from retrievers.store import MemoryStore
from retrievers.vectors.dense import Dense
from runner.datasets.golden_json import GoldenJson
from tests.features.serve.process import serving
from tests.retrievers.hits import list_rows
from tests.retrievers.http_search import FORM


def test_http_finds_what_the_same_retriever_finds_here_to_the_last_bit(real_golden: Path, tmp_path: Path) -> None:
    files = {
        "path": str(real_golden / "retrieval_evaluation_dataset.json"),
        "items": str(real_golden / "golden_analyses.json"),
    }
    dataset = GoldenJson(**files).load()
    corpus, queries, k = dataset.corpus, list(dataset.queries.texts), 100
    dense = Dense(SentenceTransformerEncoder())
    here: dict[str, Retriever] = {
        "bm25": BM25(),
        "dense": dense,
        "hybrid": Hybrid({"lexical": BM25(), "semantic": dense}),
    }
    there = ["retriever=bm25", "encoder=minilm", *(f"+retriever@search_types.{name}={name}" for name in [*here][1:])]
    settings = [f"dataset.{name}={path}" for name, path in files.items()]
    store = MemoryStore()
    with serving([*there, "dataset=golden_json", *settings], tmp_path) as running:
        for name, retriever in here.items():
            ours = search_cached(retriever, corpus, queries, k, store)
            theirs = search_cached(
                Http(running.url, **FORM | {"parameters": {"search_type": name}}, expected_items="corpus"),
                corpus, queries, k, store,
            )  # fmt: skip
            assert theirs.errors is None
            assert (len(queries), len(corpus)) == (50, 55)
            assert list_rows(theirs) == list_rows(ours)
