"""Search by vectors: the nearest documents to a query, exactly, through an approximate index of FAISS, or by codes.

An encoder supplies the vectors of documents and queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, RetrieverError
from retrievers.capabilities import Capabilities
from retrievers.encoders.base import MAPPED_SHARD, Encoder, Vectors
from retrievers.extras import check_installed
from retrievers.search import Work
from retrievers.store import Arrays, Key, Store
from retrievers.vectors.faiss_arrays import check_parts, fill_index, pack_index
from retrievers.vectors.points import Nearest, Points, PointVectors, Subset
from retrievers.vectors.quantization import BinaryIndex, RescoredIndex, build_binary_index
from retrievers.vectors.vector_search import RESULTS_VERSION as VECTOR_SEARCH_VERSION
from retrievers.vectors.vector_search import Metric, VectorIndex, VectorSearcher, VectorSpace
from retrievers.work import LIVE_VECTOR_INDEX, VECTOR_INDEX, WorkKind

if TYPE_CHECKING:
    import faiss

RESULTS_VERSION = f"dense 1, {VECTOR_SEARCH_VERSION}"

_TRAINED_ON = 1 << 19
"""How many vectors of a large file codes and cells are learned from."""

_FEWEST_BITS = 3  # per code: FAISS compares eight at once

_BUILT_WITH: Mapping[str, Sequence[str]] = {
    "flat": (),
    "ivf": ("nlist", "seed"),
    "hnsw": ("m", "ef_construction", "seed"),
    "pq": ("pq_m", "pq_bits", "seed"),
}

_QUANTIZED: Mapping[str, Sequence[str]] = {"int8": ("flat", "ivf", "hnsw"), "binary": ("flat",)}
"""The index types that a quantization is available with."""


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Dense:
    """Settings of search by vectors. Only the index type `flat` without quantization is exact.

    Settings of other index types have no effect.

    The score is the cosine, the dot product, or the negative squared distance (`l2`). A text without a direction, such
    as a blank one, has no hits and is never a hit.

    `ivf` searches `nprobe` of `nlist` cells (null: 4 times the square root of the number of documents; at most one per
    document). `hnsw` searches a graph with `m` links per document, with `ef_construction` candidates when it is built
    and `ef_search` per query. `pq` stores `pq_m` codes of `pq_bits` instead of a vector; fewer bits if there are fewer
    documents than codes. `quantization` compares codes instead of vectors: `int8` has a byte per dimension, for `flat`,
    `ivf` and `hnsw`; `binary` has its sign only, for `flat`, and the score is 1 - 2 times the share of the signs that
    differ. `rescore` ranks `oversampling` times as many candidates as hits by their vectors. `nprobe`, `ef_search`,
    `rescore` and `oversampling` apply at search time, to the stored index.
    """

    access: ClassVar[Access] = Access()
    capabilities: ClassVar[Capabilities] = Capabilities(filters=True)

    encoder: Encoder
    index_type: Literal["flat", "ivf", "hnsw", "pq"] = "flat"
    metric: Metric = "cosine"
    nlist: int | None = Field(default=None, ge=1)
    nprobe: int = Field(default=8, ge=1)
    m: int = Field(default=32, ge=2)
    ef_construction: int = Field(default=200, ge=1)
    ef_search: int = Field(default=64, ge=1)
    pq_m: int = Field(default=32, ge=1)
    pq_bits: int = Field(default=8, ge=_FEWEST_BITS, le=12)
    quantization: Literal["int8", "binary"] | None = None
    rescore: bool = False
    oversampling: float = Field(default=1.0, ge=1, allow_inf_nan=False)
    seed: int = Field(default=0, ge=0)

    def __post_init__(self) -> None:
        if self.quantization and self.index_type not in _QUANTIZED[self.quantization]:
            fitting = ", ".join(_QUANTIZED[self.quantization])
            raise RetrieverError(
                f"quantization={self.quantization}: not available with index_type={self.index_type}, only with "
                f"{fitting}; set another index_type, or quantization=null"
            )
        if self.index_type != "flat" or self.quantization == "int8":
            check_installed("faiss", "faiss-cpu", "dense")

    @property
    def exact(self) -> bool:
        """Return whether every vector is compared in full precision."""
        return self.index_type == "flat" and self.quantization is None

    def index(self, corpus: Corpus, store: Store) -> VectorSearcher:
        """Return a searcher; the corpus is embedded and the index built unless the store has them."""
        space = VectorSpace(self.encoder, corpus, self.metric)
        embedded = space.embed(store)
        return embedded.open_searcher(self._open_index(space, embedded.points, store))

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the vectors and any index that is stored."""
        space = VectorSpace(self.encoder, corpus, self.metric)
        stored = not self.exact and self.quantization != "binary"  # binary codes are made in less time than read
        key = self._index_key(VECTOR_INDEX, space) if stored else None
        return space.plan(self, queries, k, store, key, exact=self.exact)

    def _open_index(self, space: VectorSpace, points: Points, store: Store) -> VectorIndex | None:
        """Return the index of points, or None for an exact search."""
        if self.exact or not len(points.rows):
            return None
        index = self._load_index(space, points, store)
        return RescoredIndex(index, points, self.oversampling, self.metric == "l2") if self.rescore else index

    def _load_index(self, space: VectorSpace, points: Points, store: Store) -> FaissIndex | BinaryIndex:
        """Return the index that finds candidates."""
        if self.quantization == "binary":
            key = self._index_key(LIVE_VECTOR_INDEX, space)
            return store.share(key, lambda: build_binary_index(points.vectors))

        def load() -> faiss.Index:
            index, n = self._create(*points.vectors.shape), len(points.vectors)
            key = self._index_key(VECTOR_INDEX, space).with_check(check_parts, index, n)
            return fill_index(index, store.arrays(key, lambda: self._build(points.vectors)))

        return FaissIndex(self, store.share(self._index_key(LIVE_VECTOR_INDEX, space), load))

    def _index_key(self, kind: WorkKind, space: VectorSpace) -> Key:
        built_with = {name: getattr(self, name) for name in _BUILT_WITH[self.index_type]}
        return space.build_key(kind, __name__, index=self.index_type, quantization=self.quantization, **built_with)

    def _create(self, n: int, width: int) -> faiss.Index:
        """Return an empty index for n vectors."""
        import faiss

        metric = faiss.METRIC_L2 if self.metric == "l2" else faiss.METRIC_INNER_PRODUCT
        return faiss.index_factory(width, self._codes(n, width), metric)

    def _build(self, vectors: PointVectors) -> Arrays:
        import faiss

        n, width = vectors.shape
        index: Any = self._create(n, width)
        with _one_thread():  # several would link the graph in a random order
            if self.index_type == "hnsw":
                index.hnsw.efConstruction = self.ef_construction
                index.hnsw.rng = faiss.RandomGenerator(self.seed)  # type: ignore[attr-defined]  # not in its stubs
            elif self.index_type != "flat":
                clustering = index.cp if self.index_type == "ivf" else index.pq.cp
                clustering.seed, clustering.min_points_per_centroid = self.seed, 1
            if not index.is_trained:
                sample: Vectors = vectors if isinstance(vectors, np.ndarray) else vectors[_spread(n)]
                index.train(sample if len(sample) >= 2**_FEWEST_BITS else np.resize(sample, (2**_FEWEST_BITS, width)))
            step = n if isinstance(vectors, np.ndarray) else MAPPED_SHARD
            for start in range(0, n, step):
                index.add(vectors[start : start + step])
        return pack_index(index)

    def _codes(self, n: int, width: int) -> str:
        """Return the FAISS factory string of an index for n vectors."""
        codes = "SQ8" if self.quantization == "int8" else "Flat"
        if self.index_type == "flat":
            return codes
        if self.index_type == "hnsw":
            return f"HNSW{self.m},{codes}"
        if self.index_type == "ivf":
            return f"IVF{min(self.nlist or round(4 * n**0.5), n)},{codes}"
        if width % self.pq_m:
            fitting = ", ".join(str(m) for m in range(1, width + 1) if width % m == 0)
            raise RetrieverError(
                f"pq_m={self.pq_m}: should be a divisor of the number of dimensions ({width}); choose one of {fitting}"
            )
        return f"PQ{self.pq_m}x{min(self.pq_bits, max(int(np.log2(n)), _FEWEST_BITS))}np"


