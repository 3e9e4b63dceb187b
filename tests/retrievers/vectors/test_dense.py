"""Search by vectors: exactly against NumPy, ties, and indexes against the exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from retrievers.base import NOTHING, Corpus, RetrieverError
from retrievers.composed.fusion import Hybrid
from retrievers.encoders.base import Embedded, Vectors
from retrievers.encoders.lsa import LSAEncoder
from retrievers.encoders.sentence_transformer import SentenceTransformerEncoder
from retrievers.search import TIMED_QUERIES, search_cached
from retrievers.store import Arrays, Key, MemoryStore, NoStore, Store
from retrievers.vectors.dense import Dense
from retrievers.vectors.vector_search import VectorSearcher
from tests.strategies.settings import at_most
from tests.strategies.vectors import integer_vectors


@dataclass(frozen=True)
class Numbers:
    """An encoder of texts that are numbers."""

    shard: int = 100

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        vectors = self.vectors(corpus.texts)
        return Embedded([vectors[i : i + self.shard] for i in range(0, len(vectors), self.shard)], self.queries)

    def queries(self, texts: Sequence[str], store: Store) -> tuple[Vectors, NDArray[np.float32]]:
        return self.vectors(texts), np.zeros(len(texts), dtype=np.float32)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        return np.array([[float(number) for number in text.split()] for text in texts], dtype=np.float32)


def texts_of(vectors: NDArray[Any]) -> list[str]:
    return [" ".join(map(str, row)) for row in vectors.tolist()]


def corpus_of(vectors: NDArray[Any]) -> Corpus:
    ids = [f"d{i * 7919 % 10007}" for i in range(len(vectors))]
    return Corpus(ids, texts_of(vectors))


def searcher_of(vectors: NDArray[Any], store: Store | None = None, **how: Any) -> VectorSearcher:
    return Dense(Numbers(), **how).index(corpus_of(vectors), store or MemoryStore())


def by_hand(documents: NDArray[Any], queries: NDArray[Any], metric: str, ids: Sequence[str], k: int) -> list[list[int]]:
    """Return the best documents of each query, by the definitions."""
    documents, queries = documents.astype(np.float32).astype(np.float64), queries.astype(np.float32).astype(np.float64)
    found = []
    for query in queries:
        scores = -((documents - query) ** 2).sum(axis=1) if metric == "l2" else documents @ query
        if metric == "cosine":
            scores = scores / np.maximum(np.linalg.norm(documents, axis=1) * np.linalg.norm(query), 1e-30)
        known = np.flatnonzero(documents.any(axis=1) & query.any()).tolist()
        rounded = scores.round(6).tolist()
        found.append(sorted(known, key=lambda i: (rounded[i], ids[i]), reverse=True)[:k])
    return found


def rows_of(documents: NDArray[np.int32]) -> list[list[int]]:
    return [[d for d in row if d != NOTHING] for row in documents.tolist()]


METRICS = pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])


@METRICS
@settings(max_examples=at_most(40))
@given(documents=integer_vectors(60), queries=integer_vectors(4), k=st.integers(1, 20))
def test_flat_is_exact_with_ties_by_id(metric: str, documents: NDArray[Any], queries: NDArray[Any], k: int) -> None:
    corpus = corpus_of(documents)
    found = searcher_of(documents, metric=metric).search(texts_of(queries), k).documents
    assert rows_of(found) == by_hand(documents, queries, metric, corpus.ids, k)


@METRICS
def test_flat_is_exact_among_many(metric: str) -> None:
    random = np.random.default_rng(0)
    documents, queries = random.normal(size=(3000, 24)).round(3), random.normal(size=(50, 24)).round(3)
    documents[1500:] *= 3
    found = searcher_of(documents, metric=metric).search(texts_of(queries), 25)
    assert rows_of(found.documents) == by_hand(documents, queries, metric, corpus_of(documents).ids, 25)
    best = documents[found.documents[:, 0]].astype(np.float32)
    if metric == "dot":
        np.testing.assert_allclose(found.scores[:, 0], (best * queries).sum(axis=1), rtol=1e-6)
    if metric == "l2":
        np.testing.assert_allclose(found.scores[:, 0], -((best - queries) ** 2).sum(axis=1), rtol=1e-6)


@METRICS
def test_a_tie_that_goes_on_past_the_cut_is_resolved_by_id(metric: str) -> None:
    documents = np.tile(np.random.default_rng(0).normal(size=(3, 48)), (1000, 1))
    corpus = corpus_of(documents)
    twins = sorted(range(1, 3000, 3), key=corpus.ids.__getitem__, reverse=True)
    found = searcher_of(documents, metric=metric).search(texts_of(documents[1:2]) * 40, 10)
    assert rows_of(found.documents) == [twins[:10]] * 40
    assert len(np.unique(found.scores)) == 1


@METRICS
@pytest.mark.parametrize("index_type", ["flat", "ivf", "hnsw", "pq"])
def test_batched_queries_have_the_results_of_single_queries(index_type: str, metric: str) -> None:
    random = np.random.default_rng(1)
    searcher = searcher_of(random.normal(size=(500, 32)), index_type=index_type, metric=metric)
    queries = texts_of(random.normal(size=(TIMED_QUERIES + 30, 32)))
    together = searcher.search(queries, 10)
    for position, query in enumerate(queries):
        alone = searcher.search([query], 10)
        assert alone.documents.tobytes() == together.documents[position].tobytes()
        assert alone.scores.tobytes() == together.scores[position].tobytes()


def test_zero_vectors_retrieve_nothing_and_are_never_retrieved() -> None:
    documents = np.array([[0, 0], [1, 0], [0, 0], [-1, 0]])
    for metric in ("cosine", "dot", "l2"):
        for index_type in ("flat", "ivf", "hnsw", "pq"):
            searcher = searcher_of(documents, metric=metric, index_type=index_type, pq_m=2)
            found = searcher.search(["0 0", "2 0"], 4)
            assert rows_of(found.documents) == [[], [1, 3]]
            assert (found.scores[0] == -np.inf).all()
    assert rows_of(searcher_of(np.zeros((2, 2)), index_type="ivf").search(["1 0"], 3).documents) == [[]]


@pytest.mark.parametrize(("index_type", "timed"), [("flat", TIMED_QUERIES), ("hnsw", 41)])
def test_times_are_known_only_for_queries_searched_one_by_one(index_type: str, timed: int) -> None:
    searcher = searcher_of(np.eye(4), index_type=index_type)
    seconds = searcher.search([*["0 1 0 0"] * 41, "0 0 0 0"], 2).seconds
    assert seconds is not None
    assert (seconds[:timed] > 0).all()
    assert np.isnan(seconds[timed:41]).all()


CLUSTERS = np.random.default_rng(2).normal(size=(20, 16)).repeat(100, axis=0)
DOCUMENTS = CLUSTERS + np.random.default_rng(3).normal(size=CLUSTERS.shape)
QUERIES = texts_of(CLUSTERS[::50] + np.random.default_rng(4).normal(size=(40, 16)))


def recall(searcher: VectorSearcher, k: int = 10) -> float:
    return searcher.diagnostics(QUERIES, k, NoStore())[f"index_recall_at_{k}"]


@METRICS
def test_ivf_that_looks_everywhere_is_exact(metric: str) -> None:
    exact = searcher_of(DOCUMENTS, metric=metric).search(QUERIES, 10)
    searcher = searcher_of(DOCUMENTS, metric=metric, index_type="ivf", nlist=30, nprobe=30)
    found = searcher.search(QUERIES, 10)
    assert found.documents.tobytes() == exact.documents.tobytes()
    np.testing.assert_allclose(found.scores, exact.scores, rtol=1e-4, atol=1e-5)
    assert recall(searcher) == 1


@METRICS
def test_more_effort_finds_more(metric: str) -> None:
    store = MemoryStore()
    for index_type, effort, some, many in (("ivf", "nprobe", 1, 40), ("hnsw", "ef_search", 1, 200)):
        how = {"index_type": index_type, "metric": metric, "m": 4}
        little, much = (recall(searcher_of(DOCUMENTS, store, **how, **{effort: value})) for value in (some, many))
        assert 0.1 < little < much
        assert much > 0.9


def test_product_codes_find_most_and_more_bits_more() -> None:
    coarse, fine = (recall(searcher_of(DOCUMENTS, index_type="pq", pq_m=8, pq_bits=bits)) for bits in (4, 8))
    assert 0.3 < coarse < fine < 1


def test_recall_is_a_mean_of_overlaps_of_what_is_there() -> None:
    searcher = searcher_of(DOCUMENTS, index_type="ivf", nprobe=1)
    exact, nearly = (rows_of(s.search(QUERIES, 5).documents) for s in (searcher_of(DOCUMENTS), searcher))
    overlaps = [len(set(a) & set(b)) / 5 for a, b in zip(exact, nearly, strict=True)]
    assert recall(searcher, 5) == pytest.approx(np.mean(overlaps))
    few = searcher_of(np.eye(3), index_type="ivf", nprobe=100)
    assert few.diagnostics(["1 0 0", "0 0 0"], 10, NoStore()) == {"index_recall_at_10": 1.0, "short_answers_at_10": 0.0}
    assert few.diagnostics(["0 0 0"], 10, NoStore()) == {}


def test_an_exact_search_has_nothing_to_diagnose() -> None:
    assert searcher_of(DOCUMENTS).diagnostics(QUERIES, 10, NoStore()) == {}


class Indexes(MemoryStore):
    """A store that remembers the indexes it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.built: list[bytes] = []

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        def remembered() -> Arrays:
            made = build()
            self.built.append(b"".join(made[name].tobytes() for name in sorted(made)))
            return made

        return super().arrays(key, remembered)


