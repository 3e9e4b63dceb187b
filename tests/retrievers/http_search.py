"""A small corpus that tests search through a fake search API, which has the form of `retriever=http/runner`."""

from __future__ import annotations

from typing import Any

import yaml

from retrievers.base import NOTHING, Corpus, Rankings
from retrievers.services.http_api import Http
from retrievers.store import NoStore
from runner.config import CONF
from tests.retrievers.fake_api import FakeApi, hits

FORM: dict[str, Any] = yaml.safe_load((CONF / "retriever" / "http" / "runner.yaml").read_text(encoding="utf-8"))
FORM.pop("defaults")
CORPUS = Corpus(["a", "b", "c"], ["one", "two", "three"])
FEW: dict[str, Any] = {**FORM, "expected_items": "corpus", "backoff_s": 0.001}
ONE = hits(("a", 1.0))


def search(api: FakeApi, *queries: str, k: int = 3, **settings: Any) -> Rankings:
    return Http(api.url, **{**FEW, **settings}).index(CORPUS, NoStore()).search(queries or ["q"], k)


def list_hits(rankings: Rankings, query: int = 0) -> list[tuple[str, float]]:
    pairs = zip(rankings.documents[query], rankings.scores[query], strict=True)
    ids = [*CORPUS.ids, *rankings.unknown_ids]
    return [(ids[document], float(score)) for document, score in pairs if document != NOTHING]


def error_of(api: FakeApi, **settings: Any) -> str:
    rankings = search(api, **settings)
    assert list_hits(rankings) == []
    assert rankings.errors is not None
    return rankings.errors[0]
