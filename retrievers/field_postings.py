"""Term counts by field: the fields of a document are counted as documents of their own, then joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from retrievers.base import Corpus
from retrievers.store import Arrays

Column = NDArray[Any]


@dataclass(frozen=True, eq=False)
class FieldContents:
    """The fields of a corpus, `title` or `text`, as contents: those of the first document, of the second, and so on."""

    corpus: Corpus
    fields: Sequence[str]

    def contents(self) -> Iterator[str]:
        """Yield each field of each document."""
        columns: Mapping[str, Sequence[str]] = {"title": self.corpus.titles, "text": self.corpus.texts}
        for position in range(len(self.corpus)):
            for name in self.fields:
                yield columns[name][position] if columns[name] else ""


def join_fields(columns: Arrays, n_fields: int) -> Arrays:
    """Return the postings of documents from those of their fields, with counts and lengths by field."""
    joined = _join(columns["offsets"], columns["documents"], columns["counts"], n_fields)
    lengths = columns["lengths"].reshape(-1, n_fields)
    kept = dict(columns, lengths=lengths, **dict(zip(("offsets", "documents", "counts"), joined, strict=True)))
    for column in kept.values():
        column.flags.writeable = False
    return kept


@njit(cache=True, nogil=True)
def _join(offsets: Column, documents: Column, counts: Column, n_fields: int) -> tuple[Column, Column, Column]:
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
