"""Search by binary codes of vectors, and ranking the hits of any index again by the vectors themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrievers.encoders.base import MAPPED_SHARD, Vectors
from retrievers.vectors.points import Nearest, Points, PointVectors, Subset, score_points
from retrievers.vectors.vector_search import VectorIndex

_WORD = 64
"""The signs of how many dimensions are compared at a time."""


@dataclass(frozen=True, eq=False)
class BinaryIndex:
    """The signs of vectors, 64 dimensions in each row of `codes` (uint64 of shape (words, n))."""

    codes: NDArray[np.uint64]
    width: int

    def find(self, queries: Vectors, depth: int, subset: Subset | None = None) -> Nearest:
        """Return the scores and places of the points whose signs differ least from those of each query.

        All points that are equal to the last one are returned as well: few of the scores differ, and which of these
        points are hits is for the tie rule to say.
        """
        codes = self.codes if subset is None else self.codes[:, subset.places]
        differing = np.zeros((len(queries), codes.shape[1]), dtype=np.int32)
        for words, signs in zip(codes, _encode_signs(queries), strict=True):
            differing += np.bitwise_count(words ^ signs[:, None])
        last = np.partition(differing, depth - 1, axis=1)[:, depth - 1 : depth]
        longest = int((differing <= last).sum(axis=1).max(initial=0))
        places = np.argsort(differing, axis=1, kind="stable")[:, :longest]
        scores = 1 - np.take_along_axis(differing, places, axis=1) * np.float32(2 / self.width)
        return scores.astype(np.float32), places if subset is None else subset.places[places]


def build_binary_index(vectors: PointVectors) -> BinaryIndex:
    """Return the index of vectors by their signs; 0 counts as negative."""
    blocks = range(0, len(vectors), MAPPED_SHARD)
    codes = [_encode_signs(vectors[start : start + MAPPED_SHARD]) for start in blocks]
    return BinaryIndex(np.concatenate(codes, axis=1), vectors.shape[1])


def _encode_signs(vectors: Vectors) -> NDArray[np.uint64]:
    """Return the signs of vectors, 64 in each row; those beyond the dimensions are equal in all."""
    n, width = vectors.shape
    padded = np.zeros((n, -(-width // _WORD) * _WORD), dtype=np.bool_)
    np.greater(vectors, 0, out=padded[:, :width])
    return np.ascontiguousarray(np.packbits(padded, axis=1).view(np.uint64).T)


@dataclass(frozen=True, eq=False)
class RescoredIndex:
    """An index whose candidates, `oversampling` times as many as hits, are scored again by their vectors."""

    index: VectorIndex
    points: Points
    oversampling: float
    l2: bool

    def find(self, queries: Vectors, depth: int, subset: Subset | None = None) -> Nearest:
        """Return the candidates of each query with their scores in full precision, best first."""
        n = len(self.points.rows if subset is None else subset.places)
        _, places = self.index.find(queries, min(math.ceil(depth * self.oversampling), n), subset)
        scores = np.where(places < 0, np.float32(-np.inf), score_points(self.points, queries, places, self.l2))
        order = np.argsort(-scores, axis=1, kind="stable")
        return np.take_along_axis(scores, order, axis=1), np.take_along_axis(places, order, axis=1)
