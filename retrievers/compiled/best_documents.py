"""The best documents of each query, kept on heaps while a corpus is scored block by block.

A score is a sum of positive 32-bit floats, whose bits sort in the same order. A key orders documents by score, then by
place, as `retrievers.base.rank` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from retrievers.compiled.layouts import LANE

Column = NDArray[Any]

_NOUGHT = int(np.float32(1e-20).view(np.int32))
"""The bits of the largest sum whose score is 0."""

BLOCK = 1 << 15
"""How many documents are scored at a time, in the processor's cache."""

NO_KEY = np.iinfo(np.int64).max
"""A place of a heap without a document."""


@njit(cache=True, nogil=True)
def find_first_from(document: int, postings: Column, begin: int, end: int) -> int:
    """Return the first posting from `begin` of this or a later document, by galloping search."""
    step = 1
    while begin + step < end and postings[begin + step] < document:
        begin, step = begin + step, 2 * step
    end = min(begin + step, end)
    while begin < end:
        middle = (begin + end) // 2
        if postings[middle] < document:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(cache=True, nogil=True)
def prepare_blocks(n_documents: int, n_queries: int, depth: int) -> tuple[int, Column, Column, Column]:
    """Return the size of a block of documents, the totals and peaks of one, and a heap for each query, all empty.

    For deep rankings, lanes are shorter: with fewer lanes than places, all documents of a first block would be offered.
    """
    n_blocks = max(-(-n_documents // BLOCK), 1)
    block = max(-(-n_documents // (n_blocks * LANE)), 1) * LANE
    lane = LANE
    while lane > 4 and block // lane < 2 * depth:
        lane //= 2
    total, peaks = np.zeros(block, dtype=np.float32), np.empty(block // lane, dtype=np.int32)
    return block, total, peaks, np.full((n_queries, depth), NO_KEY, dtype=np.int64)


@njit(cache=True, nogil=True)
def finish_block(
    query: int,
    first: int,
    total: Column,
    peaks: Column,
    tie_order: Column,
    masks: Column,
    mask_of: Column,
    heaps: Column,
) -> None:
    """Offer the best documents that pass the filter, in the block that starts at `first`, to the heap of a query.

    The documents of a query are those of the row `mask_of[query]` of `masks`; -1, or no row: all.
    """
    if len(mask_of) and mask_of[query] >= 0:
        _drop_failing(masks[mask_of[query], first : first + len(total)], total)
    _keep_best(total.view(np.int32), peaks, first, tie_order, heaps[query])


@njit(cache=True, nogil=True)
def unload_heaps(heaps: Column, by_place: Column, documents: Column, scores: Column) -> None:
    """Write the documents and the scores of each query."""
    for query in range(len(heaps)):
        _unload(heaps[query], by_place, documents[query], scores[query].view(np.int32))


@njit(cache=True, nogil=True)
def fill_peaks(scores: Column, peaks: Column) -> None:
    """Write the highest score of each lane.

    Of n lanes, lane i has the scores i, i + n, ..., so that the loops compile to vector instructions.
    """
    n_lanes = len(peaks)
    peaks[:] = 0
    for number in range(len(scores) // n_lanes):
        row = scores[number * n_lanes : (number + 1) * n_lanes]
        for lane in range(n_lanes):
            peaks[lane] = max(peaks[lane], row[lane])


@njit(cache=True, nogil=True)
def find_least(scores: Column, heap: Column) -> np.int64:
    """Return the score that fills the last place of a heap to which the scores are offered, at least 1."""
    for score in scores:
        offer(score, np.int32(0), heap)
    return max(read_score(heap[0]), np.int64(1))


@njit(cache=True, nogil=True)
def offer(score: np.int32, place: np.int32, heap: Column) -> None:
    """Put a document onto a heap if it is better than the worst there; `score` is the bits of a positive float."""
    _offer(_key(score, place), heap)


@njit(cache=True, nogil=True)
def read_score(key: np.int64) -> np.int64:
    """Return the bits of the score of a key; those of a free place are below 0."""
    return ~(key >> 32)


@njit(cache=True, nogil=True)
def _drop_failing(mask: Column, total: Column) -> None:
    """Set the totals of documents outside a mask to 0."""
    for at in range(len(mask)):
        if not mask[at]:
            total[at] = 0


@njit(cache=True, nogil=True)
def _keep_best(total: Column, peaks: Column, first: int, tie_order: Column, heap: Column) -> None:
    """Offer the best documents of a block to a heap, and reset the totals to 0.

    Totals are the bits of positive floats, which sort in the same order.
    """
    n_lanes = len(peaks)
    fill_peaks(total, peaks)
    # `least` is a score that the last document of the ranking has at least: as many lanes as the ranking has places
    # contain a document that reaches it. Documents that equal it have to be offered too (>=, not >), as their id may
    # rank them first. Otherwise, which of two equal documents takes the last place, and so Recall@k, would depend on
    # how the corpus is split into blocks.
    least = np.int64(1)
    if heap[0] == NO_KEY:
        least = find_least(peaks, heap.copy())
    for lane in range(n_lanes):
        if peaks[lane] >= least:
            for at in range(lane, len(total), n_lanes):
                if total[at] >= least:
                    offer(total[at], tie_order[first + at], heap)
                    least = max(read_score(heap[0]), least)
    total[:] = 0


@njit(cache=True, nogil=True)
def _key(score: np.int32, place: np.int32) -> np.int64:
    """Return an integer key; smaller is better. Sums of weight-0 terms have score 0."""
    return np.int64(~score if score > _NOUGHT else -1) << 32 | np.int64(place)


@njit(cache=True, nogil=True)
def _offer(key: np.int64, heap: Column) -> None:
    """Replace the worst key of a heap, its first, if the new key is better."""
    at, child = 0, 1
    if key >= heap[0]:
        return
    while child < len(heap):
        if child + 1 < len(heap) and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= key:
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at] = key


@njit(cache=True, nogil=True)
def _unload(heap: Column, by_place: Column, documents: Column, scores: Column) -> None:
    """Write the documents of a heap and the bits of their scores, worst first."""
    for place in range(len(heap) - 1, -1, -1):
        key, last = heap[0], heap[place]
        if key != NO_KEY:
            documents[place], scores[place] = by_place[key & 0xFFFFFFFF], read_score(key)
        heap[0] = NO_KEY
        _offer(last, heap[: max(place, 1)])
