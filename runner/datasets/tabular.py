"""Read tables of documents, queries and judgments in JSONL, CSV, TSV or Parquet; settings name their columns."""

from __future__ import annotations

import ast
import csv
import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.runs.run_formats import TABLES, TableFormat, strip_compression
from runner.datasets import files
from runner.datasets.base import EXPECTED_ANSWER, DatasetError, Qrel, Queries, Raw, corpus_of
from runner.datasets.files import Place, PlaceTable, SourceRecord
from runner.datasets.filtering import DocumentFields, read_filters
from runner.datasets.source import SHARED_PATHS, DatasetSource
from runner.datasets.variants import no_query_has

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

_LONGEST_FIELD = 2**31 - 1
_DELIMITERS = {
    "\t": "tabs seem to separate the columns. Rename the file to .tsv, or set dataset.format=tsv",
    ";": "semicolons seem to separate the columns. Save the file with commas, or with tabs as .tsv",
    "|": "vertical bars seem to separate the columns. Save the file with commas, or with tabs as .tsv",
    ",": "commas seem to separate the columns. Rename the file to .csv, or set dataset.format=csv",
}
"""Characters that may separate columns, with advice for when they are not the expected ones."""
_GOLD_SEPARATORS = ("|", ",", ";", " ")
"""Characters that often separate ids."""
_LIST = re.compile(r"\[.*\]|\(.*\)", re.DOTALL)
"""A list as written by Python or NumPy."""
_NUMPY_GAP = re.compile(r"""(?<=['"])\s+(?=['"])""")
"""What is between two texts of a list of NumPy."""


