"""Sums weighted postings block by block, and keeps the best documents: see `retrievers.sparse`."""

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


@njit(cache=True, nogil=True)
def fill_rankings(
    terms: Column,
    weights: Column,
    starts: Column,
    offsets: Column,
    postings: Column,
    values: Column,
    tie_order: Column,
    by_place: Column,
    masks: Column,
    mask_of: Column,
    documents: Column,
    scores: Column,
) -> None:
    """Fill the rankings of queries, whose weighted terms stand from each of `starts` to the next.

    The documents of a query are those of the row `mask_of[query]` of `masks`; -1, or no row: all. The products are
    summed by ascending term, so that a score does not depend on other documents or queries.
    """
    n_documents, n_queries = len(tie_order), len(starts) - 1
    n_blocks = max(-(-n_documents // BLOCK), 1)
    block = max(-(-n_documents // (n_blocks * LANE)), 1) * LANE
    total, peaks = np.zeros(block, dtype=np.float32), np.empty(block // LANE, dtype=np.int32)
    heaps = np.full((n_queries, documents.shape[1]), NO_KEY, dtype=np.int64)
    ends = offsets[terms]
    for first in range(0, n_documents, block):
        for query in range(n_queries):
            matches = False
            for i in range(starts[query], starts[query + 1]):
                begin = ends[i]
                ends[i] = find_first_from(first + block, postings, begin, offsets[terms[i] + 1])
                _add(postings[begin : ends[i]], values[begin : ends[i]], weights[i], first, total)
                matches |= ends[i] > begin
            if matches and len(mask_of) and mask_of[query] >= 0:
                drop_failing(masks[mask_of[query], first : first + block], total)
            if matches:
                keep_best(total.view(np.int32), peaks, first, tie_order, heaps[query])
    for query in range(n_queries):
        unload(heaps[query], by_place, documents[query], scores[query].view(np.int32))


@njit(cache=True, nogil=True)
def _add(postings: Column, values: Column, weight: np.float32, first: int, total: Column) -> None:
    for i in range(len(postings)):
        total[postings[i] - first] += weight * values[i]
