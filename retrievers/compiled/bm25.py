"""Scores documents block by block, and keeps the best: see `retrievers.lexical.bm25`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from retrievers.compiled.best_documents import find_first_from, finish_block, prepare_blocks, unload_heaps

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

    `masks` and `mask_of` are the filters of queries (`best_documents.finish_block`).

    Block by block of documents, the postings of all terms are weighted once, and their gains are summed for each query.
    Candidates go onto the heap of the query as one integer, which sorts by score and place like `retrievers.base.rank`.
    """
    n_documents, n_queries = len(tie_order), len(starts) - 1
    block, total, peaks, heaps = prepare_blocks(n_documents, n_queries, documents.shape[1])
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
        # All terms of a document are added in the order of the query, as it lies in one block. If threads or blocks
        # shared out terms instead, the rounding of its score, and so its rank among near ties, would depend on their
        # number.
        for query in range(n_queries):
            matches = False
            for i in numbers[starts[query] : starts[query + 1]]:
                _add(postings[begins[i] : ends[i]], gains[gains_at[i] : gains_at[i + 1]], first, total)
                matches |= ends[i] > begins[i]
            if matches:
                finish_block(query, first, total, peaks, tie_order, masks, mask_of, heaps)
    unload_heaps(heaps, by_place, documents, scores)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _weigh(
    postings: Column, counts: Column, idf: np.float32, norm: Column, shift: np.float32, lift: np.float32, gains: Column
) -> None:
    if counts.ndim == 1:
        for i in range(len(postings)):
            count, length = np.float32(counts[i]), norm[postings[i]]
            gains[i] = max(idf * ((count + shift * length) / (count + length) + lift), _LEAST)
    else:  # by field, where the norm is the weight of a count in the field of the document
        for i in range(len(postings)):
            count = np.float32(0)
            for field in range(counts.shape[1]):
                count += np.float32(counts[i, field]) * norm[postings[i], field]
            gains[i] = max(idf * (count / (count + shift) + lift), _LEAST)


@njit(cache=True, nogil=True)
def _add(postings: Column, gains: Column, first: int, total: Column) -> None:
    for i in range(len(postings)):
        total[postings[i] - first] += gains[i]
