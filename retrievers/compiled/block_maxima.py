"""Scores the documents of the blocks that can have hits, and keeps the best: see `retrievers.vectors.sparse`.

The bound of a block is the sum of the largest weights of its terms, times those of the query. A block whose bound is
below the last score of a full heap has no hit. Mallia, Suel and Tonellotto (2024), Faster learned sparse retrieval with
block-max pruning. Here, a block has so few documents that bounds are close without sorting documents by similarity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from retrievers.compiled.best_documents import NO_KEY, fill_peaks, find_least, offer, read_score, unload_heaps
from retrievers.compiled.layouts import BLOCK_SIZE, LANE, DocumentBlocks

Column = NDArray[Any]

_FIRST = 16
"""How many blocks are scored first beyond one for each hit: those with the highest bounds."""

_SLACK = np.float32(2**-22)
"""More than the relative rounding error of one product and one sum."""


@njit(cache=True, nogil=True)
def fill_rankings_by_blocks(
    terms: Column,
    weights: Column,
    starts: Column,
    offsets: Column,
    postings: Column,
    values: Column,
    blocks: DocumentBlocks,
    tie_order: Column,
    by_place: Column,
    documents: Column,
    scores: Column,
) -> None:
    """Fill the rankings of queries, whose weighted terms stand from each of `starts` to the next.

    The products are summed by ascending term, as in `sparse.fill_rankings`, so that the scores are equal.
    """
    n_blocks = blocks.maxima.shape[1]
    bounds, peaks = np.empty(n_blocks, dtype=np.float32), np.empty(n_blocks // LANE, dtype=np.int32)
    in_query, total = np.zeros(len(offsets) - 1, dtype=np.float32), np.empty(BLOCK_SIZE, dtype=np.float32)
    heaps = np.full((len(starts) - 1, documents.shape[1]), NO_KEY, dtype=np.int64)
    for query in range(len(heaps)):
        span, heap = slice(starts[query], starts[query + 1]), heaps[query]
        in_query[terms[span]] = weights[span]
        _bound(terms[span], weights[span], offsets, postings, values, blocks, bounds)
        of_blocks = bounds.view(np.int32)
        fill_peaks(of_blocks, peaks)
        first = find_least(peaks, np.full(len(heap) + _FIRST, NO_KEY, dtype=np.int64))
        for bar in (first, np.int64(1)):  # the best blocks, then those that can still matter
            for lane in range(len(peaks)):
                if peaks[lane] >= max(bar, read_score(heap[0])):
                    for block in range(lane, n_blocks, len(peaks)):
                        if of_blocks[block] >= max(bar, read_score(heap[0])):
                            _score_block(block * BLOCK_SIZE, in_query, blocks, total, tie_order, heap)
                            of_blocks[block] = 0
        in_query[terms[span]] = 0
    unload_heaps(heaps, by_place, documents, scores)


@njit(cache=True, nogil=True)
def fill_blocks(offsets: Column, postings: Column, values: Column, blocks: DocumentBlocks) -> None:
    """Fill in the largest values of frequent terms, and the terms and values of each document, from postings."""
    for document in postings:
        blocks.starts[document + 1] += 1
    blocks.starts[:] = np.cumsum(blocks.starts)
    free = blocks.starts.copy()
    for term in range(len(offsets) - 1):
        for i in range(offsets[term], offsets[term + 1]):
            at = free[postings[i]]
            blocks.terms[at], blocks.values[at] = term, values[i]
            free[postings[i]] += 1
        if blocks.rows[term] >= 0:
            row = blocks.maxima[blocks.rows[term]]
            for i in range(offsets[term], offsets[term + 1]):
                level = np.uint8(np.ceil(values[i] / blocks.units[term]))
                row[postings[i] // BLOCK_SIZE] = max(row[postings[i] // BLOCK_SIZE], level)


@njit(cache=True, nogil=True)
def _bound(
    terms: Column,
    weights: Column,
    offsets: Column,
    postings: Column,
    values: Column,
    blocks: DocumentBlocks,
    bounds: Column,
) -> None:
    """Write the bound of each block for a query: despite rounding, at least the score of each of its documents."""
    bounds[:] = 0
    slack = np.float32(1 + (2 * len(terms) + 8) * _SLACK)  # a rare term is added for each of its postings
    for i in range(len(terms)):
        row, span = blocks.rows[terms[i]], slice(offsets[terms[i]], offsets[terms[i] + 1])
        if row >= 0:
            _add_row(blocks.maxima[row], weights[i] * slack * blocks.units[terms[i]], bounds)
        else:
            _add_postings(postings[span], values[span], weights[i] * slack, bounds)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_row(row: Column, weight: np.float32, bounds: Column) -> None:
    for block in range(len(bounds)):
        bounds[block] += weight * np.float32(row[block])


@njit(cache=True, nogil=True)
def _add_postings(postings: Column, values: Column, weight: np.float32, bounds: Column) -> None:
    for i in range(len(postings)):
        bounds[postings[i] // BLOCK_SIZE] += weight * values[i]


@njit(cache=True, nogil=True)
def _score_block(
    first: int, in_query: Column, blocks: DocumentBlocks, total: Column, tie_order: Column, heap: Column
) -> None:
    """Offer the documents of a block to a heap; `in_query` has the weight of each term in the query."""
    for document in range(first, min(first + BLOCK_SIZE, len(tie_order))):
        score = np.float32(0)
        for i in range(blocks.starts[document], blocks.starts[document + 1]):
            score += in_query[blocks.terms[i]] * blocks.values[i]
        total[0] = score
        if score > 0:
            offer(total.view(np.int32)[0], tie_order[document], heap)
