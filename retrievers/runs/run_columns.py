"""The hits of a file in columns, whatever its format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from retrievers.base import RetrieverError
from retrievers.pieces import build_id_table, number_parts

QUERY = ("query_id", "qid", "q_id", "query-id", "topic", "query")
DOCUMENT = ("document_id", "docno", "doc_id", "docid", "corpus-id", "item_id", "did", "pid")
SCORE, RANK = ("score", "sim"), ("rank",)
LISTS = ("documents", "results", "hits", "ranking", "docnos", "doc_ids", "document_ids")
SCORES = ("scores",)
"""The names of columns: ours and those of PyTerrier, ranx, BEIR and Pyserini; a list has all documents of a query."""


class DocumentIds(Protocol):
    """The document of each hit."""

    def number(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], Sequence[str]]:
        """Return the number of the document of some hits, int32, and the ids by number."""
        ...

    def reorder(self, rows: NDArray[np.int64]) -> DocumentIds:
        """Return the documents of these hits, in this order."""
        ...


@dataclass(frozen=True, eq=False)
class NumberedIds:
    """Ids that already have numbers."""

    numbers: NDArray[np.int32]
    ids: Sequence[str]

    def number(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], Sequence[str]]:
        """Return the number of the document of some hits, and the ids by number."""
        return self.numbers[rows], self.ids

    def reorder(self, rows: NDArray[np.int64]) -> NumberedIds:
        """Return the documents of these hits, in this order."""
        return NumberedIds(self.numbers[rows], self.ids)


@dataclass(frozen=True, eq=False)
class IdRanges:
    """Ids as pieces of a read-only text; they are numbered on demand, because most hits are beyond the depth."""

    text: NDArray[np.uint8]
    begins: NDArray[np.integer[Any]]
    lengths: NDArray[np.integer[Any]]

    def number(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], Sequence[str]]:
        """Return the number of the document of some hits, and the ids by number."""
        begins = self.begins[rows].astype(np.int64, copy=False)
        numbers, pieces = number_parts(self.text, begins, begins + self.lengths[rows])
        return numbers, build_id_table(pieces)

    def reorder(self, rows: NDArray[np.int64]) -> IdRanges:
        """Return the documents of these hits, in this order."""
        return IdRanges(self.text, self.begins[rows], self.lengths[rows])


class Columns(NamedTuple):
    """Hits in columns: the query number, score and document of each hit; and the ids of queries by number."""

    queries: NDArray[np.int32]
    scores: NDArray[np.float64] | NDArray[np.float32]
    query_ids: Sequence[str]
    documents: DocumentIds


class OrderedColumns(NamedTuple):
    """Hits by query, best first: those of query i are in rows `starts[i]` to `ends[i]` of the scores and documents.

    Rows outside of these ranges are unused. Scores are finite.
    """

    query_ids: Sequence[str]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    scores: NDArray[np.float32]
    documents: DocumentIds

    def list_rows(self) -> NDArray[np.int64]:
        """Return the rows that are used."""
        return list_ranges(self.starts, self.ends)


def list_ranges(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers from each begin to its end, one range after the other."""
    sizes = ends - begins
    numbers: NDArray[np.int64] = np.arange(sizes.sum()) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)
    return numbers


def collect_rows(rows: Iterable[tuple[str, str, float]]) -> Columns:
    """Return rows of query, document and score as columns."""
    queries: dict[str, int] = {}
    documents: dict[str, int] = {}
    codes = [
        (queries.setdefault(query, len(queries)), documents.setdefault(document, len(documents)), score)
        for query, document, score in rows
    ]
    query_numbers, numbers, scores = list(zip(*codes, strict=True)) or [(), (), ()]
    ids = NumberedIds(np.array(numbers, np.int32), list(documents))
    return Columns(np.array(query_numbers, np.int32), np.array(scores, np.float64), list(queries), ids)


def find_name(names: Sequence[str], there: Sequence[str], what: str, place: object) -> str:
    """Return the first of the names of a column that exists; raises `RetrieverError`."""
    for name in names:
        if name in there:
            return name
    raise RetrieverError(
        f"{place}: no column contains {what} ids; name the column {names[0]} or {names[1]}; the columns are "
        f"{', '.join(there) or 'none'}"
    )


def score_ranks(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the reciprocal of each rank, counted from 1; ranks count from 0 if any of them is 0."""
    first = ranks.min(initial=1)
    scores: NDArray[np.float64] = 1 / (ranks + float(first == 0))
    return scores
