"""A dataset: a corpus, its judged queries, and their judgments.

Nothing here depends on where a dataset is read from or how it is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus
from retrievers.store import fingerprint
from runner.datasets.base import Judgments, Queries
from runner.datasets.chunking import DOCUMENT, Chunking
from runner.datasets.document_hashes import DocumentHashes, hash_documents
from runner.datasets.given_values import GivenDocuments, GivenQrels, GivenQueries, read_values
from runner.datasets.own_documents import ExcludeSelf, own_documents


@dataclass(frozen=True, eq=False)
class Dataset:
    """A corpus, its judged queries, and their judgments.

    Rankings leave out documents that are the query itself; `exclude_self` says how these are recognised. `reading` says
    in one line how the file of questions was understood, "" if nothing had to be recognised. If the corpus consists of
    chunks, `whole` has the documents: judgments refer to these, and a document has the rank of its first chunk, unless
    the judgments follow from spans.
    """

    name: str
    split: str
    corpus: Corpus
    queries: Queries
    judgments: Judgments
    exclude_self: ExcludeSelf = "auto"
    reading: str = ""
    whole: Corpus | None = None

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
        return Dataset(*read_values(corpus, queries, qrels, name, split))

    def __repr__(self) -> str:
        sizes = (
            f"{len(self.full_documents):,} documents, {len(self.queries):,} queries, {len(self.judgments):,} judgments"
        )
        return f"Dataset({self.name}, {self.split}: {sizes})"

    @property
    def full_documents(self) -> Corpus:
        """Return the documents before they were split."""
        return self.whole or self.corpus

    @property
    def documents(self) -> Corpus:
        """Return what judgments refer to: the corpus or, unless chunks are judged by spans, the chunks' documents."""
        return self.corpus if self.judgments.spans is not None else self.full_documents

    @cached_property
    def parents(self) -> Sequence[str]:
        """Return the id of each chunk's document; empty if judgments refer to what is searched."""
        return () if self.documents is self.corpus else [chunk[DOCUMENT] for chunk in self.corpus.metadata]

    @cached_property
    def document_of(self) -> NDArray[np.int32] | None:
        """Return the position of each chunk's document; None if judgments refer to what is searched."""
        if self.documents is self.corpus:
            return None
        return np.array([self.documents.positions[parent] for parent in self.parents], dtype=np.int32)

    @cached_property
    def judged_ids(self) -> Mapping[str, int]:
        """Return the positions in the judgments of documents that may be judged but are not searched, by id.

        These are the documents that the corpus lacks and, if chunks are searched, the whole documents.
        """
        at = {} if self.documents is self.corpus else self.documents.positions
        n = len(self.documents)
        return {**at, **{name: n + place for place, name in enumerate(self.judgments.unknown_documents)}}

    @cached_property
    def own_documents(self) -> NDArray[np.int32]:
        """Return the positions of the documents that are the query itself, for each query (n, m), or -1."""
        return own_documents(self.documents, self.queries, self.judgments, self.exclude_self)

    def split_documents(self, chunking: Chunking) -> Dataset:
        """Return the same queries and gold on chunks of the documents."""
        return self.with_chunks(chunking.split(self.full_documents))

    def with_chunks(self, chunks: Corpus) -> Dataset:
        """Return the same queries and gold on chunks of the documents, or on the documents; spans judge each chunk."""
        documents, judgments = self.full_documents, self.judgments
        if judgments.spans is not None:
            judgments = replace(judgments.spans.judge(chunks), unjudged=judgments.unjudged)
        return replace(self, corpus=chunks, judgments=judgments, whole=None if chunks is documents else documents)

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
            "dataset", self.full_documents.fingerprint, *texts, *self.judgments.key_parts, *left_out, *variants,
            *filtered,
        )  # fmt: skip
