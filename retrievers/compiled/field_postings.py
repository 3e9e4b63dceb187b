"""Joins the term counts of fields: see `retrievers.lexical.field_postings`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Column = NDArray[Any]


@njit(cache=True, nogil=True)
def join(offsets: Column, documents: Column, counts: Column, n_fields: int) -> tuple[Column, Column, Column]:
    """Return offsets, documents and counts, of shape (entries, fields), with one entry for each term and document."""
    starts = np.zeros(len(offsets), dtype=np.int64)
    for term in range(len(offsets) - 1):
        starts[term + 1], last = starts[term], -1
        for entry in range(offsets[term], offsets[term + 1]):
            document = documents[entry] // n_fields
            starts[term + 1] += document != last
            last = document
    joined = np.empty(starts[-1], dtype=np.int32)
    by_field = np.zeros((starts[-1], n_fields), dtype=counts.dtype)
    for term in range(len(offsets) - 1):
        at, last = starts[term] - 1, -1
        for entry in range(offsets[term], offsets[term + 1]):
            document = documents[entry] // n_fields
            at += document != last
            last = document
            joined[at] = document
            by_field[at, documents[entry] % n_fields] = counts[entry]
    return starts, joined, by_field