@pytest.mark.parametrize(
    ("index_type", "search_time", "build_time"),
    [
        ("ivf", {"nprobe": 3, "ef_search": 3, "m": 5, "pq_m": 2}, {"nlist": 7}),
        ("hnsw", {"ef_search": 3, "nprobe": 3, "nlist": 3}, {"ef_construction": 13}),
        ("pq", {"nprobe": 3, "ef_search": 3, "m": 5}, {"pq_bits": 4}),
    ],
)
def test_search_settings_reuse_an_index_and_build_settings_do_not(
    index_type: str, search_time: Any, build_time: Any
) -> None:
    store, documents = Indexes(), DOCUMENTS[::4]
    how = {"index_type": index_type, "pq_m": 4}
    searcher_of(documents, store, **how)
    searcher_of(documents, store, **how | search_time | {"pq_m": 4})
    assert len(store.built) == 1
    searcher_of(documents, store, **how | build_time)
    searcher_of(documents, store, **how, metric="dot")
    searcher_of(documents, store, **how, seed=1)
    searcher_of(documents[:-1], store, **how)
    assert len(store.built) == 5


@pytest.mark.parametrize("index_type", ["ivf", "hnsw", "pq"])
def test_an_index_is_the_same_bytes_again_and_its_seed_matters(index_type: str) -> None:
    built = []
    for seed in (0, 0, 1):
        store = Indexes()
        searcher_of(DOCUMENTS[::4], store, index_type=index_type, pq_m=4, seed=seed)
        built += store.built
    assert built[0] == built[1] != built[2]


