"""Datasets given in Python: documents, queries and judgments as mappings, records, data frames or a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, RepeatedIdError, RetrieverError
from retrievers.strict_values import parse_id
from runner.datasets.assembly import assemble, describe_repeated_id
from runner.datasets.base import (
    Dataset,
    DatasetError,
    GivenDocuments,
    GivenQrels,
    GivenQueries,
    Queries,
    Raw,
    corpus_of,
)
from runner.datasets.files import SourceRecord, grade_of
from runner.datasets.filtering import DocumentFields, read_filters
from runner.datasets.source import SHARED_PATHS, DatasetSource

_ID = ("_id", "id")
_PAIR = (("query_id", "query-id", "query"), ("document_id", "corpus-id", "document"))
"""The columns of judgments, by preference."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class GivenDataset(DatasetSource):
    """A dataset in the memory of this process, identified by the fingerprint of its `content`."""

    access: ClassVar[Access] = Access(paths=SHARED_PATHS)

    content: str
    dataset: Any = Field(default=None, repr=False)  # a Dataset; with this type, pydantic would check every field

    @property
    def origin(self) -> str:
        """Return the name."""
        return self.name or "given"

    def load(self) -> Dataset:
        """Return the dataset; raises `DatasetError` in a process where it does not exist."""
        if self.dataset is None:
            raise DatasetError(
                f"dataset=_given: {self.name} exists only in the Python process that created it; save it to files "
                "and load them, for example with dataset=jsonl"
            )
        given: Dataset = self.dataset
        if given.split != self.split:
            raise DatasetError(
                f"dataset.split={self.split}: {self.name} was created in Python with the split {given.split}"
            )
        return given

    def read(self) -> Raw:
        """Raise an error, because there are no files."""
        raise DatasetError("a dataset created in Python has no files; save it, and load the files with dataset=jsonl")


def build_given(
    corpus: GivenDocuments, queries: GivenQueries, qrels: GivenQrels, name: str = "given", split: str = "test"
) -> Dataset:
    """Return documents, queries and judgments as a dataset; raises `DatasetError` if they do not fit together."""
    source = GivenDataset(name=name, split=split, content="")
    try:
        read = _read_queries(queries, source.filter_field)
        fields = DocumentFields(read, "queries")
        documents, judgments = _read_documents(corpus, fields), list(_iter_qrels(qrels))
        raw = Raw(documents, read, judgments, qrels_name="qrels", document_fields=fields.names)
        return assemble(source, raw)
    except RepeatedIdError as error:
        raise DatasetError(describe_repeated_id(source, "document", error.identifier)) from None
    except RetrieverError as error:
        raise DatasetError(f"{name}: {error}") from None


def _read_documents(documents: GivenDocuments, fields: DocumentFields) -> Corpus:
    if isinstance(documents, Corpus):
        return documents
    if isinstance(documents, Mapping):
        rows = [{"text": value} if isinstance(value, str) else value for value in documents.values()]
        places = [f"corpus[{name!r}]" for name in documents]
        ids = [_parse_id(name, place) for name, place in zip(documents, places, strict=True)]
    else:
        rows = _list_records(documents, "corpus")
        places = [f"corpus[{i}]" for i in range(len(rows))]
        ids = [_parse_id(_get(row, _ID, place), place) for row, place in zip(rows, places, strict=True)]
    return corpus_of(
        (name, *_title_and_text(row, place), fields.read(SourceRecord("corpus, row ", number, row)))
        for number, (name, row, place) in enumerate(zip(ids, rows, places, strict=True), start=1)
    )


def _read_queries(queries: GivenQueries, filter_field: str | None) -> Queries:
    if isinstance(queries, Queries):
        return queries
    if isinstance(queries, Mapping):
        pairs = [(_parse_id(name, f"queries[{name!r}]"), text) for name, text in queries.items()]
        for name, text in pairs:
            if not isinstance(text, str):
                raise DatasetError(f"queries[{name!r}]: should be text, not {type(text).__name__}")
        return Queries([name for name, _ in pairs], [text for _, text in pairs], [""] * len(pairs))
    rows = _list_records(queries, "queries")
    places = [f"queries[{i}]" for i in range(len(rows))]
    ids = [_parse_id(_get(row, _ID, place), place) for row, place in zip(rows, places, strict=True)]
    texts = [str(_get(row, ("text", "query"), place)) for row, place in zip(rows, places, strict=True)]
    records = [SourceRecord("queries, row ", number, row) for number, row in enumerate(rows, start=1)]
    types = [str(row.get("type") or "") for row in rows]
    return Queries(ids, texts, types, filters=read_filters(records, filter_field))


def _iter_qrels(qrels: GivenQrels) -> Iterable[tuple[str, str, int]]:
    if isinstance(qrels, Mapping):
        for query_id, judged in qrels.items():
            grades = judged if isinstance(judged, Mapping) else dict.fromkeys(judged, 1)
            if isinstance(judged, str):
                raise DatasetError(
                    f"qrels[{query_id!r}]: should be a mapping of document ids to grades, or a list of ids"
                )
            for name, grade in grades.items():
                place = f"qrels[{query_id!r}][{name!r}]"
                yield _parse_id(query_id, place), _parse_id(name, place), _parse_grade(grade, place)
        return
    for i, row in enumerate(_list_rows(qrels)):
        place = f"qrels[{i}]"
        if isinstance(row, Mapping):
            pair = [_get(row, names, place) for names in _PAIR]
            grade = next((row[name] for name in ("grade", "score", "relevance") if name in row), 1)
        elif isinstance(row, Sequence) and not isinstance(row, str) and len(row) == 3:
            *pair, grade = row
        else:
            raise DatasetError(f"{place}: should be (query id, document id, grade), not {row!r:.100}")
        query, document = (_parse_id(value, place) for value in pair)
        yield query, document, _parse_grade(grade, place)


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


def _title_and_text(record: Mapping[str, Any], place: str) -> tuple[str, str]:
    title = record.get("title")
    return title if isinstance(title, str) else "", str(_get(record, ("text",), place))


def _get(record: Mapping[str, Any], names: Sequence[str], place: str) -> object:
    """Return the first of these columns that a record has; raises `DatasetError`."""
    value = next((record[name] for name in names if name in record), None)
    if value is None or value != value:  # a data frame has NaN for a missing value
        raise DatasetError(f"{place}: has no {' or '.join(names)}; it has {', '.join(map(str, record)) or 'nothing'}")
    return value


def _list_records(rows: object, place: str) -> list[Mapping[str, Any]]:
    records = _list_rows(rows)
    for i, row in enumerate(records):
        if not isinstance(row, Mapping):
            raise DatasetError(f"{place}[{i}]: should have named columns, such as id and text, not {row!r:.100}")
    return records


def _list_rows(rows: Any) -> list[Any]:  # noqa: ANN401 (any rows)
    """Return rows as a list; rows of a data frame become mappings."""
    if callable(getattr(rows, "to_dict", None)):
        return list(rows.to_dict("records"))
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise DatasetError(f"a dataset needs mappings, lists or data frames, not {type(rows).__name__}")
    return list(rows)
