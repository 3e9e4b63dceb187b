"""Read the BEIR format: a folder with corpus.jsonl, queries.jsonl and qrels/<split>.tsv, and what is like it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from runner.config.objects import describe_choices
from runner.datasets import files
from runner.datasets.base import DatasetError, Queries, Raw, corpus_of
from runner.datasets.files import Place, PlaceTable
from runner.datasets.filtering import DocumentFields, read_filters
from runner.datasets.layouts import iter_places, iter_qrels, iter_rows, list_qrels, list_tables
from runner.datasets.source import SHARED_PATHS, DatasetSource

IDS = ("_id", "id", "docid")
"""Fields with the id of a document: those of BEIR and MTEB, and that of MIRACL, whose texts are also `contents`."""


@settings(frozen=True, config={"extra": "forbid"})
class Beir(DatasetSource):
    """A folder in the layout of BEIR, MTEB or NanoBEIR; the judgments may also be in qrels.tsv beside the documents.

    `documents` and `queries` name other files, inside the folder or elsewhere; None for no documents. `type_field`
    names the field of a query, or of its metadata, that contains its type.
    """

    access: ClassVar[Access] = Access(paths=(*SHARED_PATHS, "path", "documents", "queries"))

    path: str
    documents: str | None = "corpus.jsonl"
    queries: str = "queries.jsonl"
    type_field: str | None = None

    def read(self) -> Raw:
        """Read the folder."""
        folder = self._folder()
        elsewhere = self.unjudged_queries == "keep" or bool(self.extra_qrels)
        unjudged = self.gold == "spans" or (elsewhere and not self.splits())
        judgments = () if unjudged else self._find_qrels(folder)
        file = folder / self.queries
        records = list(self._iter_rows(folder, "queries"))
        queries = build_queries(records, str(file), self.type_field, self.query_fields, self.filter_field)
        fields = DocumentFields(queries.filters, str(file), self.search_fields)
        return Raw(
            corpus=corpus_of(iter_documents(self._iter_rows(folder, "corpus"), fields)),
            queries=queries,
            qrels=[qrel for path in judgments for qrel in iter_qrels(path)],
            qrels_name=", ".join(map(str, judgments)),
            document_fields=fields.names,
        )

    def splits(self) -> list[str]:
        """Return the splits: the names of the files of judgments."""
        return sorted(list_qrels(self._folder()))

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the line of each document, query or judgment."""
        folder = self._folder()
        if table == "judgment":
            for path in self._find_qrels(folder):
                yield from iter_places(path)
            return
        records = self._iter_rows(folder, "corpus" if table == "document" else "queries")
        yield from ((record.location, (record.identifier(*IDS),)) for record in records)

    def _iter_rows(self, folder: Path, name: Literal["corpus", "queries"]) -> Iterable[files.SourceRecord]:
        """Return the rows of the file that a setting names or, without its usual file, of the tables of the layout."""
        file = self.documents if name == "corpus" else self.queries
        tables = list_tables(folder, name, self.split) if file == f"{name}.jsonl" else ()
        if file is None or tables:
            return iter_rows(tables)
        return files.json_lines(files.resolve_path(folder / file, "path" if name == "corpus" else "queries"))

    def _folder(self) -> Path:
        folder = files.resolve_path(self.path, "path")
        if folder.is_file():
            raise DatasetError(
                f"dataset.path={folder}: expected a folder, found a file; name the folder that contains it and the "
                "qrels"
            )
        return folder

    def _find_qrels(self, folder: Path) -> Sequence[Path]:
        splits = list_qrels(folder)
        if not splits:
            raise DatasetError(
                f"{folder}: no judgments, because {folder / 'qrels'} has no {self.split}.tsv; to search without "
                "judgments, or to judge the results by hand, set dataset.unjudged_queries=keep"
            )
        if self.split not in splits:
            raise DatasetError(
                f"dataset.split={self.split}: {folder / 'qrels'} has no such split; {describe_choices(sorted(splits))}"
            )
        return splits[self.split]


def iter_documents(
    records: Iterable[files.SourceRecord], fields: DocumentFields | None = None
) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield the id, title and text of each document, and the metadata that filters need, if any."""
    for record in records:
        title = record.text("title") if "title" in record.fields else ""
        yield record.identifier(*IDS), title, record.text("text", "contents"), fields.read(record) if fields else {}


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
    metadata = files.with_named_fields(records, [record.mapping("metadata") for record in records], query_fields)
    return Queries(
        ids=[record.identifier("_id", "id") for record in records],
        texts=[record.text("text") for record in records],
        types=types,
        metadata=metadata if any(metadata) else (),
        filters=read_filters(records, filter_field),
    )


def _type(record: files.SourceRecord, field: str) -> str:
    value = record.fields.get(field, record.mapping("metadata").get(field))
    return "" if value in (None, "") else record.parse_id(field, value)
