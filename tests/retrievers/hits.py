"""The hits of rankings without the empty places, whose number is not part of a result."""

from __future__ import annotations

from retrievers.base import NOTHING, Rankings


def list_rows(rankings: Rankings) -> list[list[tuple[int, float]]]:
    """Return the positions and scores of the hits of each query, best first."""
    rows = zip(rankings.documents.tolist(), rankings.scores.tolist(), strict=True)
    return [[hit for hit in zip(*row, strict=True) if hit[0] != NOTHING] for row in rows]
