"""Exact nearest neighbours in single precision, in blocks of bounded memory."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 23
"""How many scores, and how many numbers of vectors, are held at a time: 32 MiB."""


class Rows(Protocol):
    """The rows of a matrix, in memory or in a file."""

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def __getitem__(self, rows: Any, /) -> NDArray[np.float32]:  # noqa: ANN401 (a slice or positions)
        """Return some of the rows."""
        ...


def find_nearest(
    queries: NDArray[np.float32],
    vectors: Rows,
    depth: int,
    l2: bool = False,
    among: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the scores of the best vectors of each query and their rows (n x depth), best first.

    The score is the dot product, or with `l2` the negative squared distance. The last digits of scores depend on the
    other queries, and the order of equal scores is undefined. `depth` is at most the number of vectors. With `among`,
    only these rows are compared.
    """
    scores = np.empty((len(queries), 0), dtype=np.float32)
    rows = np.empty((len(queries), 0), dtype=np.int64)
    size = max(BLOCK // max(queries.shape), depth)
    for start in range(0, len(vectors) if among is None else len(among), size):
        here = slice(start, start + size)
        block = vectors[here if among is None else among[here]]
        fresh = queries @ block.T
        if l2:
            fresh *= 2
            fresh -= np.einsum("ij,ij->i", block, block)
        best, places = _select(fresh, min(depth, len(block)))
        scores = np.concatenate([scores, best], axis=1)
        rows = np.concatenate([rows, places + start if among is None else among[places + start]], axis=1)
        scores, places = _select(scores, min(depth, scores.shape[1]))
        rows = np.take_along_axis(rows, places, axis=1)
    if l2:
        scores = scores - np.einsum("ij,ij->i", queries, queries)[:, None]
    return scores, rows


def _select(scores: NDArray[np.float32], depth: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the largest scores of each row, in descending order, and their columns."""
    columns = np.argpartition(scores, -depth, axis=1)[:, -depth:]
    best = np.take_along_axis(scores, columns, axis=1)
    order = np.argsort(-best, axis=1)
    return np.take_along_axis(best, order, axis=1), np.take_along_axis(columns, order, axis=1)