@pytest.mark.parametrize("n", [1, 2, 5, 100])
@pytest.mark.parametrize("index_type", ["ivf", "hnsw", "pq"])
def test_few_documents_are_enough_and_silent(index_type: str, n: int, capfd: pytest.CaptureFixture[str]) -> None:
    searcher = searcher_of(DOCUMENTS[:n], index_type=index_type, nlist=200, nprobe=200, pq_m=8)
    found = rows_of(searcher.search(QUERIES, 10).documents)
    assert all(len(row) == min(n, 10) for row in found)
    assert capfd.readouterr() == ("", "")


def test_codes_that_do_not_divide_the_vector_are_refused_with_those_that_do() -> None:
    with pytest.raises(
        RetrieverError,
        match=r"pq_m=5: should be a divisor of the number of dimensions \(16\); choose one of 1, 2, 4, 8, 16",
    ):
        searcher_of(DOCUMENTS, index_type="pq", pq_m=5)


@pytest.mark.parametrize(
    "wrong", [{"metric": "euclid"}, {"index_type": "lsh"}, {"nprobe": 0}, {"pq_bits": 2}, {"k": 1}]
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        Dense(Numbers(), **wrong)


def test_an_encoder_is_what_embeds() -> None:
    with pytest.raises(ValidationError, match="Encoder"):
        Dense("all-MiniLM-L6-v2")  # type: ignore[arg-type]  # what is refused


def test_the_bundled_model_finds_by_meaning(harbour: Corpus) -> None:
    searcher = Dense(SentenceTransformerEncoder()).index(harbour, MemoryStore())
    found = searcher.search(["groceries at the weekend", "boats to other isles", ""], 6)
    assert found.documents[:2, 0].tolist() == [3, 1]
    assert set(found.documents[0].tolist()) == {0, 1, 2, 3, 4, 5}
    assert (found.documents[2] == NOTHING).all()


def test_lsa_finds_nothing_for_words_that_it_does_not_know(harbour: Corpus) -> None:
    searcher = Dense(LSAEncoder()).index(harbour, MemoryStore())
    found = searcher.search(["zeppelin", "the", "lighthouse"], 6)
    assert [len(row) for row in rows_of(found.documents)] == [0, 0, 6]
    assert set(found.documents[2, :2].tolist()) == {0, 4}


def test_the_recall_of_an_approximate_index_comes_with_the_rankings_of_a_hybrid_too() -> None:
    vectors = np.random.default_rng(0).normal(size=(400, 8))
    corpus, queries = corpus_of(vectors), texts_of(vectors[:20] + 0.1)
    nearly = Dense(Numbers(), index_type="ivf", nlist=40, nprobe=1)
    store = MemoryStore()
    for _ in range(2):  # made, then found in the store
        said = search_cached(nearly, corpus, queries, 50, store).diagnostics
        assert {"index_recall_at_10", "index_recall_at_50", "short_answers_at_50"} <= said.keys()
        assert 0 < said["index_recall_at_50"] < 1
        assert said["short_answers_at_50"] == 20  # a cell has ten documents
    hybrid = Hybrid(parts={"nearly": nearly, "exact": Dense(Numbers())})
    assert search_cached(hybrid, corpus, queries, 50, store).diagnostics == {f"nearly.{n}": v for n, v in said.items()}
    assert search_cached(Dense(Numbers()), corpus, queries, 50, store).diagnostics == {}
