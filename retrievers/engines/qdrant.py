"""Search with Qdrant's engine, in this process: vectors by a graph or compressed, words by BM25, and both fused.

A Qdrant server is searched through `retrievers.services.http_api`. Builds of a graph are not reproducible.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, Rankings, RetrieverError, Searcher, create_empty_rankings, list_filters, rank
from retrievers.capabilities import Capabilities
from retrievers.encoders.base import Encoder, Vectors
from retrievers.engines.folders import check_folder
from retrievers.engines.hits import read_hits
from retrievers.engines.qdrant_shard import (
    PACKAGE,
    Codes,
    Effort,
    FusionSettings,
    Hits,
    Passing,
    Quantization,
    Shard,
    ShardSettings,
    build_shard,
    read_engine_version,
)
from retrievers.engines.qdrant_words import Language, SparseSettings, Words, WordSettings
from retrievers.extras import check_installed
from retrievers.filters import Filter, Metadata
from retrievers.search import Work, build_rankings_key
from retrievers.store import Arrays, Key, NoStore, Store
from retrievers.vectors.points import Nearest, Subset
from retrievers.vectors.vector_search import RESULTS_VERSION as VECTOR_SEARCH_VERSION
from retrievers.vectors.vector_search import Metric, VectorSpace
from retrievers.work import LIVE_QDRANT_INDEX, QDRANT_INDEX, WorkKind

RESULTS_VERSION = f"qdrant 1, {VECTOR_SEARCH_VERSION}"

_SPARE = 16
"""How many extra documents a search by words fetches, for the tie rule."""


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Qdrant:
    """Settings of Qdrant's engine. Metrics are those of `Dense`. Settings of other ranks and indexes have no effect.

    `rank` vector: the index is built with `index_type` (flat compares all vectors, hnsw searches a graph), `m` links
    per document, `ef_construct` candidates, and `quantization`, which compresses vectors. The others apply at search
    time, to the stored index: `ef_search` candidates per query (null: `ef_construct`; never fewer than the hits
    requested), and with quantization `oversampling`, which finds that many times the hits by compressed vectors, and
    `rescore`, which ranks them by the original ones (null: the engine's default, which depends on the quantization).
    Only flat without quantization is exact, with the ties of `Dense`. Flat with quantization shows what compression
    loses, apart from the graph.

    `rank` text and bm25 are BM25 with `k1` and `b`, without vectors. text scores a text index at search time. bm25
    stores weights in sparse vectors: `k1`, `b` and `mean_length`, the mean number of words of a document (null: that of
    the corpus), are build settings. `language` is that of the stop words and the stemmer; null keeps all words as they
    are.

    `rank` rrf and dbsf fuse, in the engine, the first `candidates` documents by vectors and by words; `words` selects
    the scores of the latter. rrf sums 1 / (`rrf_k` + rank), with ranks from 0; `vector_weight` is the weight of the
    ranking by vectors, 0.5 for equal weights. dbsf sums scores, scaled by their mean and standard deviation.
    """

    access: ClassVar[Access] = Access()
    capabilities: ClassVar[Capabilities] = Capabilities(filters=True)

    encoder: Encoder | None = None
    rank: Literal["vector", "text", "bm25", "rrf", "dbsf"] = "vector"
    metric: Metric = "cosine"
    index_type: Literal["flat", "hnsw"] = "hnsw"
    m: int = Field(default=16, ge=2, le=1024)
    ef_construct: int = Field(default=100, ge=4)
    quantization: Quantization | None = None
    words: Literal["text", "bm25"] = "text"
    language: Language | None = "english"
    mean_length: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    k1: float = Field(default=1.2, ge=0, allow_inf_nan=False)
    b: float = Field(default=0.75, ge=0, le=1)
    ef_search: int | None = Field(default=None, ge=1)
    rescore: bool | None = None
    oversampling: float | None = Field(default=None, ge=1, allow_inf_nan=False)
    candidates: int = Field(default=100, ge=1)
    rrf_k: int = Field(default=2, ge=1)
    vector_weight: float = Field(default=0.5, ge=0, le=1)

    def __post_init__(self) -> None:
        check_installed("qdrant_edge", PACKAGE, "qdrant")
        if self.encoder is None and self.rank not in ("text", "bm25"):
            raise RetrieverError(
                f"encoder: rank={self.rank} needs one, such as encoder=lsa; rank=text and rank=bm25 need none"
            )

    def read_engine_version(self) -> str:
        """Return the name and version of the engine, a part of the keys of its indexes and rankings."""
        return read_engine_version()

    @property
    def effort(self) -> Effort:
        """Return the settings for vectors that apply at search time."""
        return Effort(self.ef_search, self.rescore, self.oversampling)

    @property
    def exact(self) -> bool:
        """Return whether every vector is compared in full precision."""
        return self.index_type == "flat" and self.quantization is None

    @property
    def fusion(self) -> FusionSettings | None:
        """Return how vectors and words are fused, None if only one of them is searched."""
        if self.rank != "rrf" and self.rank != "dbsf":
            return None
        return FusionSettings(self.rank, self.rrf_k, self.vector_weight, self.candidates)

    def index(self, corpus: Corpus, store: Store) -> Searcher:
        """Return a searcher; the corpus is embedded and the index built unless the store has them."""
        space = self._space(corpus)
        embedded = space.embed(store) if space is not None else None
        if embedded is not None and self.rank == "vector":
            stream = embedded.stream  # read as a stream, because the engine needs the memory of the points
            if not (n := sum(len(rows) for rows, _ in stream)):
                return embedded.open_searcher(None)
            shard = self._open(
                corpus, n, lambda: build_shard(self._shard_settings, stream, _encode_fields(corpus)), store
            )
            return embedded.open_searcher(QdrantIndex(self, shard, corpus.fields), self.exact)
        points = embedded.points if embedded is not None and len(embedded.points.rows) else None
        words = Words(self._word_settings, list(corpus.contents()))
        shard = self._open(
            corpus, len(corpus), lambda: build_shard(self._shard_settings, points, _encode_fields(corpus), words), store
        )
        embed = embedded.embedded.queries if embedded is not None else None
        return QdrantWordSearcher(self, shard, words, corpus, embed if points is not None else None)

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the vectors and the index."""
        index, space = self._index_key(QDRANT_INDEX, corpus), self._space(corpus)
        if space is None:
            return Work(build_rankings_key(self, corpus, queries, k), (Work(index),))
        return space.plan(self, queries, k, store, index, self.exact or self.rank != "vector")

    def _space(self, corpus: Corpus) -> VectorSpace | None:
        """Return the space of the vectors, None without vectors."""
        if self.encoder is None or self.rank in ("text", "bm25"):
            return None
        return VectorSpace(self.encoder, corpus, self.metric)

    def _open(self, corpus: Corpus, n: int, build: Callable[[], Arrays], store: Store) -> Shard:
        """Return the index of n points, which is built unless the store has it."""
        key = self._index_key(QDRANT_INDEX, corpus).with_check(check_folder)
        return store.share(self._index_key(LIVE_QDRANT_INDEX, corpus), lambda: Shard(store.arrays(key, build), n))

    @property
    def _shard_settings(self) -> ShardSettings:
        graph = self.index_type == "hnsw"
        m, ef_construct = (self.m, self.ef_construct) if graph else (0, 4)
        return ShardSettings(self.metric, m, ef_construct, self.quantization)

    @property
    def _word_settings(self) -> WordSettings:
        scorer = self.rank if self.rank in ("text", "bm25") else self.words
        if scorer == "text":
            return WordSettings(self.language)
        return WordSettings(self.language, SparseSettings(self.k1, self.b, self.mean_length))

    def _index_key(self, kind: WorkKind, corpus: Corpus) -> Key:
        built_with: dict[str, object] = {"engine": self.read_engine_version(), **corpus.field_parts}
        if self.rank != "vector":
            built_with["words"] = self._word_settings
        space = self._space(corpus)
        if space is None:
            return Key.of(kind, __name__, **corpus.key_parts, **built_with)
        built_with |= vars(self._shard_settings)
        del built_with["metric"]
        return space.build_key(kind, __name__, **built_with)


@dataclass(frozen=True, eq=False)
class QdrantIndex:
    """An open index and the settings that apply at search time; searchers with other settings may share the index."""

    settings: Qdrant
    shard: Shard
    metadata: Metadata

    def find(self, queries: Vectors, depth: int, subset: Subset | None = None) -> Nearest:
        """Return the scores and places of the nearest points of each query, as many as the engine returns."""
        own, passing = self.settings, _match_codes(self.metadata, None if subset is None else subset.filter)
        scores, places = self.shard.find(queries, depth, own.effort, passing)
        return -(scores**2) if own.metric == "l2" else scores, places


@dataclass(frozen=True, eq=False)
class QdrantWordSearcher:
    """Search by words, or by vectors and words fused in the engine, one query after the other."""

    settings: Qdrant
    shard: Shard
    words: Words
    corpus: Corpus
    embed: Callable[[Sequence[str], Store], tuple[Vectors, NDArray[np.float32]]] | None

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query. A text without a direction is only searched by its words."""
        vectors, seconds = None, np.zeros(len(queries), dtype=np.float32)
        if self.embed is not None:
            vectors, embedding_seconds = self.embed(queries, store)
            seconds += embedding_seconds
        rankings, order = create_empty_rankings(len(queries), min(k, len(self.corpus))), self.corpus.tie_order
        for position, (query, own) in enumerate(zip(queries, list_filters(queries), strict=True)):
            start = time.perf_counter()
            passing = _match_codes(self.corpus.fields, own)
            places, scores = self._find(query, vectors[position] if vectors is not None else None, k, passing)
            best = rank(places[None], scores[None], order, k)
            rankings.fill(position, best)
            seconds[position] += time.perf_counter() - start
        return replace(rankings, seconds=seconds)

    def _find(self, text: str, vector: Vectors | None, k: int, passing: Passing) -> Hits:
        """Return places and scores that include the k best documents, and all that are tied with the last of them."""
        own, fusion = self.settings, self.settings.fusion
        words = self.words.parse_query(text, own.k1, own.b)
        if fusion is not None:
            directed = vector.tolist() if vector is not None and vector.any() else None
            return self.shard.fuse(directed, words, fusion, own.effort, k, passing)
        depth = k + _SPARE
        while words is not None:
            places, scores = self.shard.find_words(words, depth, passing)
            if len(scores) < depth or scores[-1] < scores[k - 1]:
                return places, scores
            depth *= 4
        return read_hits((), len(self.corpus), QDRANT_INDEX)


def _encode_fields(corpus: Corpus) -> Codes:
    """Return the codes of the values of the documents, by field."""
    return {name: codes for name, (_, codes) in corpus.fields.encode().items()}


def _match_codes(metadata: Metadata, own: Filter | None) -> Passing:
    """Return the codes that pass a filter, by field; nothing without a filter."""
    return {} if own is None else {name: codes for name, (_, codes) in metadata.match(own).items()}
