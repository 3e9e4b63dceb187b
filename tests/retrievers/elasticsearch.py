"""A stand-in for Elasticsearch that searches a corpus by BM25; replies have the form of its version 8."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from urllib.parse import unquote

from retrievers.base import NOTHING, Corpus
from retrievers.lexical.bm25 import BM25
from retrievers.store import MemoryStore
from tests.retrievers.fake_api import Answer, Asked, FakeApi, fake_api

SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
SETTINGS = ("retriever=http/elasticsearch", "retriever.parameters.index=articles")


@contextmanager
def run_elasticsearch(corpus: Corpus, port: int = 0, without_text: Sequence[str] = ()) -> Iterator[FakeApi]:
    """Serve the index `articles`; documents `without_text` are found, but cannot be fetched."""
    searcher = BM25().index(corpus, MemoryStore())

    @cache
    def search(text: str, size: int) -> Answer:
        rankings = searcher.search([text], size)
        pairs = zip(rankings.documents[0].tolist(), rankings.scores[0].tolist(), strict=True)
        rows = [{"_index": "articles", "_id": corpus.ids[d], "_score": s} for d, s in pairs if d != NOTHING]
        found = {"total": {"value": len(rows), "relation": "eq"}, "max_score": None, "hits": rows}
        return Answer({"took": 1, "timed_out": False, "_shards": SHARDS, "hits": found})

    with fake_api(partial(_answer, corpus, frozenset(without_text), search), port=port) as api:
        yield api


def _answer(corpus: Corpus, without_text: frozenset[str], search: Callable[[str, int], Answer], asked: Asked) -> Answer:
    match asked.path.strip("/").split("/"):
        case [""]:
            return Answer({"version": {"number": "8.19.0"}, "tagline": "You Know, for Search"})
        case ["articles", "_count"]:
            return Answer({"count": len(corpus), "_shards": SHARDS})
        case ["articles", "_mapping"]:
            return Answer({"articles": {"mappings": {"properties": {"text": {"type": "text"}}}}})
        case ["articles", "_doc", name]:
            place = corpus.positions.get(unquote(name)) if unquote(name) not in without_text else None
            if place is None:
                return Answer({"_index": "articles", "_id": unquote(name), "found": False}, 404)
            source = {"text": corpus.texts[place]}
            return Answer({"_index": "articles", "_id": unquote(name), "found": True, "_source": source})
    return search(asked.body["query"]["bool"]["must"]["match"]["text"], asked.body["size"])
