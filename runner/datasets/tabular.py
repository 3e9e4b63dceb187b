"""Read tables of documents, queries and judgments in any format of rows; settings name their columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import ClassVar

from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus
from retrievers.filters import Filter
from runner.datasets import files
from runner.datasets.base import DatasetError, Qrel, Queries, Raw, corpus_of
from runner.datasets.columns import find_column, find_place
from runner.datasets.document_texts import READERS
from runner.datasets.files import Place, PlaceTable, SourceRecord
from runner.datasets.filtering import DocumentFields
from runner.datasets.folder import corpus_of_folder, describe_folder, is_document_folder
from runner.datasets.gold import parse_list
from runner.datasets.questions import QuestionColumns, QuestionTable, describe_missing
from runner.datasets.rows import has_documents, open_table
from runner.datasets.source import SHARED_PATHS


@settings(frozen=True, config={"extra": "forbid"})
class Tabular(QuestionColumns):
    """Files of rows, with a header or field names; each is a file, a folder or a glob.

    `documents` may also be a folder of documents in Markdown or plain text. Without `documents`, only a retriever with
    its own index can search, unless the file of queries contains documents too. Without `qrels`, the gold documents of
    a query are in its own column `query_golds`. `document_text` may be several columns, which are joined by line
    breaks. `query_answer` is the expected answer of a query, in words. Without `qrel_grade`, every grade is 1. By
    default, the format follows from the file's extension.
    """

    access: ClassVar[Access] = Access(paths=(*SHARED_PATHS, "queries", "documents", "qrels"))

    queries: str
    documents: str | None = None
    qrels: str | None = None
    documents_key: str | None = None
    document_id: str | None = None
    document_text: str | tuple[str, ...] | None = None
    document_title: str | None = None
    qrel_query: str = "query_id"
    qrel_document: str = "document_id"
    qrel_grade: str | None = "grade"

    @property
    def origin(self) -> str:
        """Return the file or folder of documents, or that of queries."""
        return self.documents or self.queries

    def read(self) -> Raw:
        """Read the files."""
        fields: list[DocumentFields] = []

        def read_documents(filters: Sequence[Filter | None]) -> Corpus:
            fields.append(DocumentFields(filters, self.queries, self.search_fields))
            return self._read_documents(fields[0])

        table, corpus = self.read_questions(self.queries, read_documents, has_qrels=self.qrels is not None)
        return Raw(
            corpus,
            table.queries,
            qrels=list(self.iter_qrels(self.qrels)) if self.qrels else table.qrels,
            judged=() if self.qrels else table.judged,
            qrels_name=self.qrels or self.queries,
            document_fields=fields[0].names,
            reading=self._describe_documents() + table.reading,
            unknown_cause=table.cause,
        )

    def read_queries(self) -> Queries:
        """Return the queries, whose gold is elsewhere."""
        return self._read_table(has_qrels=True).queries

    def _read_table(self, has_qrels: bool) -> QuestionTable:
        return self.read_questions(
            self.queries, lambda filters: self._read_documents(DocumentFields(filters, "")), has_qrels
        )[0]

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the row of each document, query or judgment."""
        if table == "document":
            for record, identifier, _ in self._iter_documents([]):
                yield record.location, (identifier,)
        elif table == "query":
            yield from self._read_table(has_qrels=True).iter_places()
        elif self.qrels:
            for record in self._iter_qrel_rows(self.qrels):
                yield record.location, (record.identifier(self.qrel_query), record.identifier(self.qrel_document))
        else:
            yield from self._read_table(has_qrels=False).iter_gold_places()

    @property
    def _documents_path(self) -> str | None:
        """Return the files of documents: those of queries if these contain documents too and none are set."""
        return self.documents or (self.queries if self.queries and has_documents(self.queries, "queries") else None)

    def _read_documents(self, fields: DocumentFields) -> Corpus:
        path = self._documents_path
        if path and is_document_folder(path):
            return corpus_of_folder(path, extensions=READERS)
        titles = [self.document_title] if self.document_title else []
        return corpus_of(
            (
                identifier,
                "".join(map(record.text, titles)),
                "\n".join(filter(None, map(record.text, texts))),
                fields.read(record),
            )
            for record, identifier, texts in self._iter_documents(fields.field_names)
        )

    def _describe_documents(self) -> str:
        path = self._documents_path
        return f"{describe_folder(path, READERS)}; " if path and is_document_folder(path) else ""

    def _iter_documents(self, others: Collection[str]) -> Iterator[tuple[SourceRecord, str, Sequence[str]]]:
        """Yield the row, the id and the columns of the text of each document; `others` are further columns to read."""
        path = self._documents_path
        if path is None or is_document_folder(path):
            return
        texts = (self.document_text,) if isinstance(self.document_text, str) else self.document_text or ()
        number = 0
        for file in files.matching(path, "documents"):
            named = [name for name in (self.document_id, *texts, self.document_title) if name]
            table = open_table(file, "documents", self.format, named, self.documents_key, self.encoding)
            identifier = self.document_id or find_column("document_id", table.columns, find_place((), table.place))
            text = texts or [find_column("document_text", table.columns, find_place((), table.place)) or "text"]
            columns = [("document_id", identifier), *(("document_text", t) for t in text)]
            columns += [("document_title", self.document_title)]
            for setting, name in columns if table.columns else ():
                if name is not None and name not in table.columns:
                    raise DatasetError(f"{table.place}: {describe_missing(setting, name, table.columns)}")
            wanted = {name for _, name in columns if name} | {name.partition(".")[0] for name in others}
            for record in table.read(wanted if wanted <= {*table.columns} else None):
                number += 1
                yield record, record.identifier(identifier) if identifier else f"d{number:04d}", text

    def iter_qrels(self, pattern: str, convert: Callable[[object], int] = files.grade_of) -> Iterator[Qrel]:
        """Yield the judgments in a table; `convert` makes grades of values, or raises `ValueError`."""
        for record in self._iter_qrel_rows(pattern):
            grade = record.grade(self.qrel_grade, convert) if self.qrel_grade else 1
            document = record.identifier(self.qrel_document)
            if not self.documents and parse_list(document) is not None:
                raise record.fault(
                    f"{self.qrel_document!r} is {document[:60]!r}, a list; write a row for each document with pandas: "
                    f"df[{self.qrel_document!r}] = df[{self.qrel_document!r}].map(ast.literal_eval); df = "
                    f"df.explode({self.qrel_document!r})"
                )
            yield record.identifier(self.qrel_query), document, grade

    def _iter_qrel_rows(self, pattern: str) -> Iterator[SourceRecord]:
        named = {"qrel_query": self.qrel_query, "qrel_document": self.qrel_document, "qrel_grade": self.qrel_grade}
        columns = {name: setting for setting, name in named.items() if name is not None}
        for path in files.matching(pattern, "qrels"):
            table = open_table(path, "qrels", self.format, columns, encoding=self.encoding)
            if table.columns and (missing := next((name for name in columns if name not in table.columns), None)):
                raise DatasetError(f"{table.place}: {describe_missing(columns[missing], missing, table.columns)}")
            yield from table.read(columns)
