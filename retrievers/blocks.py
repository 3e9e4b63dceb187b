"""Search blocks of queries and join their rankings: a race searches a few queries at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus, Rankings, Retriever, create_empty_rankings
from retrievers.notes import QueryNote
from retrievers.search import find_part, search_block
from retrievers.store import Store
from retrievers.unknown import align

Block = tuple[NDArray[np.intp], Rankings]
"""The positions of queries, and their rankings."""


def search_in_blocks(
    retriever: Retriever, corpus: Corpus, queries: Sequence[str], k: int, store: Store, blocks: Sequence[Sequence[int]]
) -> Rankings:
    """Return the rankings of all queries, searched in blocks of positions; those in no block are the last block.

    A block is only searched if its rankings are not in the store.
    """
    # The key of a block contains its queries, so the blocks have to be those that a race has searched. If the rest were
    # searched together with them, their rankings would not be found, and the calls of a model would be paid twice.
    ranked = [
        (rows, search_block(retriever, corpus, [queries[row] for row in rows.tolist()], k, store))
        for rows in _list_rows(blocks, len(queries))
    ]
    return join_blocks(ranked, len(queries), k, len(corpus))


def find_in_blocks(
    part: Retriever, corpus: Corpus, queries: Sequence[str], k: int, store: Store, blocks: Sequence[Sequence[int]]
) -> Rankings | None:
    """Return the rankings of a part from a search in blocks, None if one is no longer stored; never search."""
    ranked = []
    for rows in _list_rows(blocks, len(queries)):
        rankings = find_part(part, corpus, [queries[row] for row in rows.tolist()], k, store)
        if rankings is None:
            return None
        ranked.append((rows, rankings))
    return join_blocks(ranked, len(queries), k, len(corpus))


def _list_rows(blocks: Sequence[Sequence[int]], queries: int) -> list[NDArray[np.intp]]:
    """Return the positions of the queries of each block that has any; those in no block are the last block."""
    searched = [np.array(block, dtype=np.intp) for block in blocks]
    rest = np.setdiff1d(np.arange(queries), np.concatenate([np.zeros(0, dtype=np.intp), *searched]))
    return [rows for rows in (*searched, rest) if len(rows)]


def join_blocks(blocks: Sequence[Block], queries: int, k: int, documents: int) -> Rankings:
    """Return the rankings of all queries over a corpus of n documents; queries that are in no block have no hits.

    Diagnostics that are counts are added, and shares (names with `recall`) and times (`_ms`) averaged over the queries.
    """
    depth = min(k, max((rankings.depth for _, rankings in blocks), default=0))
    joined, seconds = create_empty_rankings(queries, depth), np.full(queries, np.nan, dtype=np.float32)
    errors: dict[int, str] = {}
    notes: dict[int, QueryNote] = {}
    figures: dict[str, float] = {}
    searched = sum(len(rows) for rows, _ in blocks)
    aligned = align([rankings for _, rankings in blocks], documents)
    for (rows, _), rankings in zip(blocks, aligned, strict=True):
        joined.fill(rows, rankings)
        if rankings.seconds is not None:
            seconds[rows] = rankings.seconds
        errors |= {int(rows[row]): error for row, error in (rankings.errors or {}).items()}
        notes |= {int(rows[row]): note for row, note in rankings.notes.items()}
        for name, value in rankings.diagnostics.items():
            # By queries, not blocks: otherwise a last block of few queries would count as much as a full one.
            share = len(rows) / searched if "recall" in name or name.endswith("_ms") else 1.0
            figures[name] = figures.get(name, 0.0) + share * value
    return replace(
        joined,
        seconds=None if np.isnan(seconds).all() else seconds,
        errors=errors or None,
        diagnostics=figures,
        notes=notes,
        settled=all(rankings.settled for rankings in aligned),
        unknown_ids=aligned[0].unknown_ids if aligned else (),
        addresses=aligned[0].addresses if aligned else {},
    )
