"""Counts the terms of documents: see `retrievers.lexical.postings`."""

from __future__ import annotations

from typing import Any

from numba import njit
from numpy.typing import NDArray

Column = NDArray[Any]


@njit(cache=True, nogil=True)
def tally_chunk(first: int, lengths: Column, terms: Column, last: Column, within: Column, frequencies: Column) -> int:
    """Add to the document frequencies and return the largest count.

    `last` is the last document with each term, and `within` the count there so far.
    """
    largest, begin = 0, 0
    for document in range(len(lengths)):
        for term in terms[begin : begin + lengths[document]]:
            if last[term] != first + document:
                last[term] = first + document
                within[term] = 0
                frequencies[term] += 1
            within[term] += 1
            largest = max(largest, within[term])
        begin += lengths[document]
    return largest


@njit(cache=True, nogil=True)
def fill_chunk(
    first: int, lengths: Column, terms: Column, last: Column, free: Column, documents: Column, counts: Column
) -> None:
    """Write each (term, document) pair once; `free` is the next free entry of each term, `last` its last document."""
    begin = 0
    for document in range(len(lengths)):
        for term in terms[begin : begin + lengths[document]]:
            if last[term] == first + document:
                counts[free[term] - 1] += 1
            else:
                last[term] = first + document
                documents[free[term]] = first + document
                counts[free[term]] = 1
                free[term] += 1
        begin += lengths[document]
