"""Postings of the weights of terms, for the search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING
from retrievers.compiled.layouts import BLOCK_SIZE, LANE, DocumentBlocks
from retrievers.lexical.postings import is_ascending
from retrievers.store import Arrays
from retrievers.vectors.term_weights import DamagedWeightsError, TermWeights

Column = NDArray[Any]

_FREQUENT = 1 / 64
"""The share of documents from which the bounds of a term are read faster than its postings."""


@dataclass(frozen=True, eq=False)
class WeightedPostings:
    """The documents of each term with its weights: for term t, the entries `offsets[t]` to `offsets[t + 1]`.

    `documents` (int32) ascend for each term; `weights` are float32.
    """

    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    weights: NDArray[np.float32]

    def build_blocks(self, n_documents: int) -> DocumentBlocks:
        """Return the documents in blocks, with bounds for the search."""
        from retrievers.compiled.block_maxima import fill_blocks

        frequencies, n_terms = np.diff(self.offsets), len(self.offsets) - 1
        frequent, known = frequencies >= _FREQUENT * n_documents, frequencies > 0
        largest = np.zeros(n_terms, dtype=np.float32)
        largest[known] = np.maximum.reduceat(self.weights, self.offsets[:-1][known]) if known.any() else 0
        blocks = DocumentBlocks(
            rows=np.where(frequent, np.cumsum(frequent) - 1, NOTHING).astype(np.int32),
            units=np.nextafter(largest * np.float32((1 + 2**-20) / 255), np.float32(np.inf)),
            maxima=np.zeros((frequent.sum(), -(-n_documents // (BLOCK_SIZE * LANE)) * LANE), dtype=np.uint8),
            starts=np.zeros(n_documents + 1, dtype=np.int64),
            terms=np.empty(len(self.documents), dtype=np.min_scalar_type(n_terms)),
            values=np.empty(len(self.documents), dtype=np.float32),
        )
        fill_blocks(self.offsets, self.documents, self.weights, blocks)
        return blocks


def build_postings(documents: TermWeights) -> Arrays:
    """Return the columns of the postings of documents."""
    from scipy.sparse import csr_matrix

    shape = (len(documents.offsets) - 1, documents.n_terms)
    by_term = csr_matrix((documents.weights, documents.terms, documents.offsets), shape=shape).tocsc()
    columns: dict[str, Column] = {
        "offsets": by_term.indptr.astype(np.int64),
        "documents": by_term.indices.astype(np.int32),
        "weights": by_term.data,
    }
    for column in columns.values():
        column.flags.writeable = False  # like columns from disk, so that code is compiled once
    return columns


def read_postings(columns: Arrays, n_documents: int) -> WeightedPostings:
    """Return stored columns as postings; raises `DamagedWeightsError`."""
    offsets, documents, weights = (columns[name] for name in ("offsets", "documents", "weights"))
    fits = len(offsets) and offsets[0] == 0 and offsets[-1] == len(documents) == len(weights)
    if not fits or (np.diff(offsets) < 0).any() or not is_ascending(offsets, documents, n_documents):
        raise DamagedWeightsError("the stored postings of term weights are damaged")
    return WeightedPostings(offsets, documents, weights)
