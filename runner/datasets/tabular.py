"""Read tables of documents, queries and judgments in any format of rows; settings name their columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus
from retrievers.filters import Filter
from retrievers.runs.run_formats import strip_compression
from runner.datasets import files
from runner.datasets.base import DatasetError, Qrel, Queries, Raw, corpus_of
from runner.datasets.columns import find_column, find_place, find_prose
from runner.datasets.document_texts import READERS
from runner.datasets.files import Place, PlaceTable, SourceRecord
from runner.datasets.filtering import DocumentFields
from runner.datasets.folder import corpus_of_folder, describe_folder, is_document_folder
from runner.datasets.gold import find_documents, parse_list
from runner.datasets.qrels import find_qrel_columns, iter_qrel_places, read_qrels
from runner.datasets.questions import QuestionColumns, QuestionTable, describe_missing
from runner.datasets.rows import FORMATS, RowTable, find_unique, has_documents, open_table
from runner.datasets.source import SHARED_PATHS

_USUAL = ("query_id", "document_id")
"""The columns of judgments without settings."""


class _DocumentTable(NamedTuple):
    """A file of documents with the columns of ids (None: documents are numbered) and texts."""

    table: RowTable
    identifier: str | None
    texts: Sequence[str]


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
            qrels=find_documents(self.iter_qrels(self.qrels), corpus) if self.qrels else table.qrels,
            judged=() if self.qrels else table.judged,
            qrels_name=self.qrels or self.queries,
            document_fields=fields[0].names,
            reading=self._describe_documents(corpus) + table.reading,
            unknown_cause=table.cause,
        )

    def read_queries(self) -> Queries:
        """Return the queries, whose gold is elsewhere."""
        return self._read_table(has_qrels=True).queries

    def read_table(self) -> QuestionTable | None:
        """Read the questions and their gold; None if there is a file of judgments."""
        return None if self.qrels else self._read_table(has_qrels=False)

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
            yield from self._iter_qrel_places(self.qrels)
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

    def _describe_documents(self, corpus: Corpus) -> str:
        path = self._documents_path
        if path and is_document_folder(path):
            return f"{describe_folder(path, READERS)}; "
        if path is None or not len(corpus):
            return ""
        columns = self._recognise_documents(next(iter(files.matching(path, "documents"))))
        ids = f"ids from `{columns.identifier}`" if columns.identifier else "no ids: numbered"
        texts = ", ".join(f"`{name}`" for name in columns.texts)
        return f"{len(corpus):,} documents from {texts}, {ids}; "

    def _recognise_documents(self, file: Path) -> _DocumentTable:
        """Open a file of documents, and find the columns of ids and texts; raises `DatasetError`."""
        texts = (self.document_text,) if isinstance(self.document_text, str) else self.document_text or ()
        named = [name for name in (self.document_id, *texts, self.document_title) if name]
        table = open_table(file, "documents", self.format, named, self.documents_key, self.encoding)
        place = find_place((), table.place)
        identifier = self.document_id or find_column("document_id", table.columns, place) or find_unique(table)
        if not texts:
            others = [name for name in table.columns if name not in (identifier, self.document_title, "title")]
            text = find_column("document_text", table.columns, place) or find_prose(table.read(None), others)
            texts = (text or "text",)
        columns = [("document_id", identifier), *(("document_text", name) for name in texts)]
        columns += [("document_title", self.document_title)]
        for setting, name in columns if table.columns else ():
            if name is not None and name not in table.columns:
                raise DatasetError(f"{table.place}: {describe_missing(setting, name, table.columns)}")
        return _DocumentTable(table, identifier, texts)

    def _iter_documents(self, others: Collection[str]) -> Iterator[tuple[SourceRecord, str, Sequence[str]]]:
        """Yield the row, the id and the columns of the text of each document; `others` are further columns to read."""
        path = self._documents_path
        if path is None or is_document_folder(path):
            return
        number = 0
        for file in files.matching(path, "documents"):
            table, identifier, texts = self._recognise_documents(file)
            wanted = {name for name in (identifier, *texts, self.document_title) if name}
            wanted |= {name.partition(".")[0] for name in others}
            for record in table.read(wanted if wanted <= {*table.columns} else None):
                number += 1
                yield record, record.identifier(identifier) if identifier else f"d{number:04d}", texts

    def iter_qrels(self, pattern: str, convert: Callable[[object], int] = files.grade_of) -> Iterator[Qrel]:
        """Yield the judgments in a table or in columns; `convert` makes grades of values, or raises `ValueError`."""
        for path in files.matching(pattern, "qrels"):
            if (table := self._open_qrels(path)) is None:
                yield from read_qrels(path, convert)
                continue
            query, document, graded = self._name_qrels(table)
            for record in table.read({query, document, *([graded] if graded else [])}):
                grade = record.grade(graded, convert) if graded else 1
                if not self.documents and parse_list(str(record.fields[document])) is not None:
                    raise record.fault(
                        f"{document!r} is {str(record.fields[document])[:60]!r}, a list; write a row for each document "
                        f"with pandas: df[{document!r}] = df[{document!r}].map(ast.literal_eval); df = "
                        f"df.explode({document!r})"
                    )
                yield record.identifier(query), record.identifier(document), grade

    def _iter_qrel_places(self, pattern: str) -> Iterator[Place]:
        for path in files.matching(pattern, "qrels"):
            if (table := self._open_qrels(path)) is None:
                yield from iter_qrel_places(path)
                continue
            query, document, _ = self._name_qrels(table)
            for record in table.read({query, document}):
                yield record.location, (record.identifier(query), record.identifier(document))

    def _open_qrels(self, path: Path) -> RowTable | None:
        """Return a file of judgments as a table, None if it is in columns, as TREC's and BEIR's are."""
        if self.format is None and FORMATS.get(Path(strip_compression(path.name)).suffix.lower()) is None:
            return None
        named = [self.qrel_query, self.qrel_document, *filter(None, [self.qrel_grade])]
        return open_table(path, "qrels", self.format, named, encoding=self.encoding)

    def _name_qrels(self, table: RowTable) -> tuple[str, str, str | None]:
        """Return the columns of judgments: those of the settings or, unless these are set, those with known names."""
        named = {"qrel_query": self.qrel_query, "qrel_document": self.qrel_document, "qrel_grade": self.qrel_grade}
        if (self.qrel_query, self.qrel_document) == _USUAL and not {*_USUAL} <= {*table.columns}:
            named |= find_qrel_columns(table.columns) or {}
        for setting, name in named.items() if table.columns else ():
            if name is not None and name not in table.columns:
                raise DatasetError(f"{table.place}: {describe_missing(setting, name, table.columns)}")
        return str(named["qrel_query"]), str(named["qrel_document"]), named["qrel_grade"]
