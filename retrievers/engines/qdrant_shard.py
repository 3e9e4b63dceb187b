"""The calls of Qdrant's engine: build an index of vectors, words or both, open it, search it.

The engine runs in this process. Its Python interface is a beta version, so the calls stay in this module and in
`retrievers.engines.qdrant_words`.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from retrievers.base import RetrieverError
from retrievers.encoders.base import Vectors
from retrievers.engines.folders import pack_folder, unpack_folder
from retrievers.engines.hits import read_hits
from retrievers.engines.qdrant_words import FIELD, ScoringQuery, Words
from retrievers.store import Arrays
from retrievers.vectors.points import Nearest, Points, PointStream
from retrievers.work import QDRANT_INDEX

if TYPE_CHECKING:
    import qdrant_edge

Hits = tuple[NDArray[np.int32], NDArray[np.float32]]
"""The places of documents and their scores, best first."""

Codes = Mapping[str, Sequence[Sequence[int]]]
"""The fields that queries filter by: for each field, the codes of the values of each point."""

Passing = Mapping[str, range | list[int]]
"""A filter: the codes that pass, by field. A point passes if it has one of the codes of every field."""

PACKAGE = "qdrant-edge-py"
BATCH = 512
"""How many vectors are passed to the engine at a time."""

Quantization = Literal[
    "int8", "binary", "binary_1.5bit", "binary_2bit",
    "product_x4", "product_x8", "product_x16", "product_x32", "product_x64",
    "turbo_1bit", "turbo_2bit", "turbo_4bit",
]  # fmt: skip
"""How vectors are compressed: to bytes, to bits, to product codes of a ratio, or to TurboQuant codes."""

_SMALLEST = 1
"""The size in kB from which the engine builds an index; with its own default, small corpora would not be indexed."""


@dataclass(frozen=True)
class ShardSettings:
    """The build settings of an index: links per point (0: no graph), candidates while building, compression."""

    metric: Literal["cosine", "dot", "l2"]
    m: int
    ef_construct: int
    quantization: Quantization | None


@dataclass(frozen=True)
class Effort:
    """The search settings of vectors: candidates, and the rescoring of compressed ones; None stands for the default."""

    ef: int | None
    rescore: bool | None
    oversampling: float | None

    @property
    def params(self) -> qdrant_edge.SearchParams:
        """Return the settings in the type of the engine."""
        import qdrant_edge as engine

        codes = engine.QuantizationSearchParams(rescore=self.rescore, oversampling=self.oversampling)
        return engine.SearchParams(hnsw_ef=self.ef, quantization=codes)


@dataclass(frozen=True)
class FusionSettings:
    """How the engine fuses the best documents by vectors with those by words; the weights only apply to rrf."""

    method: Literal["rrf", "dbsf"]
    rrf_k: int
    vector_weight: float
    candidates: int


def read_engine_version() -> str:
    """Return the name and version of the engine."""
    return f"{PACKAGE} {version(PACKAGE)}"


def build_shard(
    settings: ShardSettings, points: Points | PointStream | None, codes: Codes, words: Words | None = None
) -> Arrays:
    """Return the files of an index of points, of words, or of both, with the fields to filter by.

    The ids are the places of points in a stream without words, and the positions of documents with words.
    """
    import qdrant_edge as engine

    with tempfile.TemporaryDirectory(prefix="qdrant-") as folder, _explain_errors():
        width = points.width if points is not None else 0
        shard = engine.EdgeShard.create(folder, _configure(settings, width, words))
        if words is not None and words.text_index is not None:
            shard.update(engine.UpdateOperation.create_field_index(FIELD, words.text_index))
        for name in codes:  # set before the points are added, so that the graph gets links for filtered searches
            shard.update(engine.UpdateOperation.create_field_index(name, engine.PayloadSchemaType.Integer))
        for rows, block in _iter_points(points) if isinstance(points, PointStream) else _iter_documents(words, points):
            coded = [_add_codes(point, row, codes) for row, point in zip(rows, block, strict=True)]
            shard.update(engine.UpdateOperation.upsert_points(coded))
        shard.optimize()  # builds the indexes
        shard.flush()
        shard.close()
        return pack_folder(Path(folder))


def _add_codes(point: qdrant_edge.Point, row: int, codes: Codes) -> qdrant_edge.Point:
    """Return a point with the codes of its document, which is at the position `row` of the corpus."""
    import qdrant_edge as engine

    if not codes:
        return point
    own = {name: list(rows[row]) for name, rows in codes.items()}
    return engine.Point(point.id, point.vector, {**(point.payload or {}), **own})


Block = tuple[Sequence[int], "list[qdrant_edge.Point]"]
"""The positions of documents and their points."""


def _iter_points(points: PointStream) -> Iterator[Block]:
    import qdrant_edge as engine

    places = count()
    for rows, vectors in points:
        for start in range(0, len(rows), BATCH):
            block = [engine.Point(next(places), vector) for vector in vectors[start : start + BATCH].tolist()]
            yield rows[start : start + BATCH].tolist(), block


def _iter_documents(words: Words | None, points: Points | None) -> Iterator[Block]:
    if words is None:
        return
    rows = points.rows if points is not None else np.zeros(0, dtype=np.int32)
    for start in range(0, len(words.texts), BATCH):
        first, last = np.searchsorted(rows, (start, start + BATCH))
        vectors = points.vectors[first:last].tolist() if points is not None else []
        end = min(start + BATCH, len(words.texts))
        places = range(start, end)
        yield places, words.create_points(places, dict(zip(rows[first:last].tolist(), vectors, strict=True)))


def _configure(settings: ShardSettings, width: int, words: Words | None) -> qdrant_edge.EdgeConfig:
    import qdrant_edge as engine

    distance = {"cosine": "Cosine", "dot": "Dot", "l2": "Euclid"}[settings.metric]
    # Below the threshold for full scans, a corpus is scanned and the graph has no effect.
    graph = engine.HnswIndexConfig(m=settings.m, ef_construct=settings.ef_construct, full_scan_threshold=_SMALLEST)
    vectors = None
    if width:
        vectors = engine.EdgeVectorParams(size=width, distance=getattr(engine.Distance, distance))
    return engine.EdgeConfig(
        vectors=vectors,
        sparse_vectors=words.sparse_vectors if words is not None else None,
        hnsw_config=graph,
        quantization_config=_configure_quantization(settings.quantization),
        optimizers=engine.EdgeOptimizersConfig(indexing_threshold=_SMALLEST, default_segment_number=1),
        wal_enabled=False,
    )


def _configure_quantization(quantization: Quantization | None) -> qdrant_edge.QuantizationConfigType | None:
    import qdrant_edge as engine

    if quantization is None:
        return None
    kind, _, size = quantization.partition("_")
    if kind == "int8":
        return engine.ScalarQuantizationConfig(type=engine.ScalarType.Int8)
    if kind == "product":
        return engine.ProductQuantizationConfig(compression=getattr(engine.CompressionRatio, size.upper()))
    if kind == "binary":
        encoding = {"": "OneBit", "1.5bit": "OneAndHalfBits", "2bit": "TwoBits"}[size]
        return engine.BinaryQuantizationConfig(encoding=getattr(engine.BinaryQuantizationEncoding, encoding))
    bits = getattr(engine.TurboQuantBitSize, f"Bits{size.removesuffix('bit')}")
    return engine.TurboQuantQuantizationConfig(bits=bits)


class Shard:
    """An index of n points opened in a temporary folder, which is removed when nothing refers to it any more."""

    def __init__(self, arrays: Arrays, n: int) -> None:
        import qdrant_edge as engine

        self._n, folder = n, Path(tempfile.mkdtemp(prefix="qdrant-"))
        try:
            with _explain_errors():
                unpack_folder(arrays, folder)
                self._shard = engine.EdgeShard.load(str(folder))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(self, _close, self._shard, folder)

    def find(self, queries: Vectors, depth: int, effort: Effort, passing: Passing) -> Nearest:
        """Return the engine's scores and places of the nearest vectors of each query; place -1 if there are too few."""
        import qdrant_edge as engine

        scores = np.full((len(queries), depth), -np.inf, dtype=np.float32)
        places = np.full((len(queries), depth), -1, dtype=np.int64)
        for row, query in enumerate(queries.tolist()):
            nearest = engine.Query.Nearest(query)
            own = _format_filter(passing)
            best, values = self._query(
                engine.QueryRequest(limit=depth, query=nearest, params=effort.params, filter=own)
            )
            places[row, : len(best)], scores[row, : len(best)] = best, values
        return scores, places

    def find_words(self, words: ScoringQuery, depth: int, passing: Passing) -> Hits:
        """Return the places and scores of the best documents for the words of a query, best first."""
        import qdrant_edge as engine

        return self._query(engine.QueryRequest(limit=depth, query=words, filter=_format_filter(passing)))

    def fuse(
        self,
        vector: Sequence[float] | None,
        words: ScoringQuery | None,
        fusion: FusionSettings,
        effort: Effort,
        k: int,
        passing: Passing,
    ) -> Hits:
        """Return the places and scores of all documents that the parts of a query find, fused, best first."""
        import qdrant_edge as engine

        depth, parts, weights, own = max(fusion.candidates, k), [], [], _format_filter(passing)
        if vector is not None:
            nearest = engine.Query.Nearest(list(vector))
            parts.append(engine.Prefetch(limit=depth, query=nearest, params=effort.params, filter=own))
            weights.append(2 * fusion.vector_weight)  # equal weights are 1, the default of the engine
        if words is not None:
            parts.append(engine.Prefetch(limit=depth, query=words, filter=own))
            weights.append(2 * (1 - fusion.vector_weight))
        if not parts:
            return read_hits((), self._n, QDRANT_INDEX)
        method: ScoringQuery = engine.Fusion.Dbsf()
        if fusion.method == "rrf":
            method = engine.Fusion.Rrf(fusion.rrf_k, weights)
        return self._query(engine.QueryRequest(limit=2 * depth, query=method, prefetches=parts))

    def _query(self, request: qdrant_edge.QueryRequest) -> Hits:
        with _explain_errors():
            hits = self._shard.query(request)
        return read_hits(((hit.id, hit.score) for hit in hits), self._n, QDRANT_INDEX)


def _format_filter(passing: Passing) -> qdrant_edge.Filter | None:
    """Return a filter for the engine, None without conditions."""
    import qdrant_edge as engine

    def format_condition(name: str, codes: range | list[int]) -> qdrant_edge.FieldCondition:
        if isinstance(codes, range):
            return engine.FieldCondition(name, range=engine.RangeFloat(gte=float(codes.start), lt=float(codes.stop)))
        return engine.FieldCondition(name, match=engine.MatchAny(codes))

    if not passing:
        return None
    return engine.Filter(must=[format_condition(name, codes) for name, codes in passing.items()])


def _close(shard: qdrant_edge.EdgeShard, folder: Path) -> None:
    shard.close()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Raise errors of the engine and the disk as `RetrieverError`, in one line."""
    try:
        yield
    except RetrieverError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RetrieverError(f"Qdrant's engine: {reason} (temporary files: {tempfile.gettempdir()})") from error
