"""The parts of a dataset, whatever its format: queries, judgments, and what files contain before it is checked.

Nothing here depends on where a dataset is read from or how it is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus, QueryText
from retrievers.filters import Filter

if TYPE_CHECKING:
    from runner.datasets.overlap import SpanGold


class DatasetError(ValueError):
    """Files of a dataset are missing, malformed or contradictory. The message names the file, line and field."""


Qrel = tuple[str, str, int]
"""A judgment as in files: query id, document id, grade."""


EXPECTED_ANSWER = "expected_answer"
"""The key in a query's metadata for its expected answer in words."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries in columns. Results are also reported by `types` ("" for none).

    `metadata` are the other fields of each query, or empty. `clusters` are labels that variants of a query share (""
    for a query in a cluster of its own), or empty. `filters` are conditions on documents, or empty. Unless
    `has_texts`, the texts are unknown, and empty.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    types: Sequence[str]
    metadata: Sequence[Mapping[str, Any]] = ()
    clusters: Sequence[str] = ()
    filters: Sequence[Filter | None] = ()
    has_texts: bool = True

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def inputs(self) -> Sequence[QueryText]:
        """Return the texts as retrievers receive them, each with its query's id, type and filter."""
        filters = self.filters or [None] * len(self)
        columns = zip(self.texts, self.ids, self.types, filters, strict=True)
        return [QueryText(*query, is_known=self.has_texts) for query in columns]


@dataclass(frozen=True)
class GradeInterval:
    """A grade estimated from clicks, with how often the document was shown and clicked for the query.

    `attractiveness` is the probability of a click once the document is examined, with a 95 % interval from `low` to
    `high`; `grade`, `lowest` and `highest` are the corresponding grades.
    """

    query: str
    document: str
    impressions: int
    clicks: int
    attractiveness: float
    low: float
    high: float
    grade: int
    lowest: int
    highest: int


@dataclass(frozen=True, eq=False)
class Judgments:
    """Grades of (query, document) pairs, as positions, sorted by query, then document (three int32 columns).

    A grade above 0 is gold, 0 is judged irrelevant (a hard negative). A negative grade is neither: as in trec_eval, it
    is irrelevant for most measures, and not judged for Bpref and infAP. `unknown_documents` are ids that are judged but
    not in the corpus; their positions start at the size of the corpus. `by_search_type` are separate judgments for
    retrievers with the given names. `intervals` give the uncertainty of estimated grades. `unjudged` are the positions
    of queries about which nothing is known; other queries without gold are no-result queries.

    With `spans`, gold is passages of documents: the grades are those of what is searched, chunks or documents, and
    the spans that none of these covers are among the `unknown_documents`.
    """

    queries: NDArray[np.int32]
    documents: NDArray[np.int32]
    grades: NDArray[np.int32]
    unknown_documents: Sequence[str] = ()
    by_search_type: Mapping[str, Judgments] = field(default_factory=dict)
    intervals: Sequence[GradeInterval] = ()
    spans: SpanGold | None = None
    unjudged: Sequence[int] = ()

    @staticmethod
    def of(rows: Iterable[tuple[int, int, int]]) -> Judgments:
        """Return judgments of pairs, from rows of query, document and grade in any order."""
        columns = np.array(sorted(rows), dtype=np.int32).reshape(-1, 3).T
        queries, documents, grades = np.ascontiguousarray(columns)
        return Judgments(queries, documents, grades)

    def __len__(self) -> int:
        return len(self.grades)

    def list_rows(self) -> list[tuple[int, int, int]]:
        """Return the query, the document and the grade of each judgment."""
        return list(zip(self.queries.tolist(), self.documents.tolist(), self.grades.tolist(), strict=True))

    def golds(self, n_queries: int) -> NDArray[np.int64]:
        """Return the number of gold documents of each query (n,)."""
        return np.bincount(self.queries[self.grades > 0], minlength=n_queries)

    @cached_property
    def gold_order(self) -> NDArray[np.int64]:
        """Return the positions of the judgments that are gold, by query, highest grade first, then by document."""
        order = np.lexsort((self.documents, -self.grades, self.queries))
        gold: NDArray[np.int64] = order[self.grades[order] > 0]
        return gold

    def select(self, search_type: str) -> Judgments:
        """Return the judgments for the retriever with this name."""
        return self.by_search_type.get(search_type, self)

    @property
    def key_parts(self) -> Sequence[str]:
        """Return what scores depend on, as texts; judgments that follow from spans are represented by the spans."""
        if self.spans is not None:
            return "spans", self.spans.fingerprint
        columns = [
            f"{name}\0{column.astype('<i4').tobytes().hex()}"
            for name, own in [("", self), *sorted(self.by_search_type.items())]
            for column in (own.queries, own.documents, own.grades)
        ]
        return *self.unknown_documents, *columns


@dataclass(frozen=True)
class Raw:
    """The content of a format's files, before it is checked.

    `judged` are queries that are judged even if no qrel names them (no-result queries); qrels by search type replace
    `qrels` for the queries that they name. For messages, `qrels_name` says where the qrels come from, and
    `document_fields` are the fields of documents that the corpus does not have. `grade_intervals` are those of
    estimated qrels. `reading` says in one line how the questions were understood, and `unknown_cause` why gold is not
    among the documents.
    """

    corpus: Corpus
    queries: Queries
    qrels: Sequence[Qrel]
    judged: Iterable[str] = ()
    qrels_by_search_type: Mapping[str, Sequence[Qrel]] = field(default_factory=dict)
    qrels_name: str = "the judgments"
    document_fields: Iterable[str] = ()
    grade_intervals: Sequence[GradeInterval] = ()
    reading: str = ""
    unknown_cause: str = ""


def corpus_of(documents: Iterable[tuple[str, str, str] | tuple[str, str, str, Mapping[str, Any]]]) -> Corpus:
    """Return a corpus from rows of id, title, text and, in all rows or none, metadata."""
    ids: list[str] = []
    titles: list[str] = []
    texts: list[str] = []
    metadata: list[Mapping[str, Any]] = []
    for identifier, title, text, *more in documents:
        metadata += more
        ids.append(identifier)
        titles.append(title)
        texts.append(text)
    return Corpus(ids, texts, titles if any(titles) else (), metadata if any(metadata) else ())
