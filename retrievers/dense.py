"""Search by vectors: the nearest documents to a query, exactly or through an approximate index of FAISS.

An encoder supplies the vectors of documents and queries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import NOTHING, Corpus, Rankings, RetrieverError, create_empty_rankings, rank
from retrievers.code import code_of
from retrievers.encoders.base import Encoder, PlannedEncoder, Vectors
from retrievers.extras import check_installed
from retrievers.nearest import find_nearest
from retrievers.search import TIMED_QUERIES, Work, build_rankings_key
from retrievers.store import Arrays, Key, NoStore, Store

if TYPE_CHECKING:
    import faiss

BATCH = 1024
"""How many queries are searched at a time, exactly, after those that are timed."""

_FEWEST_BITS = 3  # per code: FAISS compares eight at once

_BUILT_WITH: Mapping[str, Sequence[str]] = {
    "ivf": ("nlist", "seed"),
    "hnsw": ("m", "ef_construction", "seed"),
    "pq": ("pq_m", "pq_bits", "seed"),
}


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Dense:
    """Settings of search by vectors. Only the index type `flat` is exact. Settings of other index types have no effect.

    The score is the cosine, the dot product, or the negative squared distance (`l2`). A text without a direction, such
    as a blank one, has no hits and is never a hit.

    `ivf` searches `nprobe` of `nlist` cells (null: 4 times the root of the number of documents; at most one per
    document). `hnsw` searches a graph with `m` links per document, with `ef_construction` candidates when it is built
    and `ef_search` per query. `pq` stores `pq_m` codes of `pq_bits` instead of a vector; fewer bits if there are fewer
    documents than codes. `nprobe` and `ef_search` apply at search time, to the stored index.
    """

    encoder: Encoder
    index_type: Literal["flat", "ivf", "hnsw", "pq"] = "flat"
    metric: Literal["cosine", "dot", "l2"] = "cosine"
    nlist: int | None = Field(default=None, ge=1)
    nprobe: int = Field(default=8, ge=1)
    m: int = Field(default=32, ge=2)
    ef_construction: int = Field(default=200, ge=1)
    ef_search: int = Field(default=64, ge=1)
    pq_m: int = Field(default=32, ge=1)
    pq_bits: int = Field(default=8, ge=_FEWEST_BITS, le=12)
    seed: int = Field(default=0, ge=0)

    def __post_init__(self) -> None:
        if self.index_type != "flat":
            check_installed("faiss", "faiss-cpu", "dense")

    def index(self, corpus: Corpus, store: Store) -> DenseSearcher:
        """Return a searcher; the corpus is embedded and the index built unless the store has them."""
        embedded = self.encoder.embed(corpus, store)
        key = self._key("points", corpus, unit_length=self.metric == "cosine")
        points = store.share(key, lambda: _points(embedded.documents, self.metric == "cosine"))
        return DenseSearcher(self, embedded.queries, points, corpus.tie_order, self._load_index(corpus, points, store))

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the vectors and, unless it is flat, the index."""
        encoder = self.encoder
        needs = list(encoder.plan(corpus, queries, store)) if isinstance(encoder, PlannedEncoder) else []
        if self.index_type != "flat":
            needs.append(Work("index", self._index_key("vector index", corpus)))
        return Work("search", build_rankings_key(self, corpus, queries, k), tuple(needs))

    def _load_index(self, corpus: Corpus, points: Points, store: Store) -> faiss.Index | None:
        """Return the FAISS index of points, or None for an exact search."""
        if self.index_type == "flat" or not len(points.rows):
            return None

        def load() -> faiss.Index:
            import faiss

            kept = store.arrays(self._index_key("vector index", corpus), lambda: self._build(points.vectors))
            return faiss.deserialize_index(np.asarray(kept["index"]))

        return store.share(self._index_key("live vector index", corpus), load)

    def _index_key(self, kind: str, corpus: Corpus) -> Key:
        built_with = {name: getattr(self, name) for name in _BUILT_WITH[self.index_type]}
        return self._key(kind, corpus, index=self.index_type, metric=self.metric, **built_with)

    def _key(self, kind: str, corpus: Corpus, **parts: object) -> Key:
        """Return the key of work based on the vectors of a corpus."""
        return Key.of(kind, {__name__, *code_of(self.encoder)}, **corpus.key_parts, encoder=self.encoder, **parts)

    def _build(self, vectors: Vectors) -> Arrays:
        import faiss

        n, width = vectors.shape
        metric = faiss.METRIC_L2 if self.metric == "l2" else faiss.METRIC_INNER_PRODUCT
        index: Any
        with _one_thread():  # several would link the graph in a random order
            if self.index_type == "hnsw":
                index = faiss.IndexHNSWFlat(width, self.m, metric)
                index.hnsw.efConstruction = self.ef_construction
                index.hnsw.rng = faiss.RandomGenerator(self.seed)  # type: ignore[attr-defined]  # not in its stubs
            else:
                index = faiss.index_factory(width, self._codes(n, width), metric)
                clustering = index.cp if self.index_type == "ivf" else index.pq.cp
                clustering.seed, clustering.min_points_per_centroid = self.seed, 1
                index.train(np.resize(vectors, (max(n, 2**_FEWEST_BITS), width)))
            index.add(vectors)
        return {"index": faiss.serialize_index(index)}

    def _codes(self, n: int, width: int) -> str:
        """Return the FAISS factory string of a trained index for n vectors."""
        if self.index_type == "ivf":
            return f"IVF{min(self.nlist or round(4 * n**0.5), n)},Flat"
        if width % self.pq_m:
            fitting = ", ".join(str(m) for m in range(1, width + 1) if width % m == 0)
            raise RetrieverError(f"pq_m={self.pq_m}: does not divide the {width} dimensions; choose one of {fitting}")
        return f"PQ{self.pq_m}x{min(self.pq_bits, max(int(np.log2(n)), _FEWEST_BITS))}np"


