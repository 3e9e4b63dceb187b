"""What every dataset is, whatever its format: a corpus, queries and judgments.

Nothing here knows where a dataset is read from, or how it is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus
from retrievers.store import fingerprint
from runner.datasets.chunking import DOCUMENT, Chunking
from runner.datasets.own_documents import ExcludeSelf, own_documents


class DatasetError(ValueError):
    """A dataset's files are missing, malformed or contradict each other. The message names file, line and field."""


Qrel = tuple[str, str, int]
"""A judgment as files have it: query id, document id, grade."""


EXPECTED_ANSWER = "expected_answer"
"""Where a query's metadata have the answer that it expects, in words."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Questions in columns. `types` are the classes that results are also reported by ("" for none).

    `metadata` is what else is known of each, or empty. `clusters` are labels that variants of a query share ("" for a
    query that is a cluster of its own), or empty.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    types: Sequence[str]
    metadata: Sequence[Mapping[str, Any]] = ()
    clusters: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Judgments:
    """Grades of (query, document) pairs, as positions, sorted by query, then document (three int32 columns).

    A grade above 0 is gold, 0 is judged irrelevant (a hard negative). Documents that are judged but not in the corpus
    (kept on demand) have the positions from the corpus's size on.
    """

    queries: NDArray[np.int32]
    documents: NDArray[np.int32]
    grades: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.grades)

    def golds(self, n_queries: int) -> NDArray[np.int64]:
        """Return how many gold documents each query has (n)."""
        return np.bincount(self.queries[self.grades > 0], minlength=n_queries)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A corpus, the judged queries on it, and their judgments.

    `judgments_by_search_type` holds other expectations for retrievers of a given name; `unknown_documents` are ids
    that are judged but not in the corpus. Where the corpus are chunks, `whole` are the documents: judgments are of
    these, and a document is found where its first chunk is. Rankings are to leave out what queries are themselves:
    `exclude_self` says how that is told.
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

    @cached_property
    def own_documents(self) -> NDArray[np.int32]:
        """Return the position of the document that each query is itself and that its ranking leaves out (n), or -1."""
        return own_documents(self.documents, self.queries, self.judgments, self.exclude_self)

    @property
    def documents(self) -> Corpus:
        """Return the documents that are judged: the corpus, or what its chunks are of."""
        return self.whole or self.corpus

    @cached_property
    def document_of(self) -> NDArray[np.int32] | None:
        """Return the position of each chunk's document; None where documents are searched whole."""
        if self.whole is None:
            return None
        at = {identifier: position for position, identifier in enumerate(self.whole.ids)}
        return np.array([at[parent] for parent in self.parents], dtype=np.int32)

    @cached_property
    def parents(self) -> Sequence[str]:
        """Return the id of each chunk's document; nothing where documents are searched whole."""
        return () if self.whole is None else [chunk[DOCUMENT] for chunk in self.corpus.metadata]

    @cached_property
    def judged_ids(self) -> Mapping[str, int]:
        """Return where the judgments have the documents that may be judged and are not searched, by id.

        These are the documents that the corpus lacks, and, where chunks are searched, the whole documents.
        """
        at = {} if self.whole is None else {name: place for place, name in enumerate(self.whole.ids)}
        return at | {name: len(self.documents) + place for place, name in enumerate(self.unknown_documents)}

    def split_documents(self, chunking: Chunking) -> Dataset:
        """Return the same queries and judgments on chunks of the documents."""
        chunks = chunking.split(self.documents)
        return replace(self, corpus=chunks, whole=None if chunks is self.documents else self.documents)

    def judgments_for(self, search_type: str) -> Judgments:
        """Return what is expected of a retriever of this name."""
        return self.judgments_by_search_type.get(search_type, self.judgments)

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of all that a score is measured on: documents, queries, types, clusters and judgments.

        How documents are cut is no part of it: chunkings are compared by the same questions on the same documents.
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
        own = self.own_documents
        left_out = [f"own documents\0{own.astype('<i4').tobytes().hex()}"] if (own >= 0).any() else []
        clusters = self.queries.clusters
        variants = ["clusters", *clusters] if any(clusters) else []
        return fingerprint(
            "dataset", self.documents.fingerprint, *texts, *self.unknown_documents, *columns, *left_out, *variants
        )


@dataclass(frozen=True)
class Raw:
    """What a format's files say, before it is checked.

    `judged` are the queries that are judged even where no qrel names them (a right answer of nothing); qrels by search
    type replace `qrels` for the queries that they name. `qrels_name` says where the qrels are from, for messages.
    """

    corpus: Corpus
    queries: Queries
    qrels: Sequence[Qrel]
    judged: Iterable[str] = ()
    qrels_by_search_type: Mapping[str, Sequence[Qrel]] = field(default_factory=dict)
    qrels_name: str = "the judgments"


def corpus_of(documents: Iterable[tuple[str, str, str]]) -> Corpus:
    """Make a corpus of (id, title, text) rows."""
    ids: list[str] = []
    titles: list[str] = []
    texts: list[str] = []
    for identifier, title, text in documents:
        ids.append(identifier)
        titles.append(title)
        texts.append(text)
    return Corpus(ids, texts, titles if any(titles) else ())