def _spread(n: int) -> NDArray[np.int64]:
    """Return the places of the vectors of a large file that codes and cells are learned from."""
    return np.linspace(0, n - 1, min(n, _TRAINED_ON)).astype(np.int64)


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
class FaissIndex:
    """An index of FAISS, searched with the settings that apply at search time: it may be shared with other settings."""

    settings: Dense
    index: faiss.Index

    def find(self, queries: Vectors, depth: int, subset: Subset | None = None) -> Nearest:
        """Return the scores and places of the nearest points of each query."""
        import faiss

        if subset is not None and self.settings.index_type == "pq":
            return self._find_all(queries, depth, subset)
        own: dict[str, Any] = {} if subset is None else {"sel": faiss.IDSelectorBatch(subset.places)}
        parameters: Any = faiss.SearchParameters(**own) if own else None
        if self.settings.index_type == "ivf":
            parameters = faiss.SearchParametersIVF(nprobe=self.settings.nprobe, **own)  # type: ignore[call-arg]  # not in its stubs
        elif self.settings.index_type == "hnsw":
            parameters = faiss.SearchParametersHNSW(efSearch=self.settings.ef_search, **own)  # type: ignore[attr-defined]  # nor is this
        scores, places = self.index.search(queries, depth, params=parameters)
        return -scores if self.settings.metric == "l2" else scores, places

    def _find_all(self, queries: Vectors, depth: int, subset: Subset) -> Nearest:
        """Return the nearest points of a subset from those of all points: FAISS cannot select from product codes."""
        scores, places = self.index.search(queries, self.index.ntotal)
        first = np.argsort(~np.isin(places, subset.places), axis=1, kind="stable")[:, :depth]
        scores, places = np.take_along_axis(scores, first, axis=1), np.take_along_axis(places, first, axis=1)
        return -scores if self.settings.metric == "l2" else scores, places
