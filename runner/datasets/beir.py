"""Read the BEIR format: a folder with corpus.jsonl, queries.jsonl and qrels/<split>.tsv, each plain or gzipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.runs.run_formats import strip_compression
from runner.config.objects import describe_choices
from runner.datasets import files
from runner.datasets.base import DatasetError, Queries, Raw, corpus_of
from runner.datasets.files import Place, PlaceTable
from runner.datasets.filtering import DocumentFields, read_filters
from runner.datasets.qrels import iter_qrel_places, read_qrels
from runner.datasets.source import SHARED_PATHS, DatasetSource


@settings(frozen=True, config={"extra": "forbid"})
class Beir(DatasetSource):
    """A folder in BEIR's layout.

    `documents` and `queries` name other files, inside the folder or elsewhere; None for no documents. `type_field`
    names the field of a query, or of its metadata, that contains its type.
    """

    access: ClassVar[Access] = Access(paths=(*SHARED_PATHS, "path", "documents", "queries"))

    path: str
    documents: str | None = "corpus.jsonl"
    queries: str = "queries.jsonl"
    type_field: str | None = None

    @property
    def origin(self) -> str:
        """Return the folder."""
        return self.path

    def read(self) -> Raw:
        """Read the folder."""
        folder = self._folder()
        unjudged = self.gold == "spans" or (self.unjudged_queries == "keep" and not self.splits())
        judgments = None if unjudged else self._qrels_path(folder)
        file = files.resolve_path(folder / self.queries, "queries")
        documents = (
            files.json_lines(files.resolve_path(folder / self.documents, "path")) if self.documents is not None else ()
        )
        records = list(files.json_lines(file))
        queries = build_queries(records, str(file), self.type_field, self.query_fields, self.filter_field)
        fields = DocumentFields(queries.filters, str(file), self.search_fields)
        return Raw(
            corpus=corpus_of(iter_documents(documents, fields)),
            queries=queries,
            qrels=() if judgments is None else read_qrels(judgments),
            qrels_name=str(judgments),
            document_fields=fields.names,
        )

    def splits(self) -> list[str]:
        """Return the splits: the names of the files of judgments."""
        folder = self._folder()
        names = (strip_compression(path.name) for path in (folder / "qrels").glob("*.tsv*"))
        return sorted({name.removesuffix(".tsv") for name in names if name.endswith(".tsv")})

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the line of each document, query or judgment."""
        folder = self._folder()
        if table == "judgment":
            yield from iter_qrel_places(self._qrels_path(folder))
            return
        file = self.documents if table == "document" else self.queries
        records = files.json_lines(files.resolve_path(folder / file, "path")) if file is not None else ()
        yield from ((record.location, (record.identifier("_id", "id"),)) for record in records)

    def _folder(self) -> Path:
        folder = files.resolve_path(self.path, "path")
        if folder.is_file():
            raise DatasetError(
                f"dataset.path={folder}: expected a folder, found a file; name the folder that contains it and the "
                "qrels"
            )
        return folder

    def _qrels_path(self, folder: Path) -> Path:
        if not self.splits():
            raise DatasetError(
                f"{folder}: no judgments, because {folder / 'qrels'} has no {self.split}.tsv; to search without "
                "judgments, or to judge the results by hand, set dataset.unjudged_queries=keep"
            )
        if self.split not in self.splits():
            raise DatasetError(
                f"dataset.split={self.split}: {folder / 'qrels'} has no such split; {describe_choices(self.splits())}"
            )
        return files.resolve_path(folder / "qrels" / f"{self.split}.tsv", "split")


def iter_documents(
    records: Iterable[files.SourceRecord], fields: DocumentFields
) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield the id, title and text of each document, and the metadata that filters need, if any."""
    for record in records:
        title = record.text("title") if "title" in record.fields else ""
        yield record.identifier("_id", "id"), title, record.text("text"), fields.read(record)


def build_queries(
    records: Sequence[files.SourceRecord],
    name: str,
    type_field: str | None = None,
    query_fields: Mapping[str, str] = files.NO_FIELDS,
    filter_field: str | None = None,
) -> Queries:
    """Return queries; their metadata include the fields that settings name (`query_fields`).

    `name` says in errors where the records come from.
    """
    types = [_type(record, type_field) if type_field else "" for record in records]
    if type_field and records and not any(types):
        raise DatasetError(
            f"dataset.type_field={type_field}: no query of {name} has this field, either directly or in its metadata"
        )
    metadata = files.with_named_fields(records, [_metadata(record) for record in records], query_fields)
    return Queries(
        ids=[record.identifier("_id", "id") for record in records],
        texts=[record.text("text") for record in records],
        types=types,
        metadata=metadata if any(metadata) else (),
        filters=read_filters(records, filter_field),
    )


def _metadata(record: files.SourceRecord) -> dict[str, Any]:
    metadata = record.fields.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise record.fault("'metadata' is not a JSON object")
    return metadata


def _type(record: files.SourceRecord, field: str) -> str:
    value = record.fields.get(field, _metadata(record).get(field))
    return "" if value in (None, "") else record._replace(fields={field: value}).identifier(field)
