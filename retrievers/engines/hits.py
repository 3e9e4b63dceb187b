"""Read the hits of an engine, whose index others may have written: only places in the corpus are used."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from retrievers.base import RetrieverError
from retrievers.work import WorkKind


def read_hits(
    hits: Iterable[tuple[object, object]], n: int, kind: WorkKind
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the places and the scores of hits, each of shape (m,); `kind` is that of the index.

    Raises `RetrieverError` unless the places are different whole numbers from 0 to n - 1, and the scores numbers.
    """
    pairs = list(hits)
    if not pairs:
        return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
    places, scores = map(np.array, zip(*pairs, strict=True))
    if places.dtype.kind != "i" or not 0 <= places.min() <= places.max() < n or len(np.unique(places)) < len(places):
        raise RetrieverError(
            f"{kind.name}: the places of the hits are not different whole numbers from 0 to {n - 1:,}; "
            f"{advise_removal(kind)}"
        )
    if scores.dtype.kind not in "if":
        raise RetrieverError(f"{kind.name}: the score of a hit is not a number; {advise_removal(kind)}")
    with np.errstate(over="ignore"):
        return places.astype(np.int32), scores.astype(np.float32)


def advise_removal(kind: WorkKind) -> str:
    """Return what to do about an index in the store that is not that of its corpus."""
    return (
        "the index in the store is not that of this corpus; remove it with "
        f"python -m runner cache cache.kind='{kind.name}' cache.remove=true"
    )
