"""Read datasets given in Python: documents, queries and judgments as mappings, records, data frames or a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus, RepeatedIdError, RetrieverError
from retrievers.strict_values import parse_id
from runner.datasets.assembly import Parts, assemble, describe_repeated_id
from runner.datasets.base import DatasetError, Queries, Raw, corpus_of
from runner.datasets.files import Place, PlaceTable, SourceRecord, grade_of
from runner.datasets.filtering import DocumentFields, read_filters
from runner.datasets.source_settings import SourceSettings

Records: TypeAlias = Iterable[Mapping[str, Any]]
"""Rows with named columns, such as records; a data frame works too."""

GivenDocuments: TypeAlias = Corpus | Mapping[str, str | Mapping[str, str]] | Records
GivenQueries: TypeAlias = Queries | Mapping[str, str] | Records
GivenQrels: TypeAlias = Mapping[str, Mapping[str, int] | Iterable[str]] | Iterable[tuple[str, str, int]] | Records

_ID = ("_id", "id")
_NOTHING = ("NAType", "NaTType")
"""The types of pandas for a missing value, besides NaN."""
_PAIR = (("query_id", "query-id", "query"), ("document_id", "corpus-id", "document"))
"""The columns of judgments, by preference."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class _GivenValues(SourceSettings):
    """Values before they are checked; `rows` are the places of documents, queries and judgments, by table."""

    rows: Any = Field(default=None, repr=False)

    @property
    def origin(self) -> str:
        """Return the name."""
        return self.name or "given"

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the place of each document, query or judgment, such as corpus[0]."""
        yield from self.rows.get(table, ())


class _Value(SourceRecord):
    """The columns of a value, with its place, such as corpus[0] or queries['q']."""

    @property
    def location(self) -> str:
        """Return the place."""
        return self.place


def read_values(corpus: GivenDocuments, queries: GivenQueries, qrels: GivenQrels, name: str, split: str) -> Parts:
    """Return documents, queries and judgments as the parts of a dataset, as in `Dataset.of`; raises `DatasetError`."""
    rows: dict[PlaceTable, list[Place]] = {}
    source = _GivenValues(name=name, split=split, rows=rows)
    try:
        read = _read_queries(queries, source.filter_field, rows)
        fields = DocumentFields(read.filters, "queries")
        documents, judged = _read_documents(corpus, fields, rows), list(_iter_qrels(qrels))
        rows["judgment"] = [(place, (query, document)) for place, query, document, _ in judged]
        judgments = [(query, document, grade) for _, query, document, grade in judged]
        raw = Raw(documents, read, judgments, qrels_name="qrels", document_fields=fields.names)
        return assemble(source, raw)
    except RepeatedIdError as error:
        raise DatasetError(describe_repeated_id(source, "document", error.identifier)) from None
    except RetrieverError as error:
        raise DatasetError(f"{name}: {error}") from None


def _read_documents(documents: GivenDocuments, fields: DocumentFields, rows: dict[PlaceTable, list[Place]]) -> Corpus:
    if isinstance(documents, Corpus):
        return documents
    records = _list_records(documents, "corpus", has_title=True)
    ids = [record.identifier(*_ID) for record in records]
    rows["document"] = [(record.location, (name,)) for name, record in zip(ids, records, strict=True)]
    return corpus_of(
        (name, record.text("title") if "title" in record.fields else "", record.text("text"), fields.read(record))
        for name, record in zip(ids, records, strict=True)
    )


def _read_queries(queries: GivenQueries, filter_field: str | None, rows: dict[PlaceTable, list[Place]]) -> Queries:
    if isinstance(queries, Queries):
        return queries
    records = _list_records(queries, "queries")
    ids = [record.identifier(*_ID) for record in records]
    rows["query"] = [(record.location, (name,)) for name, record in zip(ids, records, strict=True)]
    texts = [record.text("text", "query") for record in records]
    types = [str(record.fields.get("type") or "") for record in records]
    return Queries(ids, texts, types, filters=read_filters(records, filter_field))


def _iter_qrels(qrels: GivenQrels) -> Iterator[tuple[str, str, str, int]]:
    """Yield the place, the ids and the grade of each judgment."""
    if isinstance(qrels, Mapping):
        for query_id, judged in qrels.items():
            if isinstance(judged, str) or not isinstance(judged, Iterable):
                raise DatasetError(
                    f"qrels[{query_id!r}]: should be a mapping of document ids to grades, or a list of ids"
                )
            grades = judged if isinstance(judged, Mapping) else dict.fromkeys(judged, 1)
            for name, grade in grades.items():
                place = f"qrels[{query_id!r}][{name!r}]"
                yield place, _parse_id(query_id, place), _parse_id(name, place), _parse_grade(grade, place)
        return
    for i, row in enumerate(_list_rows(qrels)):
        place = f"qrels[{i}]"
        if isinstance(row, Mapping):
            record = _Value(place, i, _drop_missing(row))
            pair = [record.value(*names) for names in _PAIR]
            grade = next((row[name] for name in ("grade", "score", "relevance") if name in row), 1)
        elif isinstance(row, Sequence) and not isinstance(row, str) and len(row) == 3:
            *pair, grade = row
        else:
            raise DatasetError(f"{place}: should be (query id, document id, grade), not {row!r:.100}")
        query, document = (_parse_id(value, place) for value in pair)
        yield place, query, document, _parse_grade(grade, place)


def _parse_id(value: object, place: str) -> str:
    try:
        return parse_id(value)
    except ValueError as error:
        raise DatasetError(f"{place}: {error}") from None


def _parse_grade(grade: object, place: str) -> int:
    try:
        return grade_of(grade)
    except ValueError as error:
        raise DatasetError(f"{place}: {error}") from None


def _list_records(rows: object, place: str, has_title: bool = False) -> list[_Value]:
    """Return documents or queries, given by id or as rows; with `has_title`, a mapping may have titles and texts."""
    if isinstance(rows, Mapping):
        named = {name: {"text": value} if isinstance(value, str) else value for name, value in rows.items()}
        for name, row in named.items():
            if not isinstance(row, Mapping) or not (has_title or isinstance(rows[name], str)):
                raise DatasetError(f"{place}[{name!r}]: should be text, not {type(row).__name__}")
        return [
            _Value(f"{place}[{name!r}]", number, {**_drop_missing(row), "_id": name})
            for number, (name, row) in enumerate(named.items())
        ]
    records = _list_rows(rows)
    for i, row in enumerate(records):
        if not isinstance(row, Mapping):
            raise DatasetError(f"{place}[{i}]: should have named columns, such as id and text, not {row!r:.100}")
    return [_Value(f"{place}[{i}]", i, _drop_missing(row)) for i, row in enumerate(records)]


def _drop_missing(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that have a value: a data frame has NaN, NA or NaT for a missing one."""
    return {
        name: value
        for name, value in row.items()
        if not (value is None or type(value).__name__ in _NOTHING or (isinstance(value, float) and value != value))
    }


def _list_rows(rows: Any) -> list[Any]:  # noqa: ANN401 (any rows)
    """Return rows as a list; rows of a data frame become mappings."""
    if callable(getattr(rows, "to_dict", None)):
        return list(rows.to_dict("records"))
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise DatasetError(f"a dataset needs mappings, lists or data frames, not {type(rows).__name__}")
    return list(rows)
