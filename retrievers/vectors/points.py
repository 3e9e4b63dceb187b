"""The documents of a corpus as points, and the exact search for the nearest ones, with the tie rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Rankings, RetrieverError, rank
from retrievers.encoders.base import MappedVectors, Vectors
from retrievers.filters import Filter
from retrievers.vectors.nearest import find_nearest

IN_MEMORY = 4 << 30
"""The most bytes of vectors that are copied into memory; more are read from their file in each search."""

Nearest = tuple[NDArray[np.float32], NDArray[np.int64]]
"""The scores of the best points of each query and their places, each of shape (n, depth), best first."""


@dataclass(frozen=True, eq=False)
class Points:
    """The documents with a direction: their positions in the corpus, their vectors, and the largest norm."""

    rows: NDArray[np.int32]
    vectors: PointVectors
    longest: float

    @property
    def width(self) -> int:
        """Return the dimensions of the vectors."""
        return int(self.vectors.shape[1])


@dataclass(frozen=True, eq=False)
class MappedPoints:
    """The vectors of points, read from a file when they are needed and divided by `lengths`, unless that is None."""

    file: MappedVectors
    rows: NDArray[np.int32]
    lengths: NDArray[np.float32] | None

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of points and of dimensions."""
        return len(self.rows), self.file.matrix.shape[1]

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.rows)

    def __getitem__(self, places: slice | NDArray[np.integer[Any]]) -> Vectors:
        """Return the vectors of the points at these places."""
        vectors = self.file.read(self.rows[places])
        if self.lengths is not None:
            vectors /= self.lengths[places, None]
        return vectors


PointVectors = Vectors | MappedPoints
"""The vectors of points, in memory or in a file."""


@dataclass(frozen=True, eq=False)
class Subset:
    """The points that pass a filter: their places among all points, in rising order."""

    filter: Filter
    places: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PointStream:
    """The points of documents, computed again on each pass, with one shard at a time in memory.

    `shards` are the vectors of all documents, in order.
    """

    shards: Sequence[Vectors]
    unit_length: bool

    @property
    def width(self) -> int:
        """Return the dimensions of the vectors."""
        return self.shards[0].shape[1] if self.shards else 0

    def __iter__(self) -> Iterator[tuple[NDArray[np.int32], Vectors]]:
        """Yield the positions of documents with a direction, and their vectors, shard by shard."""
        for rows, vectors, lengths in _iter_directed(self.shards):
            yield rows, vectors / lengths[:, None] if self.unit_length else vectors


def _iter_directed(shards: Sequence[Vectors]) -> Iterator[tuple[NDArray[np.int32], Vectors, Vectors]]:
    """Yield the positions of documents with a direction, their vectors, and the lengths of these, shard by shard."""
    documents = 0
    for shard in shards:
        lengths = np.linalg.norm(shard, axis=1)
        kept = np.flatnonzero(lengths > 0)
        directed, lengths = (shard, lengths) if len(kept) == len(shard) else (shard[kept], lengths[kept])
        yield (documents + kept).astype(np.int32), directed, lengths
        documents += len(shard)


def build_points(shards: Sequence[Vectors], unit_length: bool) -> Points:
    """Return the points of documents, given their vectors in order, with `unit_length` scaled to length 1.

    Besides the points, only one shard is in memory at a time if `shards` loads each shard when it is needed. The points
    of large files are not copied into memory.
    """
    if isinstance(shards, MappedVectors) and shards.documents * shards.matrix.shape[1] * 4 > IN_MEMORY:
        return _map_points(shards, unit_length)
    width = shards[0].shape[1] if shards else 0
    vectors = np.empty((sum(map(len, shards)), width), dtype=np.float32)
    rows, end, longest = [np.zeros(0, dtype=np.int32)], 0, 0.0
    for positions, directed, lengths in _iter_directed(shards):
        start, end = end, end + len(positions)
        if unit_length:
            np.divide(directed, lengths[:, None], out=vectors[start:end])
            lengths = np.ones_like(lengths)
        else:
            vectors[start:end] = directed
        rows.append(positions)
        longest = max(longest, float(lengths.max(initial=0)))
    return Points(np.concatenate(rows), vectors[:end], longest)


def _map_points(file: MappedVectors, unit_length: bool) -> Points:
    """Return the points of a file, which is read once for their lengths."""
    parts = [(rows, lengths) for rows, _, lengths in _iter_directed(file)]
    rows, lengths = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    longest = 1.0 if unit_length and len(rows) else float(lengths.max(initial=0))
    return Points(rows, MappedPoints(file, rows, lengths if unit_length else None), longest)


def rank_exactly(
    points: Points,
    queries: Vectors,
    k: int,
    tie_order: NDArray[np.int32],
    l2: bool,
    find: Callable[[Vectors, int], Nearest] | None = None,
    subset: Subset | None = None,
    spare: int = 16,
) -> Rankings:
    """Return the k best of all points, or of a subset that is not empty, by the tie rule.

    `find` returns the requested number of points, the best ones in single precision; by default it is `find_nearest`.
    The last digits of its scores may depend on the other queries of a batch, or on the engine. So candidates are scored
    again in double precision, which gives equal vectors equal scores, and a query is searched deeper if a document
    beyond its candidates could still be among the best.
    """
    n = len(points.rows) if subset is None else len(subset.places)
    depth = min(k + spare, n)
    if find is not None:
        rough, places = find(queries, depth)
        if (places < 0).any():
            raise RetrieverError(
                f"an exact index returns fewer than {depth:,} documents, so it is not that of this corpus; remove it "
                "from the store (python -m runner cache)"
            )
    else:
        rough, places = find_nearest(queries, points.vectors, depth, l2, None if subset is None else subset.places)
    best = rank(points.rows[places], score_points(points, queries, places, l2), tie_order, k)
    if depth == n:
        return best
    # The largest error of a sum of products in single precision.
    reach = (np.linalg.norm(queries, axis=1) + points.longest) ** 2
    error = queries.shape[1] * np.finfo(np.float32).eps * reach
    unsure = best.scores[:, -1] <= rough[:, -1] + error
    if unsure.any():
        deeper = rank_exactly(points, queries[unsure], k, tie_order, l2, find, subset, 4 * (k + spare))
        best.documents[unsure], best.scores[unsure] = deeper.documents, deeper.scores
    return best


def score_points(points: Points, queries: Vectors, places: NDArray[np.int64], l2: bool) -> NDArray[np.float32]:
    """Return the scores of each query's points, given by their places (n x m), computed in double precision."""
    scores = np.empty(places.shape, dtype=np.float32)
    for row, query in enumerate(queries.astype(np.float64)):
        candidates = points.vectors[places[row]].astype(np.float64)
        if l2:
            candidates -= query
            scores[row] = 0.0 - np.einsum("ij,ij->i", candidates, candidates)
        else:
            scores[row] = np.einsum("ij,j->i", candidates, query)
    return scores
