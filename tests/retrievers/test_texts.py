"""Texts of documents that only the index of a retriever has."""

from __future__ import annotations

import logging
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from retrievers.base import Corpus
from retrievers.composed.fusion import Hybrid
from retrievers.lexical.bm25 import BM25
from retrievers.runs.existing import ExistingRetriever
from retrievers.services.http_api import Http
from retrievers.texts import fetch_documents, fetch_texts
from tests.retrievers.fake_api import Answer, Asked, fake_api
from tests.retrievers.http_search import FORM

TEXTS = {"a/1": "red boat", "b": "blue boat"}


def api(url: str, **settings: Any) -> Http:
    form = FORM | {"health_path": None, "document_path": "/x/_doc/{document_id}", **settings}
    return Http(url, retries=0, **form)


def answer(asked: Asked) -> Answer:
    found = {f"/x/_doc/{name.replace('/', '%2F')}": text for name, text in TEXTS.items()}
    return Answer({"_source": {"body": found[asked.path]}}) if asked.path in found else Answer({"found": False}, 404)


def test_an_api_returns_the_texts_that_it_has(caplog: pytest.LogCaptureFixture) -> None:
    with fake_api(answer) as server, caplog.at_level(logging.WARNING):
        retriever = api(server.url, document_text="_source.{field}", parameters={"field": "body"})
        assert retriever.fetch_texts(["b", "missing", "a/1"]) == {"b": "blue boat", "a/1": "red boat"}
    assert "1 of 3 documents could not be fetched, such as 'missing' (GET" in caplog.text


def test_a_text_that_is_not_one_is_left_out() -> None:
    with fake_api(answer) as server:
        assert api(server.url, document_text="_source").fetch_texts(["b"]) == {}


def test_without_the_address_of_a_document_nothing_is_requested() -> None:
    with fake_api(answer) as server:
        assert Http(server.url, **FORM).fetch_texts(["b"]) == {}
        assert not server.asked


def test_an_object_returns_texts_by_a_method(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    module = ModuleType("my_rag")
    monkeypatch.setitem(sys.modules, "my_rag", module)
    module.build = lambda: SimpleNamespace(fetch_texts=lambda ids: {n: TEXTS[n] for n in ids})  # type: ignore[attr-defined]  # a module made here
    module.plain = lambda: lambda query: []  # type: ignore[attr-defined]  # a module made here
    assert fetch_texts(ExistingRetriever("my_rag:build"), ["b"]) == {"b": "blue boat"}
    assert fetch_texts(ExistingRetriever("my_rag:plain"), ["b"]) == {}
    assert fetch_texts(ExistingRetriever("my_rag:build"), ["c"]) == {}
    assert "the texts of 1 documents could not be fetched (factory=my_rag:build: KeyError: 'c')" in caplog.text


def test_each_part_of_a_hybrid_is_queried_only_for_texts_still_missing() -> None:
    with fake_api(answer) as one, fake_api(lambda asked: Answer({"_source": {"body": "other"}})) as two:
        parts = {name: api(server.url, document_text="_source.body") for name, server in (("x", one), ("y", two))}
        hybrid = Hybrid({**parts, "bm25": BM25()}, method="rrf")
        assert fetch_texts(hybrid, ["b", "c"]) == {"b": "blue boat", "c": "other"}
        assert [asked.path for asked in two.asked] == ["/x/_doc/c"]


def test_documents_are_added_to_those_of_the_corpus() -> None:
    corpus = Corpus(["b"], ["mine"], ["Title"], [{"page": 1}])
    with fake_api(answer) as server:
        both = fetch_documents(api(server.url, document_text="_source.body"), corpus, ["b", "a/1", "a/1", "none"])
        assert sorted(asked.path for asked in server.asked) == ["/x/_doc/a%2F1", "/x/_doc/none"]
    assert (both.ids, both.texts) == (["b", "a/1"], ["mine", "red boat"])
    assert (both.titles, both.metadata) == (["Title", ""], [{"page": 1}, {}])
    assert fetch_documents(BM25(), corpus, ["a/1"]) is corpus
