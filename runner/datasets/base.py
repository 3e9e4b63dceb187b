"""The parts of a dataset, whatever its format: a corpus, queries and judgments.

Nothing here depends on where a dataset is read from or how it is checked.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus, QueryText
from retrievers.filters import Filter
from retrievers.store import fingerprint
from runner.datasets.chunking import DOCUMENT, Chunking
from runner.datasets.document_hashes import DocumentHashes, hash_documents
from runner.datasets.own_documents import ExcludeSelf, own_documents

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


GIVEN = ".".join(("runner", "datasets", "given"))
"""The module that reads the types below; joined to keep its code, which affects no result, out of cache keys."""

Records: TypeAlias = Iterable[Mapping[str, Any]]
"""Rows with named columns, such as records; a data frame works too."""

GivenDocuments: TypeAlias = Corpus | Mapping[str, str | Mapping[str, str]] | Records
GivenQueries: TypeAlias = Queries | Mapping[str, str] | Records
GivenQrels: TypeAlias = Mapping[str, Mapping[str, int] | Iterable[str]] | Iterable[tuple[str, str, int]] | Records


@dataclass(frozen=True, eq=False)
class Judgments:
    """Grades of (query, document) pairs, as positions, sorted by query, then document (three int32 columns).

    A grade above 0 is gold, 0 is judged irrelevant (a hard negative). A negative grade is neither: as in trec_eval, it
    is irrelevant for most measures, and not judged for Bpref and infAP. Judged documents that are not in the corpus
    (kept if requested) have positions from the size of the corpus upwards.
    """

    queries: NDArray[np.int32]
    documents: NDArray[np.int32]
    grades: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.grades)

    def golds(self, n_queries: int) -> NDArray[np.int64]:
        """Return the number of gold documents of each query (n,)."""
        return np.bincount(self.queries[self.grades > 0], minlength=n_queries)


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
class Dataset:
    """A corpus, its judged queries, and their judgments.

    `judgments_by_search_type` are separate judgments for retrievers with the given names; `unknown_documents` are ids
    that are judged but not in the corpus. If the corpus consists of chunks, `whole` has the documents: judgments refer
    to these, and a document has the rank of its first chunk. Rankings leave out documents that are the query itself;
    `exclude_self` says how these are recognised. `overrides` are the settings with which the command line loads the
    dataset, empty for a dataset that exists only in Python. `grade_intervals` give the uncertainty of estimated grades.

    With `spans`, gold is passages of documents: `judgments` then refer to what is searched, chunks or documents, and
    the spans that no chunk covers are among the `unknown_documents`.
    """

    name: str
    split: str
    corpus: Corpus
    queries: Queries
    judgments: Judgments
    judgments_by_search_type: Mapping[str, Judgments] = field(default_factory=dict)
    unknown_documents: Sequence[str] = ()
    whole: Corpus | None = None
    exclude_self: ExcludeSelf = "auto"
    overrides: Sequence[str] = ()
    grade_intervals: Sequence[GradeInterval] = ()
    spans: SpanGold | None = None

    @staticmethod
    def of(
        corpus: GivenDocuments, queries: GivenQueries, qrels: GivenQrels, name: str = "given", split: str = "test"
    ) -> Dataset:
        """Return documents, queries and judgments as a dataset; raises `DatasetError` if they do not fit together.

        `corpus` maps ids to texts, or to mappings with `title` and `text`; `queries` map ids to texts. `qrels` map
        query ids to mappings of document ids to grades, or are rows of query id, document id and grade. Each may also
        be a list of records or a data frame, with the columns `id`, `title` and `text`, or `query_id`, `document_id`
        and `grade`.
        """
        given = importlib.import_module(GIVEN)  # imported here because it imports this module
        dataset: Dataset = given.build_given(corpus, queries, qrels, name, split)
        return dataset

    def __repr__(self) -> str:
        sizes = (
            f"{len(self.full_documents):,} documents, {len(self.queries):,} queries, {len(self.judgments):,} judgments"
        )
        return f"Dataset({self.name}, {self.split}: {sizes})"

    @cached_property
    def own_documents(self) -> NDArray[np.int32]:
        """Return the positions of the documents that are the query itself, for each query (n, m), or -1."""
        mode = "false" if self.spans is not None else self.exclude_self
        return own_documents(self.documents, self.queries, self.judgments, mode)

    @property
    def documents(self) -> Corpus:
        """Return what judgments refer to: the corpus or, unless chunks are judged by spans, the chunks' documents."""
        return self.corpus if self.spans is not None else self.full_documents

    @property
    def full_documents(self) -> Corpus:
        """Return the documents before they were split."""
        return self.whole or self.corpus

    @property
    def judged_whole(self) -> Corpus | None:
        """Return the documents of the chunks if judgments refer to them, None if they refer to what is searched."""
        return None if self.spans is not None else self.whole

    @cached_property
    def document_of(self) -> NDArray[np.int32] | None:
        """Return the position of each chunk's document; None if judgments refer to what is searched."""
        if self.judged_whole is None:
            return None
        at = {identifier: position for position, identifier in enumerate(self.judged_whole.ids)}
        return np.array([at[parent] for parent in self.parents], dtype=np.int32)

    @cached_property
    def parents(self) -> Sequence[str]:
        """Return the id of each chunk's document; empty if judgments refer to what is searched."""
        return () if self.judged_whole is None else [chunk[DOCUMENT] for chunk in self.corpus.metadata]

    @cached_property
    def judged_ids(self) -> Mapping[str, int]:
        """Return the positions in the judgments of documents that may be judged but are not searched, by id.

        These are the documents that the corpus lacks and, if chunks are searched, the whole documents.
        """
        at = {} if self.judged_whole is None else {name: place for place, name in enumerate(self.judged_whole.ids)}
        return at | {name: len(self.documents) + place for place, name in enumerate(self.unknown_documents)}

    def split_documents(self, chunking: Chunking) -> Dataset:
        """Return the same queries and gold on chunks of the documents; spans judge each chunk."""
        documents = self.full_documents
        chunks = chunking.split(documents)
        split = replace(self, corpus=chunks, whole=None if chunks is documents else documents)
        if self.spans is None:
            return split
        judgments, unknown = self.spans.judge(chunks)
        return replace(split, judgments=judgments, unknown_documents=unknown)

    def with_documents(self, documents: Corpus) -> Dataset:
        """Return the same queries and judgments with `documents`, which start with those of the corpus, unsplit."""
        names = [*self.corpus.ids, *self.unknown_documents]
        unknown = [name for name in self.unknown_documents if name not in documents.positions]
        places = dict(documents.positions) | {name: len(documents) + place for place, name in enumerate(unknown)}
        moved = np.array([places[name] for name in names], dtype=np.int32)

        def move(judgments: Judgments) -> Judgments:
            positions = moved[judgments.documents]
            order = np.lexsort((positions, judgments.queries))
            return Judgments(judgments.queries[order], positions[order], judgments.grades[order])

        return replace(
            self,
            corpus=documents,
            judgments=move(self.judgments),
            judgments_by_search_type={name: move(own) for name, own in self.judgments_by_search_type.items()},
            unknown_documents=unknown,
        )

    def judgments_for(self, search_type: str) -> Judgments:
        """Return the judgments for the retriever with this name."""
        return self.judgments_by_search_type.get(search_type, self.judgments)

    @cached_property
    def document_hashes(self) -> DocumentHashes | None:
        """Return a hash of each document before it was split; None for too many documents."""
        return hash_documents(self.full_documents)

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of all that scores depend on: documents, queries, types, clusters, filters and judgments.

        Chunking is not included: different chunkings are compared on the same queries and documents. Neither are the
        judgments that follow from spans.
        """
        texts = [
            f"{i}\0{t}\0{c}" for i, t, c in zip(self.queries.ids, self.queries.texts, self.queries.types, strict=True)
        ]
        grades = [("", self.judgments), *sorted(self.judgments_by_search_type.items())]
        columns = [
            f"{name}\0{column.astype('<i4').tobytes().hex()}"
            for name, judgments in grades
            for column in (judgments.queries, judgments.documents, judgments.grades)
        ]
        unknown = self.unknown_documents
        if self.spans is not None:
            columns, unknown = ["spans", self.spans.fingerprint], ()
        own = self.own_documents
        left_out = [f"own documents\0{own.astype('<i4').tobytes().hex()}"] if (own >= 0).any() else []
        if not len(self.documents) and self.exclude_self != "auto":  # what is left out depends on the hits
            left_out = [f"own documents\0{self.exclude_self}"]
        clusters = self.queries.clusters
        variants = ["clusters", *clusters] if any(clusters) else []
        filters = self.queries.filters
        filtered = (
            [self.full_documents.fields.fingerprint, *(str(own or "") for own in filters)] if any(filters) else []
        )
        return fingerprint(
            "dataset", self.full_documents.fingerprint, *texts, *unknown, *columns, *left_out, *variants,
            *filtered,
        )  # fmt: skip


@dataclass(frozen=True)
class Raw:
    """The content of a format's files, before it is checked.

    `judged` are queries that are judged even if no qrel names them (no-result queries); qrels by search type replace
    `qrels` for the queries that they name. For messages, `qrels_name` says where the qrels come from, and
    `document_fields` are the fields of documents that the corpus does not have. `grade_intervals` are those of
    estimated qrels.
    """

    corpus: Corpus
    queries: Queries
    qrels: Sequence[Qrel]
    judged: Iterable[str] = ()
    qrels_by_search_type: Mapping[str, Sequence[Qrel]] = field(default_factory=dict)
    qrels_name: str = "the judgments"
    document_fields: Iterable[str] = ()
    grade_intervals: Sequence[GradeInterval] = ()


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
