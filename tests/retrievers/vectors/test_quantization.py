"""Search by codes of vectors: against the definition, and against exact search when the hits are scored again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from retrievers.store import MemoryStore
from retrievers.vectors.dense import Dense
from tests.retrievers.vectors.test_dense import (
    DOCUMENTS,
    METRICS,
    QUERIES,
    Indexes,
    Numbers,
    corpus_of,
    recall,
    rows_of,
    searcher_of,
    texts_of,
)
from tests.strategies.vectors import integer_vectors

QUANTIZATIONS = pytest.mark.parametrize(
    ("quantization", "index_type"), [("int8", "flat"), ("int8", "ivf"), ("int8", "hnsw"), ("binary", "flat")]
)


@given(documents=integer_vectors(40, 70), queries=integer_vectors(4, 70), k=st.integers(1, 20))
def test_binary_codes_rank_by_the_signs_that_differ_with_ties_by_id(
    documents: NDArray[Any], queries: NDArray[Any], k: int
) -> None:
    corpus = corpus_of(documents)
    rankings = searcher_of(documents, quantization="binary").search(texts_of(queries), k)
    for row, query in enumerate(queries):
        scores = 1 - 2 * np.mean((documents > 0) != (query > 0), axis=1)
        known = [i for i in range(len(documents)) if documents[i].any() and query.any()]
        best = sorted(known, key=lambda i: (round(scores[i], 6), corpus.ids[i]), reverse=True)[:k]
        assert rows_of(rankings.documents[row : row + 1]) == [best]
        np.testing.assert_allclose(rankings.scores[row, : len(best)], scores[best], atol=1e-6)


@METRICS
@QUANTIZATIONS
def test_rescoring_all_documents_is_exact_search(quantization: str, index_type: str, metric: str) -> None:
    own: dict[str, Any] = {"index_type": index_type, "nlist": 5, "nprobe": 5, "ef_search": 1000, "m": 64}
    documents = DOCUMENTS[::10]
    exact = searcher_of(documents, metric=metric).search(QUERIES, 10)
    searcher = searcher_of(documents, metric=metric, quantization=quantization, rescore=True, oversampling=20, **own)
    rankings = searcher.search(QUERIES, 10)
    assert rankings.documents.tobytes() == exact.documents.tobytes()
    assert rankings.scores.tobytes() == exact.scores.tobytes()


@METRICS
@pytest.mark.parametrize("own", [{"quantization": "binary"}, {"index_type": "pq", "pq_m": 4, "pq_bits": 4}])
def test_rescoring_more_candidates_finds_more(own: dict[str, Any], metric: str) -> None:
    store = MemoryStore()
    searches = [{}, {"rescore": True, "oversampling": 3.0}, {"rescore": True, "oversampling": 20.0}]
    few, more, most = (recall(searcher_of(DOCUMENTS, store, metric=metric, **own, **search)) for search in searches)
    assert 0.1 < few < more < most


@METRICS
@pytest.mark.parametrize("index_type", ["flat", "ivf", "hnsw"])
def test_codes_of_a_byte_lose_little(index_type: str, metric: str) -> None:
    own: dict[str, Any] = {"index_type": index_type, "metric": metric, "nlist": 10, "nprobe": 10, "ef_search": 400}
    assert 0.95 < recall(searcher_of(DOCUMENTS, quantization="int8", **own)) < 1


def test_rescoring_uses_the_stored_index() -> None:
    store, own = Indexes(), {"index_type": "ivf", "quantization": "int8"}
    searcher_of(DOCUMENTS[::4], store, **own)
    searcher_of(DOCUMENTS[::4], store, **own, rescore=True, oversampling=2)
    assert len(store.built) == 1
    searcher_of(DOCUMENTS[::4], store, index_type="ivf")
    assert len(store.built) == 2


def test_rescoring_all_candidates_keeps_empty_places_empty() -> None:
    own: dict[str, Any] = {"index_type": "ivf", "nlist": 40, "nprobe": 1, "quantization": "int8"}
    plain, again = (searcher_of(DOCUMENTS, rescore=rescore, **own).search(QUERIES, 300) for rescore in (False, True))
    assert [set(row) for row in rows_of(again.documents)] == [set(row) for row in rows_of(plain.documents)]
    assert any(len(row) < 300 for row in rows_of(again.documents))


@pytest.mark.parametrize(
    ("quantization", "index_type", "fitting"),
    [("int8", "pq", "flat, ivf, hnsw"), ("binary", "pq", "flat"), ("binary", "hnsw", "flat")],
)
def test_a_quantization_names_the_index_types_that_it_is_available_with(
    quantization: Any, index_type: Any, fitting: str
) -> None:
    with pytest.raises(
        ValidationError,
        match=f"quantization={quantization}: not available with index_type={index_type}, only with {fitting}; set an",
    ):
        Dense(Numbers(), quantization=quantization, index_type=index_type)