@settings(frozen=True, config={"extra": "forbid"})
class Tabular(DatasetSource):
    """Files of rows, with a header or field names; each is a file, a folder or a glob.

    Without `documents`, only a retriever with its own index can search. Without `qrels`, the gold documents of a query
    are in its own column `query_golds`: an id, a list of ids, or text that `gold_separator` splits into ids, ignoring
    blanks around them; if it is empty, the right result is an empty one. `document_text` may be several columns, which
    are joined by line breaks. `query_answer` is the expected answer of a query, in words. Without `qrel_grade`, every
    grade is 1. By default, the format follows from the file's extension.
    """

    access: ClassVar[Access] = Access(paths=(*SHARED_PATHS, "queries", "documents", "qrels"))

    queries: str
    documents: str | None = None
    qrels: str | None = None
    format: TableFormat | None = None
    document_id: str = "id"
    document_text: str | tuple[str, ...] = "text"
    document_title: str | None = None
    query_id: str = "id"
    query_text: str = "text"
    query_type: str | None = None
    query_answer: str | None = None
    query_golds: str = "gold"
    gold_separator: Annotated[str, Field(min_length=1)] | None = "|"
    qrel_query: str = "query_id"
    qrel_document: str = "document_id"
    qrel_grade: str | None = "grade"

    @property
    def origin(self) -> str:
        """Return the file or folder of documents, or that of queries."""
        return self.documents or self.queries

    def read(self) -> Raw:
        """Read the files."""
        queries, records = self.read_queries()
        fields = DocumentFields(queries, self.queries, self.search_fields)
        corpus = corpus_of(self._documents(fields))
        if self.qrels:
            judgments = list(self.iter_qrels(self.qrels))
            return Raw(corpus, queries, judgments, qrels_name=self.qrels, document_fields=fields.names)
        self._check_lists(records, frozenset(corpus.ids))
        if self.unknown_judged == "error" and self.documents:
            self._check_separator(records, frozenset(corpus.ids))
        qrels = [(query, gold, 1) for query, row in zip(queries.ids, records, strict=True) for gold in self._golds(row)]
        name = f"{self.queries} ({self.query_golds})"
        return Raw(corpus, queries, qrels, judged=queries.ids, qrels_name=name, document_fields=fields.names)

    def read_queries(self) -> tuple[Queries, Sequence[SourceRecord]]:
        """Return the queries, and the rows that they were read from."""
        types = [self.query_type] if self.query_type else []
        answers = [self.query_answer] if self.query_answer else []
        named = ("query_id", "query_text", "query_type", "query_answer", *(() if self.qrels else ("query_golds",)))
        optional = [self.filter_field] if self.filter_field else []
        records = list(self._records("queries", self.queries, named, self.query_fields, optional))
        queries = Queries(
            ids=[record.identifier(self.query_id) for record in records],
            texts=[record.text(self.query_text) for record in records],
            types=["".join(map(record.text, types)) for record in records],
            metadata=files.with_named_fields(
                records,
                [{EXPECTED_ANSWER: record.text(name)} for record in records for name in answers],
                self.query_fields,
            ),
            filters=read_filters(records, self.filter_field),
        )
        return queries, records

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the row of each document, query or judgment."""
        if table == "document" and self.documents:
            for record in self._records("documents", self.documents, ("document_id",)):
                yield record.location, (record.identifier(self.document_id),)
        elif table == "query":
            for record in self._records("queries", self.queries, ("query_id",)):
                yield record.location, (record.identifier(self.query_id),)
        elif table == "judgment" and self.qrels:
            for record in self._records("qrels", self.qrels, ("qrel_query", "qrel_document")):
                yield record.location, (record.identifier(self.qrel_query), record.identifier(self.qrel_document))
        elif table == "judgment":
            for record in self._records("queries", self.queries, ("query_id", "query_golds")):
                yield from ((record.location, (record.identifier(self.query_id), gold)) for gold in self._golds(record))

    def _documents(self, fields: DocumentFields) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
        if not self.documents:
            return
        texts = [self.document_text] if isinstance(self.document_text, str) else self.document_text
        titles = [self.document_title] if self.document_title else []
        named = ("document_id", "document_title", "document_text")
        for record in self._records("documents", self.documents, named, optional=[*fields.field_names]):
            text = "\n".join(filter(None, map(record.text, texts)))
            title = "".join(map(record.text, titles))
            yield record.identifier(self.document_id), title, text, fields.read(record)

    def iter_qrels(self, pattern: str, convert: Callable[[object], int] = files.grade_of) -> Iterator[Qrel]:
        """Yield the judgments in a table; `convert` makes grades of values, or raises `ValueError`."""
        for record in self._records("qrels", pattern, ("qrel_query", "qrel_document", "qrel_grade")):
            grade = record.grade(self.qrel_grade, convert) if self.qrel_grade else 1
            document = record.identifier(self.qrel_document)
            if not self.documents and _LIST.fullmatch(document):
                raise record.fault(
                    f"{self.qrel_document!r} is {document[:60]!r}, a list; write a row for each document, as "
                    f"df.explode({self.qrel_document!r}) does"
                )
            yield record.identifier(self.qrel_query), document, grade

    def _golds(self, record: SourceRecord) -> list[str]:
        golds = record.fields[self.query_golds]
        if golds is None or golds == "":
            return []
        if isinstance(golds, str) and (listed := _parse_list(golds)) is not None:
            golds = listed
        elif isinstance(golds, str) and self.gold_separator:
            golds = _parts(golds, self.gold_separator)
        listed = list(dict.fromkeys(_flatten(golds)))
        return [record._replace(fields={self.query_golds: gold}).identifier(self.query_golds) for gold in listed]

    def _check_lists(self, records: Sequence[SourceRecord], documents: Collection[str]) -> None:
        """Raise if gold is a list as text, which is no id: its parts would never be found."""
        name = self.query_golds
        for record in records:
            golds = record.fields[name]
            is_list = isinstance(golds, str) and _LIST.fullmatch(golds.strip()) and _parse_list(golds) is None
            if is_list and golds not in documents:
                raise record.fault(
                    f"{name!r} is {golds[:60]!r}, a list as written by pandas; join its ids, df[{name!r}] = "
                    f"df[{name!r}].map(ast.literal_eval).str.join('|') for a column of text, and set "
                    "'dataset.gold_separator=\"|\"'"
                )

    def _check_separator(self, records: Sequence[SourceRecord], documents: Collection[str]) -> None:
        """Raise if gold ids contain a separator and are not ids of documents: unsplit, they would never be found."""
        separated = (r for r in records if self.gold_separator and isinstance(r.fields[self.query_golds], str))
        unknown = ((record, gold) for record in separated for gold in self._golds(record) if gold not in documents)
        for (record, gold), separator in product(unknown, _GOLD_SEPARATORS):
            known = next((part for part in _parts(gold, separator) if part in documents), None)
            if known is not None:
                raise record.fault(
                    f"{self.query_golds!r} is {gold!r}, which is not a document id, but {known!r} is. If it lists "
                    f"several ids, set 'dataset.gold_separator=\"{separator}\"'; if it is a single id whose "
                    "document is missing, set dataset.unknown_judged=keep (only a retriever with its own documents or "
                    "rankings can return it) or drop"
                )

    def _records(
        self,
        setting: str,
        pattern: str,
        named: Sequence[str],
        also: Mapping[str, str] = files.NO_FIELDS,
        optional: Sequence[str] = (),
    ) -> Iterator[SourceRecord]:
        """Yield the rows of the files that a setting names; each has the columns that the settings `named` name.

        Rows also have the columns `also`, by setting, and `optional`, if the file has them.
        """
        values = {name: getattr(self, name) or () for name in named}
        columns = {c: name for name, value in values.items() for c in ([value] if isinstance(value, str) else value)}
        for path in files.matching(pattern, setting):
            for record in self._rows(setting, path, columns, also, optional):
                if not columns.keys() <= record.fields.keys():
                    raise record.fault(_missing(columns, record.fields))
                yield record

    def _rows(
        self, setting: str, path: Path, columns: Mapping[str, str], also: Mapping[str, str], optional: Sequence[str]
    ) -> Iterator[SourceRecord]:
        kind = self.format or TABLES.get(Path(strip_compression(path.name)).suffix.lower())
        if kind is None:
            raise DatasetError(
                f"dataset.{setting}={path}: unknown format; set dataset.format=jsonl, csv, tsv or parquet"
            )
        if kind == "jsonl":
            return files.json_lines(path)
        if kind == "parquet":
            return _parquet_rows(path, columns, also, optional, list_all=setting == "documents")
        return iter_csv(path, "," if kind == "csv" else "\t", columns)


def is_table(path: Path, *others: str) -> bool:
    """Tell files with named columns from others by their extension: CSV, Parquet, or one of `others`."""
    ending = Path(strip_compression(path.name)).suffix.lower()
    return ending in others or TABLES.get(ending) in ("csv", "parquet")


def _parse_list(text: str) -> list[Any] | None:
    """Return the list of texts that a text is in JSON, Python or NumPy; None for any other, such as an id [7]."""
    if not _LIST.fullmatch(text.strip()):
        return None
    try:
        value = ast.literal_eval(_NUMPY_GAP.sub(", ", text.strip()))  # literals only: nothing is run
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list) and value and all(isinstance(v, str) for v in value) else None


def _flatten(value: object) -> Iterator[Any]:
    """Yield the values of nested lists; ids of AutoRAG are lists of lists."""
    if isinstance(value, list):
        for item in value:
            yield from _flatten(item)
    else:
        yield value


def _parts(text: str, separator: str) -> list[str]:
    return [part.strip() for part in text.split(separator)]


def _missing(columns: Mapping[str, str], there: Collection[str]) -> str:
    """Describe the first missing column, and the setting to name another column."""
    column, setting = next((column, setting) for column, setting in columns.items() if column not in there)
    judged = "set dataset.qrels to the file of judgments, or " if setting == "query_golds" else ""
    beir = "; for a folder in BEIR's format, set dataset=beir" if "_id" in there else ""
    has = ", ".join(there) or "no columns"
    return (
        f"the column {column!r} is missing; the columns are {has}; {judged}set dataset.{setting} to the right "
        f"column{beir}"
    )


def iter_csv(path: Path, delimiter: str, columns: Collection[str]) -> Iterator[SourceRecord]:
    """Yield the rows of a table with a header; `columns` are valid names for a header with a single column."""
    csv.field_size_limit(_LONGEST_FIELD)  # the default, 128 KiB, is too small for long documents
    place = f"{path}:"
    with files.open_file(path) as file, io.TextIOWrapper(file, "utf-8", newline="") as lines:
        rows = csv.reader(_check_heading(lines, place, delimiter, columns), delimiter=delimiter, strict=True)
        try:
            header = next(rows, [])
            for name in header:
                if header.count(name) > 1 and name:
                    raise DatasetError(f"{place}1: the column {name!r} occurs twice; keep one")
            for row in filter(None, rows):
                if len(row) != len(header):
                    raise DatasetError(
                        f"{place}{rows.line_num}: expected {len(header)} columns, as in the header, found {len(row)}"
                    )
                yield SourceRecord(place, rows.line_num, dict(zip(header, row, strict=True)))
        except UnicodeDecodeError:
            raise DatasetError(
                f"{place}{rows.line_num + 1}: not UTF-8 text, on this line or shortly after it; save the file as UTF-8"
            ) from None
        except csv.Error as error:
            raise DatasetError(f"{place}{rows.line_num}: invalid CSV ({error})") from None


def _check_heading(lines: Iterator[str], place: str, delimiter: str, columns: Collection[str]) -> Iterator[str]:
    """Yield the lines of a table; raises if the header's columns are separated by another character."""
    heading = next(lines, "")
    other = next((question for mark, question in _DELIMITERS.items() if mark in heading), None)
    if other and delimiter not in heading and heading.rstrip("\r\n") not in columns:
        shown = heading.rstrip("\r\n")[:60]
        raise DatasetError(f"{place}1: the header {shown!r} has one column; {other}")
    yield heading
    yield from lines


