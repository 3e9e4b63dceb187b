"""Scores documents block by block, and keeps the best: see `retrievers.bm25`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from retrievers.compiled.best_documents import (
    BLOCK,
    LANE,
    NO_KEY,
    drop_failing,
    find_first_from,
    keep_best,
    unload,
)

Column = NDArray[Any]

_LEAST = np.float32(1e-30)
"""The value of a term of weight 0, so that its documents are hits."""


@njit(cache=True, nogil=True)
def fill_rankings(
    used: Column,
    numbers: Column,
    starts: Column,
    offsets: Column,
    postings: Column,
    counts: Column,
    idf: Column,
    norm: Column,
    shift: np.float32,
    lift: np.float32,
    tie_order: Column,
    by_place: Column,
    masks: Column,
    mask_of: Column,
    documents: Column,
    scores: Column,
) -> None:
    """Fill the rankings of queries, whose terms are `used[numbers]`, from each of `starts` to the next.

    The documents of a query are those of the row `mask_of[query]` of `masks`; -1, or no row: all.

    Block by block of documents, the postings of all terms are weighted once, and their gains are summed for each query.
    Candidates go onto the heap of the query as one integer, which orders by score and place as `retrievers.base.rank`.
    """
    n_documents, n_queries = len(tie_order), len(starts) - 1
    n_blocks = max(-(-n_documents // BLOCK), 1)
    block = max(-(-n_documents // (n_blocks * LANE)), 1) * LANE
    total, peaks = np.zeros(block, dtype=np.float32), np.empty(block // LANE, dtype=np.int32)
    heaps = np.full((n_queries, documents.shape[1]), NO_KEY, dtype=np.int64)
    begins, ends = offsets[used], offsets[used]
    gains, gains_at = np.empty(0, dtype=np.float32), np.zeros(len(used) + 1, dtype=np.int64)
    for first in range(0, n_documents, block):
        for i in range(len(used)):
            begins[i] = ends[i]
            ends[i] = find_first_from(first + block, postings, begins[i], offsets[used[i] + 1])
            gains_at[i + 1] = gains_at[i] + ends[i] - begins[i]
        if gains_at[-1] > len(gains):
            gains = np.empty(2 * gains_at[-1], dtype=np.float32)
        for i in range(len(used)):
            span = slice(begins[i], ends[i])
            _weigh(postings[span], counts[span], idf[used[i]], norm, shift, lift, gains[gains_at[i] : gains_at[i + 1]])
        for query in range(n_queries):
            matches = False
            for i in numbers[starts[query] : starts[query + 1]]:
                _add(postings[begins[i] : ends[i]], gains[gains_at[i] : gains_at[i + 1]], first, total)
                matches |= ends[i] > begins[i]
            if matches and len(mask_of) and mask_of[query] >= 0:
                drop_failing(masks[mask_of[query], first : first + block], total)
            if matches:
                keep_best(total.view(np.int32), peaks, first, tie_order, heaps[query])
    for query in range(n_queries):
        unload(heaps[query], by_place, documents[query], scores[query].view(np.int32))


@njit(cache=True, nogil=True, fastmath={"contract"})
def _weigh(
    postings: Column, counts: Column, idf: np.float32, norm: Column, shift: np.float32, lift: np.float32, gains: Column
) -> None:
    if counts.ndim == 1:
        for i in range(len(postings)):
            count, length = np.float32(counts[i]), norm[postings[i]]
            gains[i] = max(idf * ((count + shift * length) / (count + length) + lift), _LEAST)
    else:  # by field, where the norm is what a term in the field of the document counts
        for i in range(len(postings)):
            count = np.float32(0)
            for field in range(counts.shape[1]):
                count += np.float32(counts[i, field]) * norm[postings[i], field]
            gains[i] = max(idf * (count / (count + shift) + lift), _LEAST)


@njit(cache=True, nogil=True)
def _add(postings: Column, gains: Column, first: int, total: Column) -> None:
    for i in range(len(postings)):
        total[postings[i] - first] += gains[i]
