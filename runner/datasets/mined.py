"""Read mined datasets: JSONL rows of a query with its positive and negative contexts, and the corpus they come from.

The primary positive context has grade 2, the others have grade 1, and negatives have grade 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus
from retrievers.runs.run_formats import strip_compression
from runner.datasets import files
from runner.datasets.base import DatasetError, Qrel, Queries, Raw, corpus_of
from runner.datasets.beir import iter_documents
from runner.datasets.files import Place, PlaceTable, SourceRecord
from runner.datasets.filtering import DocumentFields, read_filters
from runner.datasets.source import SHARED_PATHS, DatasetSource

CONTEXTS = "contexts"
"""The value of `corpus` with which the contexts of the rows are the only documents."""

_TYPE = "suite"


@settings(frozen=True, config={"extra": "forbid"})
class Mined(DatasetSource):
    """A mined dataset.

    `corpus` is the file of its documents; null for the one that mining wrote next to it (PATH.corpus.jsonl), or
    `contexts` for only the documents in the rows, which makes search easy. `type_field` names the field of a row's
    metadata that contains the type of a query; null for `suite`, if it exists.
    """

    access: ClassVar[Access] = Access(paths=(*SHARED_PATHS, "path", "corpus"))

    path: str
    corpus: str | None = None
    type_field: str | None = None

    def read(self) -> Raw:
        """Read the rows and the corpus."""
        path = files.resolve_path(self.path, "path")
        rows = list(files.json_lines(path))
        if not rows:
            raise DatasetError(f"dataset.path={path}: the file has no rows, because mining kept no query")
        metadata = [row.mapping("metadata") for row in rows]
        for row, about in zip(rows, metadata, strict=True):
            if about.get("verdict") == "rejected" and not any(positive for _, positive in _contexts(row)):
                raise row.fault(
                    "the row was rejected and has no gold, so it would count as a query without an answer; remove it"
                )
        kinds = [str(about.get(self.type_field or _TYPE) or "") for about in metadata]
        if self.type_field and not any(kinds):
            raise DatasetError(f"dataset.type_field={self.type_field}: no row of {path} has this field in its metadata")
        ids = [row.identifier("id") for row in rows]
        queries = Queries(
            ids,
            [row.text("query") for row in rows],
            kinds,
            files.with_named_fields(rows, metadata, self.query_fields),
            filters=read_filters(rows, self.filter_field),
        )
        fields = DocumentFields(queries.filters, str(path), self.search_fields)
        return Raw(
            corpus=self._documents(path, rows, fields),
            queries=queries,
            qrels=[qrel for identifier, row in zip(ids, rows, strict=True) for qrel in _qrels(identifier, row)],
            judged=ids,
            qrels_name=str(path),
            document_fields=fields.names,
        )

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the line of each document or row; a judgment is in the row of its query."""
        path = files.resolve_path(self.path, "path")
        if table == "document" and self.corpus != CONTEXTS:
            for record in files.json_lines(self._corpus_path(path)):
                yield record.location, (record.identifier("_id", "id"),)
            return
        for row in files.json_lines(path):
            query = row.identifier("id")
            if table == "query":
                yield row.location, (query,)
            for context, _ in _contexts(row):
                name = context.identifier("fqn")
                if table != "query":
                    yield context.location, (name,) if table == "document" else (query, name)

    def _corpus_path(self, path: Path) -> Path:
        beside = path.with_name(f"{strip_compression(path.name)}.corpus.jsonl")
        if self.corpus is None and not beside.exists() and not files.find_compressed(beside):
            raise DatasetError(
                f"dataset.corpus={beside}: no such file; name the file of documents, or set dataset.corpus={CONTEXTS}"
            )
        return files.resolve_path(self.corpus or beside, "corpus")

    def _documents(self, path: Path, rows: Sequence[SourceRecord], fields: DocumentFields) -> Corpus:
        if self.corpus == CONTEXTS:
            documents: dict[str, tuple[str, str, str, Mapping[str, Any]]] = {}
            for context in (context for row in rows for context, _ in _contexts(row)):
                identifier = context.identifier("fqn")
                documents.setdefault(identifier, (identifier, "", context.text("text"), fields.read(context)))
            return corpus_of(documents.values())
        return corpus_of(iter_documents(files.json_lines(self._corpus_path(path)), fields))


def _qrels(identifier: str, row: SourceRecord) -> Iterator[Qrel]:
    for context, positive in _contexts(row):
        rank = context.grade("rank_relevance") if positive and "rank_relevance" in context.fields else 1
        yield identifier, context.identifier("fqn"), (2 if rank == 1 else 1) if positive else 0


def _contexts(row: SourceRecord) -> Iterator[tuple[SourceRecord, bool]]:
    """Yield the contexts of a row, and whether they are positive; a row without `positive_ctxs` is invalid."""
    for name, positive in (("positive_ctxs", True), ("negative_ctxs", False)):
        yield from ((context, positive) for context in row.objects(name, required=positive))
