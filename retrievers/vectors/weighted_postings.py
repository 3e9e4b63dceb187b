"""Postings of the weights of terms, for the search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.lexical.postings import is_ascending
from retrievers.store import Arrays
from retrievers.vectors.term_weights import DamagedWeightsError, TermWeights

Column = NDArray[Any]


@dataclass(frozen=True, eq=False)
class WeightedPostings:
    """The documents of each term with its weights: for term t, the entries `offsets[t]` to `offsets[t + 1]`.

    `documents` (int32) ascend for each term; `weights` are float32.
    """

    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    weights: NDArray[np.float32]


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
