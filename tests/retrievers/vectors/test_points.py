"""The points of a corpus are the same in one shard and in several, of which one is held at a time."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from retrievers.encoders.base import Vectors
from retrievers.vectors.points import PointStream, build_points


class Generated(Sequence[Vectors]):
    """Shards that are made when they are read, and the most that were alive at once."""

    def __init__(self, vectors: NDArray[np.float32], size: int) -> None:
        self._vectors, self._size, self.most = vectors, size, 0
        self._made: list[weakref.ref[NDArray[np.float32]]] = []

    def __len__(self) -> int:
        return -(-len(self._vectors) // self._size)

    def __getitem__(self, number: int) -> Vectors:  # type: ignore[override]  # no slices
        if number >= len(self):
            raise IndexError(number)
        shard = self._vectors[number * self._size :][: self._size].copy()
        self._made.append(weakref.ref(shard))
        self.most = max(self.most, sum(made() is not None for made in self._made))
        return shard


@pytest.mark.parametrize("unit_length", [False, True])
def test_shards_make_no_difference_and_are_read_one_by_one(unit_length: bool) -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    vectors[[0, 7, 20, 21, 22, 23, 49]] = 0
    whole, shards = build_points([vectors], unit_length), Generated(vectors, 4)
    parts = build_points(shards, unit_length)
    assert shards.most <= 2  # one is let go when the next is there
    assert parts.rows.tolist() == whole.rows.tolist() == np.flatnonzero(vectors.any(axis=1)).tolist()
    assert parts.vectors.tobytes() == whole.vectors.tobytes()
    stream = PointStream(Generated(vectors, 4), unit_length)
    for _ in range(2):  # it can be read again
        rows, blocks = zip(*stream, strict=True)
        assert np.concatenate(rows).tolist() == whole.rows.tolist()
        assert np.concatenate(blocks).tobytes() == whole.vectors.tobytes()
    assert stream.width == whole.width == 4
    assert parts.longest == whole.longest == pytest.approx(np.linalg.norm(whole.vectors, axis=1).max())


def test_points_without_shards_are_empty() -> None:
    points = build_points([], True)
    assert (len(points.rows), points.vectors.shape, points.longest) == (0, (0, 0), 0.0)