@contextmanager
def _one_thread() -> Iterator[None]:
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


@dataclass(frozen=True, eq=False)
class Points:
    """The documents with a direction: their positions in the corpus, their vectors, and the largest norm."""

    rows: NDArray[np.int32]
    vectors: Vectors
    longest: float


def _points(shards: Sequence[Vectors], unit_length: bool) -> Points:
    vectors = np.concatenate(shards) if shards else np.zeros((0, 0), dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1)
    rows = np.flatnonzero(lengths > 0).astype(np.int32)
    if len(rows) < len(vectors):
        vectors, lengths = vectors[rows], lengths[rows]
    if unit_length:
        vectors, lengths = vectors / lengths[:, None], np.ones_like(lengths)
    return Points(rows, np.ascontiguousarray(vectors, dtype=np.float32), float(lengths.max(initial=0)))


@dataclass(frozen=True, eq=False)
class DenseSearcher:
    """Searches points, through an index or exactly. `embed` encodes queries."""

    settings: Dense
    embed: Callable[[Sequence[str], Store], tuple[Vectors, NDArray[np.float32]]]
    points: Points
    tie_order: NDArray[np.int32]
    index: faiss.Index | None

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query.

        The first queries are searched one by one and timed. With an approximate index all are, because its results may
        depend on the other queries of a batch.
        """
        vectors, embedding_seconds = self.embed(queries, store)
        rankings, seconds = create_empty_rankings(len(queries), k), embedding_seconds.copy()
        lengths = np.linalg.norm(vectors, axis=1)
        searched = np.flatnonzero(lengths > 0) if len(self.points.rows) else np.zeros(0, dtype=np.int64)
        alone = len(searched) if self.index is not None else min(TIMED_QUERIES, len(searched))
        for start, end in pairwise([*range(alone), *range(alone, len(searched), BATCH), len(searched)]):
            began, block = time.perf_counter(), searched[start:end]
            directions = vectors[block] / lengths[block, None] if self.settings.metric == "cosine" else vectors[block]
            best = (
                self._search_exactly(directions, k)
                if self.index is None
                else self._search_index(self.index, directions, k)
            )
            rankings.documents[block], rankings.scores[block] = best.documents, best.scores
            seconds[block] += time.perf_counter() - began if len(block) == 1 else np.nan
        return replace(rankings, seconds=seconds)

    def diagnostics(self, queries: Sequence[str], k: int, store: Store) -> dict[str, float]:
        """Return the mean recall of the exact top k by an approximate index; no figure for an exact search."""
        if self.index is None:
            return {}
        exact, nearly = (s.search(queries, k, store).documents for s in (replace(self, index=None), self))
        answered = exact[:, 0] != NOTHING
        pairs = zip(exact[answered], nearly[answered], strict=True)
        shares = [np.isin(best[best != NOTHING], some).mean() for best, some in pairs]
        return {f"index_recall_at_{k}": float(np.mean(shares))} if shares else {}

    def _search_index(self, index: faiss.Index, queries: Vectors, k: int) -> Rankings:
        """Return the k best documents and scores of an approximate index."""
        import faiss

        parameters: Any = None  # for this search only: the index may be shared with other settings
        if self.settings.index_type == "ivf":
            parameters = faiss.SearchParametersIVF(nprobe=self.settings.nprobe)  # type: ignore[call-arg]  # not in its stubs
        elif self.settings.index_type == "hnsw":
            parameters = faiss.SearchParametersHNSW(efSearch=self.settings.ef_search)  # type: ignore[attr-defined]  # nor is this
        scores, places = index.search(queries, min(k, len(self.points.rows)), params=parameters)
        documents = np.where(places < 0, NOTHING, self.points.rows[places]).astype(np.int32)
        return rank(documents, -scores if self.settings.metric == "l2" else scores, self.tie_order, k)

    def _search_exactly(self, queries: Vectors, k: int, spare: int = 16) -> Rankings:
        """Return the k best of all points, by the tie rule.

        Candidates are found in single precision, and the last digits depend on the other queries of a batch. So they
        are scored again in double precision, which gives equal vectors equal scores, and a query is searched deeper if
        a document beyond its candidates could still be among the best.
        """
        n, l2 = len(self.points.rows), self.settings.metric == "l2"
        depth = min(k + spare, n)
        rough, places = find_nearest(queries, self.points.vectors, depth, l2)
        scores = np.empty((len(queries), depth), dtype=np.float32)
        for row, query in enumerate(queries.astype(np.float64)):
            candidates = self.points.vectors[places[row]].astype(np.float64)
            if l2:
                candidates -= query
                scores[row] = 0.0 - np.einsum("ij,ij->i", candidates, candidates)
            else:
                scores[row] = np.einsum("ij,j->i", candidates, query)
        best = rank(self.points.rows[places], scores, self.tie_order, k)
        if depth == n:
            return best
        # The largest error of a sum of products in single precision.
        reach = (np.linalg.norm(queries, axis=1) + self.points.longest) ** 2
        error = queries.shape[1] * np.finfo(np.float32).eps * reach
        unsure = best.scores[:, -1] <= rough[:, -1] + error
        if unsure.any():
            deeper = self._search_exactly(queries[unsure], k, 4 * (k + spare))
            best.documents[unsure], best.scores[unsure] = deeper.documents, deeper.scores
        return best
