"""Every call of Qdrant's engine: build an index of vectors, open it, search it.

The engine runs in this process. Its Python interface is a beta version, so the calls stay in this module.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from retrievers.base import RetrieverError
from retrievers.encoders.base import Vectors
from retrievers.engines.folders import pack_folder, unpack_folder
from retrievers.points import Nearest
from retrievers.store import Arrays

if TYPE_CHECKING:
    import qdrant_edge

PACKAGE = "qdrant-edge-py"
BATCH = 512
"""How many vectors are handed to the engine at a time."""

Quantization = Literal[
    "int8", "binary", "binary_1.5bit", "binary_2bit",
    "product_x4", "product_x8", "product_x16", "product_x32", "product_x64",
    "turbo_1bit", "turbo_2bit", "turbo_4bit",
]  # fmt: skip
"""How vectors are compressed: to bytes, to bits, to product codes of a ratio, or to TurboQuant codes."""

_SMALLEST = 1
"""The size in kB from which the engine builds an index; its own default leaves small corpora unindexed."""


@dataclass(frozen=True)
class ShardSettings:
    """What an index is built with: links per point (0: no graph), candidates while building, compression."""

    metric: Literal["cosine", "dot", "l2"]
    m: int
    ef_construct: int
    quantization: Quantization | None


def read_engine_version() -> str:
    """Return the name and version of the engine."""
    return f"{PACKAGE} {version(PACKAGE)}"


def build_shard(vectors: Vectors, settings: ShardSettings) -> Arrays:
    """Return the files of an index of vectors, whose ids are their places."""
    import qdrant_edge as engine

    with tempfile.TemporaryDirectory(prefix="qdrant-") as folder, _explain_errors():
        shard = engine.EdgeShard.create(folder, _configure(vectors.shape[1], settings))
        for start in range(0, len(vectors), BATCH):
            block = vectors[start : start + BATCH].tolist()
            points = [engine.Point(start + place, vector) for place, vector in enumerate(block)]
            shard.update(engine.UpdateOperation.upsert_points(points))
        shard.optimize()  # before that, nothing is indexed
        shard.flush()
        shard.close()
        return pack_folder(Path(folder))


def _configure(width: int, settings: ShardSettings) -> qdrant_edge.EdgeConfig:
    import qdrant_edge as engine

    distance = {"cosine": "Cosine", "dot": "Dot", "l2": "Euclid"}[settings.metric]
    # A corpus below the threshold for full scans would be scanned, and the graph have no effect.
    graph = engine.HnswIndexConfig(m=settings.m, ef_construct=settings.ef_construct, full_scan_threshold=_SMALLEST)
    vectors = engine.EdgeVectorParams(size=width, distance=getattr(engine.Distance, distance))
    return engine.EdgeConfig(
        vectors=vectors,
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
    """An index opened in a temporary folder, which is removed when nothing refers to it any more."""

    def __init__(self, arrays: Arrays) -> None:
        import qdrant_edge as engine

        folder = Path(tempfile.mkdtemp(prefix="qdrant-"))
        try:
            with _explain_errors():
                unpack_folder(arrays, folder)
                self._shard = engine.EdgeShard.load(str(folder))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(self, _close, self._shard, folder)

    def find(
        self, queries: Vectors, depth: int, ef: int | None, rescore: bool | None, oversampling: float | None
    ) -> Nearest:
        """Return the engine's scores and places of the nearest vectors of each query; place -1 where there is none."""
        import qdrant_edge as engine

        codes = engine.QuantizationSearchParams(rescore=rescore, oversampling=oversampling)
        params = engine.SearchParams(hnsw_ef=ef, quantization=codes)
        scores = np.full((len(queries), depth), -np.inf, dtype=np.float32)
        places = np.full((len(queries), depth), -1, dtype=np.int64)
        for row, query in enumerate(queries.tolist()):
            request = engine.QueryRequest(limit=depth, query=engine.Query.Nearest(query), params=params)
            with _explain_errors():
                hits = self._shard.query(request)
            scores[row, : len(hits)] = [hit.score for hit in hits]
            places[row, : len(hits)] = [hit.id for hit in hits]
        return scores, places


def _close(shard: qdrant_edge.EdgeShard, folder: Path) -> None:
    shard.close()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Raise errors of the engine, and of the disk, as `RetrieverError`, in one line."""
    try:
        yield
    except RetrieverError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RetrieverError(f"Qdrant's engine: {reason} (temporary files: {tempfile.gettempdir()})") from error
