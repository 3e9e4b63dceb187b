"""Search by vectors with Qdrant's engine, in this process: a graph, compressed vectors, rescoring.

A Qdrant server is searched through `retrievers.http_api`. Builds of a graph are not reproducible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus
from retrievers.encoders.base import Encoder, Vectors
from retrievers.engines.qdrant_shard import (
    PACKAGE,
    Quantization,
    Shard,
    ShardSettings,
    build_shard,
    read_engine_version,
)
from retrievers.extras import check_installed
from retrievers.points import Nearest, Points
from retrievers.search import Work
from retrievers.store import Key, Store
from retrievers.vector_search import Metric, VectorSearcher, VectorSpace


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Qdrant:
    """Settings of Qdrant's engine. Metrics are those of `Dense`. Settings of other index types have no effect.

    The index is built with `index_type` (flat compares all vectors, hnsw searches a graph), `m` links per document,
    `ef_construct` candidates, and `quantization`, which compresses vectors. The others apply at search time, to the
    stored index: `ef_search` candidates per query (null: `ef_construct`; never fewer than the hits requested), and with
    quantization `oversampling`, which finds that many times the hits by compressed vectors, and `rescore`, which ranks
    them by the original ones (null: the engine's default, which depends on the quantization).

    Only flat without quantization is exact, with the ties of `Dense`. Flat with quantization shows what compression
    loses, apart from the graph.
    """

    encoder: Encoder
    metric: Metric = "cosine"
    index_type: Literal["flat", "hnsw"] = "hnsw"
    m: int = Field(default=16, ge=2, le=1024)
    ef_construct: int = Field(default=100, ge=4)
    quantization: Quantization | None = None
    ef_search: int | None = Field(default=None, ge=1)
    rescore: bool | None = None
    oversampling: float | None = Field(default=None, ge=1, allow_inf_nan=False)

    def __post_init__(self) -> None:
        check_installed("qdrant_edge", PACKAGE, "qdrant")

    @property
    def engine_version(self) -> str:
        """Return the name and version of the engine, a part of the keys of its indexes and rankings."""
        return read_engine_version()

    @property
    def exact(self) -> bool:
        """Return whether every vector is compared in full precision."""
        return self.index_type == "flat" and self.quantization is None

    def index(self, corpus: Corpus, store: Store) -> VectorSearcher:
        """Return a searcher; the corpus is embedded and the index built unless the store has them."""
        space = VectorSpace(self.encoder, corpus, self.metric)
        embedded = space.embed(store)
        return embedded.open_searcher(self._load_index(space, embedded.points, store))

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the vectors and the index."""
        space = VectorSpace(self.encoder, corpus, self.metric)
        return space.plan(self, queries, k, store, self._index_key("qdrant index", space), self.exact)

    def _load_index(self, space: VectorSpace, points: Points, store: Store) -> QdrantIndex | None:
        """Return the index of points, None without points."""
        if not len(points.rows):
            return None

        def open_shard() -> Shard:
            key = self._index_key("qdrant index", space)
            return Shard(store.arrays(key, lambda: build_shard(points.vectors, self._shard_settings)))

        return QdrantIndex(self, store.share(self._index_key("live qdrant index", space), open_shard))

    @property
    def _shard_settings(self) -> ShardSettings:
        graph = self.index_type == "hnsw"
        m, ef_construct = (self.m, self.ef_construct) if graph else (0, 4)
        return ShardSettings(self.metric, m, ef_construct, self.quantization)

    def _index_key(self, kind: str, space: VectorSpace) -> Key:
        built_with = vars(self._shard_settings) | {"engine": self.engine_version}
        del built_with["metric"]
        made_by = [__name__, "retrievers.engines.qdrant_shard", "retrievers.engines.folders"]
        return space.build_key(kind, made_by, **built_with)


@dataclass(frozen=True, eq=False)
class QdrantIndex:
    """An open index, searched with the settings that apply at search time; other settings may share it."""

    settings: Qdrant
    shard: Shard

    @property
    def exact(self) -> bool:
        """Return whether every vector is compared in full precision."""
        return self.settings.exact

    def find(self, queries: Vectors, depth: int) -> Nearest:
        """Return the scores and places of the nearest points of each query."""
        own = self.settings
        scores, places = self.shard.find(queries, depth, own.ef_search, own.rescore, own.oversampling)
        return -(scores**2) if own.metric == "l2" else scores, places