def _parquet_rows(
    path: Path, columns: Mapping[str, str], also: Mapping[str, str], optional: Sequence[str], list_all: bool
) -> Iterator[SourceRecord]:
    """Yield rows; with `list_all`, rows have all columns if an optional one is missing, to list them in a message."""
    with _open_parquet(path) as table:
        has = table.schema_arrow.names
        if not columns.keys() <= set(has):
            raise DatasetError(f"{path}: {_missing(columns, has)}")
        for setting, field in also.items():
            if field not in has:
                raise DatasetError(f"{path}: {no_query_has(setting, field, [dict.fromkeys(has)])}")
        more = [*also.values(), *(name.partition(".")[0] for name in optional)]
        more = [*has] if list_all and not set(more) <= set(has) else more
        yield from _iter_rows(path, table, list(dict.fromkeys([*columns, *(n for n in more if n in has)])))


def iter_parquet(
    path: Path,
    wanted: Collection[str] | None = None,
    rows: int = 65_536,
    describe_missing: Callable[[Collection[str]], str] | None = None,
) -> Iterator[SourceRecord]:
    """Yield the rows of a Parquet file with all of its columns, or the `wanted` ones; raises `DatasetError`.

    `rows` are read at a time. `describe_missing` takes the names of the columns and returns an error message, or an
    empty text.
    """
    with _open_parquet(path) as table:
        names = table.schema_arrow.names
        if describe_missing and (missing := describe_missing(names)):
            raise DatasetError(f"{path}: {missing}")
        yield from _iter_rows(path, table, [name for name in names if wanted is None or name in wanted], rows)


@contextmanager
def _open_parquet(path: Path) -> Iterator[ParquetFile]:
    import pyarrow
    from pyarrow.parquet import ParquetFile

    try:
        yield ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DatasetError(f"{path}: cannot be read ({error})") from None


def _iter_rows(path: Path, table: ParquetFile, columns: list[str], rows: int = 65_536) -> Iterator[SourceRecord]:
    batches = table.iter_batches(rows, columns=columns)
    for number, fields in enumerate(chain.from_iterable(batch.to_pylist() for batch in batches), start=1):
        yield SourceRecord(f"{path}, row ", number, fields)
