"""Rankings as arrays of a store, and the check of those that a store returns, which others may have written."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from retrievers.notes import QueryNote
from retrievers.store import Arrays, check_rows

_DIAGNOSTIC = "diagnostic."


class UnkeptRankings(dict[str, NDArray[Any]]):
    """Rankings in the place of arrays; a store returns them as they are, and does not keep them."""

    may_keep = False

    def __init__(self, rankings: Rankings) -> None:
        super().__init__()
        self.rankings = rankings


def pack_rankings(rankings: Rankings) -> Arrays:
    """Return rankings without errors as arrays for a store."""
    kept = {"documents": rankings.documents, "scores": rankings.scores}
    if rankings.seconds is not None:
        kept["seconds"] = rankings.seconds
    notes = {query: note.values for query, note in rankings.notes.items()}
    for name, value in (("notes", notes), ("unknown_ids", list(rankings.unknown_ids))):
        if value:
            kept[name] = np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)
    return kept | {f"{_DIAGNOSTIC}{name}": np.array(value) for name, value in rankings.diagnostics.items()}


def unpack_rankings(kept: Arrays) -> Rankings:
    """Return the rankings that `pack_rankings` packed, or those that are not kept."""
    if isinstance(kept, UnkeptRankings):
        return kept.rankings
    diagnostics = {n.removeprefix(_DIAGNOSTIC): float(value) for n, value in kept.items() if n.startswith(_DIAGNOSTIC)}
    notes = json.loads(kept["notes"].tobytes()) if "notes" in kept else {}
    notes = {int(query): QueryNote(values) for query, values in notes.items()}
    unknown = tuple(json.loads(kept["unknown_ids"].tobytes())) if "unknown_ids" in kept else ()
    seconds = kept.get("seconds")
    return Rankings(
        kept["documents"], kept["scores"], seconds, diagnostics=diagnostics, notes=notes, unknown_ids=unknown
    )


def check_rankings(queries: int, documents: int, kept: Arrays) -> None:
    """Raise an error unless arrays are rankings of this many queries over this many documents.

    The error is a `ValueError`, `LookupError`, `TypeError` or `AttributeError`.
    """
    rankings = unpack_rankings(kept)
    hits, scores = rankings.documents, rankings.scores
    typed = hits.ndim == 2 and hits.dtype == np.int32 and scores.dtype == np.float32
    if not typed or hits.shape != scores.shape:
        raise ValueError(f"the documents are {hits.dtype}{hits.shape} and the scores {scores.dtype}{scores.shape}")
    check_rows(queries, ("documents", *(["seconds"] if "seconds" in kept else [])), kept)
    last = documents + len(rankings.unknown_ids) - 1
    if hits.min(initial=NOTHING) < NOTHING or hits.max(initial=NOTHING) > last:
        raise ValueError(f"the position of a document is not from 0 to {last:,}")
    if np.isnan(scores).any():
        raise ValueError("a score is NaN")
    ordered = np.sort(hits, axis=1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NOTHING)).any():
        raise ValueError("a document is ranked twice for a query")
