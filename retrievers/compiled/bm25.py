"""Scores documents block by block, and keeps the best: see `retrievers.bm25`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Column = NDArray[Any]

_LEAST = np.float32(1e-30)
"""The value of a term of weight 0, so that its documents are hits."""

_NOUGHT = int(np.float32(1e-20).view(np.int32))
"""The bits of the largest sum of such values, whose score is 0."""

_BLOCK, _LANE = 1 << 15, 64
"""How many documents are scored at a time, in the processor's cache, and how many are checked together."""

_NO_KEY = np.iinfo(np.int64).max


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
    n_blocks = max(-(-n_documents // _BLOCK), 1)
    block = max(-(-n_documents // (n_blocks * _LANE)), 1) * _LANE
    total, peaks = np.zeros(block, dtype=np.float32), np.empty(block // _LANE, dtype=np.int32)
    heaps = np.full((n_queries, documents.shape[1]), _NO_KEY, dtype=np.int64)
    begins, ends = offsets[used], offsets[used]
    gains, gains_at = np.empty(0, dtype=np.float32), np.zeros(len(used) + 1, dtype=np.int64)
    for first in range(0, n_documents, block):
        for i in range(len(used)):
            begins[i] = ends[i]
            ends[i] = _first_from(first + block, postings, begins[i], offsets[used[i] + 1])
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
                _drop_failing(masks[mask_of[query], first : first + block], total)
            if matches:
                _keep_best(total.view(np.int32), peaks, first, tie_order, heaps[query])
    for query in range(n_queries):
        _unload(heaps[query], by_place, documents[query], scores[query].view(np.int32))


@njit(cache=True, nogil=True)
def _first_from(document: int, postings: Column, begin: int, end: int) -> int:
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


@njit(cache=True, nogil=True)
def _drop_failing(mask: Column, total: Column) -> None:
    for at in range(len(mask)):
        if not mask[at]:
            total[at] = 0


@njit(cache=True, nogil=True)
def _keep_best(total: Column, peaks: Column, first: int, tie_order: Column, heap: Column) -> None:
    """Offer the best documents of a block to a heap, and reset the totals to 0.

    Totals are the bits of positive floats, which sort in the same order.
    """
    for begin in range(0, len(total), _LANE):  # compiles to vector instructions
        peak = np.int32(0)
        for at in range(begin, begin + _LANE):
            peak = max(peak, total[at])
        peaks[begin // _LANE] = peak
    least = np.int32(1)
    if heap[0] == _NO_KEY:  # enough lanes have a document that reaches this bound
        bound = heap.copy()
        for peak in peaks:
            _offer(_key(peak, np.int32(0)), bound)
        least = max(_score(bound[0]), least)
    for lane, peak in enumerate(peaks):
        if peak >= least:
            for at in range(lane * _LANE, (lane + 1) * _LANE):
                if total[at] >= least:
                    _offer(_key(total[at], tie_order[first + at]), heap)
                    least = max(_score(heap[0]), least)
    total[:] = 0


@njit(cache=True, nogil=True)
def _key(score: np.int32, place: np.int32) -> np.int64:
    """Return an integer key; smaller is better. Sums of weight-0 terms have score 0."""
    return np.int64(~score if score > _NOUGHT else -1) << 32 | np.int64(place)


@njit(cache=True, nogil=True)
def _score(key: np.int64) -> np.int64:
    return ~(key >> 32)


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
        if key != _NO_KEY:
            documents[place], scores[place] = by_place[key & 0xFFFFFFFF], _score(key)
        heap[0] = _NO_KEY
        _offer(last, heap[: max(place, 1)])
