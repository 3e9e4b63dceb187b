"""Search by vectors: the documents nearest to a query, exactly, or nearly so through one of FAISS's indexes.

It knows nothing of where vectors come from: an encoder makes them, of documents and of queries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import faiss
import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import NOTHING, Corpus, Rankings, RetrieverError, create_empty_rankings, rank
from retrievers.code import code_of
from retrievers.encoders.base import Encoder, PlannedEncoder, Vectors
from retrievers.search import TIMED_QUERIES, Work, build_rankings_key
from retrievers.store import Arrays, Key, NoStore, Store

BATCH = 1024
"""How many queries are searched together, exactly, after those that are timed."""

_FEWEST_BITS = 3  # of a code: FAISS compares eight at once

_BUILT_WITH: Mapping[str, Sequence[str]] = {
    "ivf": ("nlist", "seed"),
    "hnsw": ("m", "ef_construction", "seed"),
    "pq": ("pq_m", "pq_bits", "seed"),
}


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Dense:
    """Settings of a search by vectors. Of the index types, only `flat` is exact; a setting of another has no effect.

    The score is the cosine, the dot product, or the negative squared distance (`l2`). A text without a direction (a
    blank one) finds nothing and is not found.

    `ivf` looks into `nprobe` of `nlist` cells (null: 4 times the root of the number of documents), at most one a
    document. `hnsw` walks a graph of `m` links a document, `ef_construction` candidates wide when it is built and
    `ef_search` when it is asked. `pq` keeps `pq_m` codes of `pq_bits` in place of a vector; fewer bits where there are
    fewer documents than codes. `nprobe` and `ef_search` act at search time, on the index that the store has.
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

    def index(self, corpus: Corpus, store: Store) -> DenseSearcher:
        """Embed the corpus and build the index, unless the store has them, and return a searcher."""
        embedded = self.encoder.embed(corpus, store)
        key = self._key("points", corpus, unit_length=self.metric == "cosine")
        points = store.share(key, lambda: _points(embedded.documents, self.metric == "cosine"))
        return DenseSearcher(self, embedded.queries, points, corpus.tie_order, self._ready_index(corpus, points, store))

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search, which needs the vectors, and the index where there is to be one."""
        encoder = self.encoder
        needs = list(encoder.plan(corpus, queries, store)) if isinstance(encoder, PlannedEncoder) else []
        if self.index_type != "flat":
            needs.append(Work("index", self._index_key("vector index", corpus)))
        return Work("search", build_rankings_key(self, corpus, queries, k), tuple(needs))

    def _ready_index(self, corpus: Corpus, points: Points, store: Store) -> faiss.Index | None:
        """Return FAISS's index of points, or None where every point is looked at."""
        if self.index_type == "flat" or not len(points.rows):
            return None

        def load() -> faiss.Index:
            kept = store.arrays(self._index_key("vector index", corpus), lambda: self._build(points.vectors))
            return faiss.deserialize_index(np.asarray(kept["index"]))

        return store.share(self._index_key("live vector index", corpus), load)

    def _index_key(self, kind: str, corpus: Corpus) -> Key:
        built_with = {name: getattr(self, name) for name in _BUILT_WITH[self.index_type]}
        return self._key(kind, corpus, index=self.index_type, metric=self.metric, **built_with)

    def _key(self, kind: str, corpus: Corpus, **parts: object) -> Key:
        """Return the key of what is made of the vectors of a corpus."""
        return Key.of(kind, {__name__, *code_of(self.encoder)}, **corpus.key_parts, encoder=self.encoder, **parts)

    def _build(self, vectors: Vectors) -> Arrays:
        n, width = vectors.shape
        metric = faiss.METRIC_L2 if self.metric == "l2" else faiss.METRIC_INNER_PRODUCT
        index: Any
        with _one_thread():  # several would link a graph in no certain order
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
        """Return FAISS's name of an index that is trained, for n vectors."""
        if self.index_type == "ivf":
            return f"IVF{min(self.nlist or round(4 * n**0.5), n)},Flat"
        if width % self.pq_m:
            fitting = ", ".join(str(m) for m in range(1, width + 1) if width % m == 0)
            raise RetrieverError(f"pq_m={self.pq_m} does not divide the {width} dimensions: choose one of {fitting}")
        return f"PQ{self.pq_m}x{min(self.pq_bits, max(int(np.log2(n)), _FEWEST_BITS))}np"


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


