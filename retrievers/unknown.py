"""Unknown hits: documents that a search returned and the corpus lacks, kept at their rank.

Rankings identify documents by position. After the n positions of a corpus, position n + i is
`Rankings.unknown_ids[i]`. This module breaks ties among such positions and aligns them across rankings.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Corpus, Rankings


def resolve_id(corpus: Corpus, unknown_ids: Sequence[str], position: int) -> str:
    """Return the id of the document at a position in rankings."""
    return corpus.ids[position] if position < len(corpus) else unknown_ids[position - len(corpus)]


def tie_order(corpus: Corpus, unknown_ids: Sequence[str]) -> NDArray[np.int32]:
    """Return the tie-break rank of the corpus's documents, then of unknown ones, int32 of shape (n + m,).

    Lower ranks first; equal scores are ordered by id, descending, whether the corpus has the document or not.
    """
    if not unknown_ids:
        return corpus.tie_order
    ascending = np.empty(len(corpus), dtype=np.int32)
    ascending[len(corpus) - 1 - corpus.tie_order] = np.arange(len(corpus), dtype=np.int32)
    above = np.array(  # how many documents of the corpus come before each unknown one
        [len(corpus) - bisect_left(ascending, name, key=corpus.ids.__getitem__) for name in unknown_ids], dtype=np.int32
    )
    among = np.empty(len(unknown_ids), dtype=np.int32)
    descending = sorted(range(len(unknown_ids)), key=unknown_ids.__getitem__, reverse=True)
    among[descending] = np.arange(len(unknown_ids), dtype=np.int32)
    shifted = corpus.tie_order + np.searchsorted(np.sort(above), corpus.tie_order, side="right")
    return np.concatenate((shifted, above + among)).astype(np.int32)


def renumber(rankings: Rankings, unknown_ids: Sequence[str], n: int) -> Rankings:
    """Return rankings over a corpus of n documents whose `unknown_ids` begin with the given ones."""
    if not rankings.unknown_ids and not unknown_ids:
        return rankings
    position = {name: n + place for place, name in enumerate(dict.fromkeys((*unknown_ids, *rankings.unknown_ids)))}
    moved = np.array([position[name] for name in rankings.unknown_ids], dtype=np.int32)
    documents = rankings.documents.copy()
    outside = documents >= n
    documents[outside] = moved[documents[outside] - n]
    return replace(rankings, documents=documents, unknown_ids=tuple(position))


def align(rankings: Sequence[Rankings], n: int) -> list[Rankings]:
    """Return rankings over a corpus of n documents in which each position is the same document in all of them."""
    if not any(part.unknown_ids for part in rankings):
        return list(rankings)
    union = tuple(dict.fromkeys(name for part in rankings for name in part.unknown_ids))
    return [renumber(part, union, n) for part in rankings]


def keep_ranks(first: Rankings, ranked: Rankings, n: int) -> Rankings:
    """Return `ranked`, an order of the known hits of `first`, with the unknown hits of `first` at their rank.

    Known hits take the other ranks in their new order. An unknown hit has the score of the hit above it, or at the top
    that of the first known hit, so that scores never rise. Queries without known hits keep their scores.
    """
    documents, scores = ranked.documents.copy(), ranked.scores.copy()
    for query in np.flatnonzero((first.documents >= n).any(axis=1)).tolist():
        before = first.documents[query]
        length = int(np.count_nonzero(before != NOTHING))
        known = np.flatnonzero(before[:length] < n)
        row, values = before[:length].copy(), first.scores[query, :length].copy()
        if len(known):
            row[known] = ranked.documents[query, : len(known)]
            nearest = np.maximum(np.searchsorted(known, np.arange(length), side="right") - 1, 0)
            values = ranked.scores[query, nearest]
        documents[query, :length], scores[query, :length] = row, values
    return replace(ranked, documents=documents, scores=scores, unknown_ids=first.unknown_ids)
