"""Sums weighted postings block by block, and keeps the best documents: see `retrievers.vectors.sparse`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from retrievers.compiled.best_documents import find_first_from, finish_block, prepare_blocks, unload_heaps

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

    `masks` and `mask_of` are the filters of queries (`best_documents.finish_block`). The products are summed by
    ascending term, so that a score does not depend on other documents or queries.
    """
    n_documents, n_queries = len(tie_order), len(starts) - 1
    block, total, peaks, heaps = prepare_blocks(n_documents, n_queries, documents.shape[1])
    ends = offsets[terms]
    for first in range(0, n_documents, block):
        for query in range(n_queries):
            matches = False
            for i in range(starts[query], starts[query + 1]):
                begin = ends[i]
                ends[i] = find_first_from(first + block, postings, begin, offsets[terms[i] + 1])
                _add(postings[begin : ends[i]], values[begin : ends[i]], weights[i], first, total)
                matches |= ends[i] > begin
            if matches:
                finish_block(query, first, total, peaks, tie_order, masks, mask_of, heaps)
    unload_heaps(heaps, by_place, documents, scores)


@njit(cache=True, nogil=True)
def _add(postings: Column, values: Column, weight: np.float32, first: int, total: Column) -> None:
    for i in range(len(postings)):
        total[postings[i] - first] += weight * values[i]