@dataclass(frozen=True, eq=False)
class Points:
    """The documents that have a direction: their positions in the corpus, vectors, and the longest length."""

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
    """A search among points: through an index, or exactly where there is none. `embed` is the encoder's for queries."""

    settings: Dense
    embed: Callable[[Sequence[str], Store], tuple[Vectors, NDArray[np.float32]]]
    points: Points
    tie_order: NDArray[np.int32]
    index: faiss.Index | None

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query.

        The first queries are searched one by one, and timed, and so are all of an approximate index, which may find
        other documents for a query when more are asked at once.
        """
        vectors, embedding_seconds = self.embed(queries, store)
        found, seconds = create_empty_rankings(len(queries), k), embedding_seconds.copy()
        lengths = np.linalg.norm(vectors, axis=1)
        asked = np.flatnonzero(lengths > 0) if len(self.points.rows) else np.zeros(0, dtype=np.int64)
        alone = len(asked) if self.index is not None else min(TIMED_QUERIES, len(asked))
        for start, end in pairwise([*range(alone), *range(alone, len(asked), BATCH), len(asked)]):
            began, block = time.perf_counter(), asked[start:end]
            directions = vectors[block] / lengths[block, None] if self.settings.metric == "cosine" else vectors[block]
            best = self._exact(directions, k) if self.index is None else self._nearly(self.index, directions, k)
            found.documents[block], found.scores[block] = best.documents, best.scores
            seconds[block] += time.perf_counter() - began if len(block) == 1 else np.nan
        return replace(found, seconds=seconds)

    def diagnostics(self, queries: Sequence[str], k: int, store: Store) -> dict[str, float]:
        """Return how much of the exact top k an approximate index finds, as a mean over queries; nothing if exact."""
        if self.index is None:
            return {}
        exact, nearly = (s.search(queries, k, store).documents for s in (replace(self, index=None), self))
        answered = exact[:, 0] != NOTHING
        pairs = zip(exact[answered], nearly[answered], strict=True)
        shares = [np.isin(best[best != NOTHING], some).mean() for best, some in pairs]
        return {f"index_recall_at_{k}": float(np.mean(shares))} if shares else {}

    def _nearly(self, index: faiss.Index, queries: Vectors, k: int) -> Rankings:
        """Return the k best that an approximate index finds, with the scores that it gives."""
        how: Any = None  # for this search alone: the index may be shared with other settings
        if self.settings.index_type == "ivf":
            how = faiss.SearchParametersIVF(nprobe=self.settings.nprobe)  # type: ignore[call-arg]  # not in its stubs
        elif self.settings.index_type == "hnsw":
            how = faiss.SearchParametersHNSW(efSearch=self.settings.ef_search)  # type: ignore[attr-defined]  # nor is this
        scores, places = index.search(queries, min(k, len(self.points.rows)), params=how)
        documents = np.where(places < 0, NOTHING, self.points.rows[places]).astype(np.int32)
        return rank(documents, -scores if self.settings.metric == "l2" else scores, self.tie_order, k)

    def _exact(self, queries: Vectors, k: int, spare: int = 16) -> Rankings:
        """Return the k best of all points, by the one tie rule.

        FAISS finds candidates in single precision, whose last digits depend on which queries are asked together. So
        candidates are scored again in double precision, equal vectors equally, and a query for which a document
        beyond its candidates could still be among the best is searched deeper.
        """
        n, l2 = len(self.points.rows), self.settings.metric == "l2"
        depth = min(k + spare, n)
        metric = faiss.METRIC_L2 if l2 else faiss.METRIC_INNER_PRODUCT
        rough, places = faiss.knn(queries, self.points.vectors, depth, metric=metric)
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
        # A sum of products in single precision is off by no more than this.
        reach = (np.linalg.norm(queries, axis=1) + self.points.longest) ** 2
        error = queries.shape[1] * np.finfo(np.float32).eps * reach
        unsure = best.scores[:, -1] <= (-rough if l2 else rough)[:, -1] + error
        if unsure.any():
            deeper = self._exact(queries[unsure], k, 4 * (k + spare))
            best.documents[unsure], best.scores[unsure] = deeper.documents, deeper.scores
        return best
