"""Read the filters of queries from files, and the document fields that filters or settings name.

The queries of a format are read first, so that only the named fields of its documents are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from retrievers.base import Corpus
from retrievers.filters import Condition, Filter, FilterError, convert_value, list_kinds, parse_filter
from runner.datasets.base import DatasetError, Judgments, Queries
from runner.datasets.files import SourceRecord

METADATA = "metadata"
"""The field of a record that may contain further fields."""


def read_filters(records: Sequence[SourceRecord], field: str | None) -> Sequence[Filter | None]:
    """Return the filter of each query, from its own field or its metadata; empty if no query has one."""
    there = {*chain.from_iterable(record.fields for record in records)}
    if field is None or not there & {field, field.partition(".")[0], METADATA}:
        return ()
    filters = [_read_filter(record, field) for record in records]
    return filters if any(filters) else ()


def _read_filter(record: SourceRecord, field: str) -> Filter | None:
    try:
        return parse_filter(_find_value(record.fields, field))
    except FilterError as error:
        raise record.fault(f"{field!r}: {error}") from None


def _find_value(fields: Mapping[str, Any], name: str) -> object:
    """Return a field of a record or of its metadata, possibly nested (`details.year`); None if missing."""
    for part in (fields, fields.get(METADATA)):
        value: Any = part
        for step in [name] if isinstance(part, Mapping) and name in part else name.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


_NO_FIELDS: Mapping[str, Any] = {}


class DocumentFields:
    """Reads the document fields that filters name, and the `searched` fields, and records the names of all fields.

    Raises `DatasetError` if filters compare a field with values of different types.
    """

    def __init__(self, filters: Sequence[Filter | None], name: str, searched: Sequence[str] = ()) -> None:
        try:
            self._kinds = list_kinds(filters)
        except FilterError as error:
            raise DatasetError(f"{name}: {error}") from None
        self._searched = [name for name in searched if name not in self._kinds]
        self.names: dict[str, None] = {}

    @property
    def field_names(self) -> Collection[str]:
        """Return the fields that are read."""
        return [*self._kinds, *self._searched]

    def read(self, record: SourceRecord) -> Mapping[str, Any]:
        """Return the fields of a document that filters name or that are searched."""
        if not self._kinds and not self._searched:
            return _NO_FIELDS
        self.names.update(dict.fromkeys(record.fields))
        if isinstance(others := record.fields.get(METADATA), Mapping):
            self.names.update(dict.fromkeys(map(str, others)))
        texts = {name: _find_value(record.fields, name) for name in self._searched}
        metadata: dict[str, object] = {name: value for name, value in texts.items() if value is not None}
        if nested := next((name for name, value in metadata.items() if isinstance(value, Mapping)), None):
            raise record.fault(
                f"{nested!r} (dataset.search_fields): expected text, found an object; name one of its fields"
            )
        for name, kind in self._kinds.items():
            try:
                value = convert_value(_find_value(record.fields, name), kind)
            except FilterError as error:
                raise record.fault(f"{name!r}: {error}") from None
            if value is not None:
                metadata[name] = value
        return metadata


def check_search_fields(corpus: Corpus, searched: Sequence[str], names: Iterable[str], name: str) -> Corpus:
    """Return a corpus with the fields to search besides title and text; raises `DatasetError` if one is missing.

    `names` (all fields of documents) and `name` (of the dataset) are for messages.
    """
    if not searched or not len(corpus):
        return corpus
    known = sorted({*names, *(str(key) for row in corpus.metadata for key in row)} - {METADATA})
    for field in searched:
        if not any(row.get(field) for row in corpus.metadata):
            raise DatasetError(
                f"{name}: dataset.search_fields={field}: no document has this field; the fields are "
                f"{', '.join(known) or 'none'}"
            )
    return replace(corpus, search_fields=tuple(searched))


def check_fields(
    corpus: Corpus, queries: Queries, names: Iterable[str], name: str, locate: Callable[[str], str]
) -> Corpus:
    """Return a corpus with the fields that filters name; raises `DatasetError` if they do not fit its metadata.

    `names` (all fields of documents) and `name` (of the dataset) are for messages; `locate` says where a query is.
    """
    if not any(queries.filters) or not len(corpus):
        return corpus
    corpus = replace(corpus, filter_fields=tuple(sorted({c.field for f in queries.filters if f for c in f.conditions})))
    known = sorted({*names, *(str(key) for row in corpus.metadata for key in row)} - {"metadata"})
    for identifier, own in zip(queries.ids, queries.filters, strict=True):
        for condition in own.conditions if own is not None else ():
            if problem := _find_problem(corpus, condition, known, name):
                raise DatasetError(f"{locate(identifier)}: filter: {problem}")
    return corpus


def _find_problem(corpus: Corpus, condition: Condition, known: Sequence[str], name: str) -> str:
    """Return why a condition does not fit the metadata of documents; "" if it does."""
    try:
        kind = corpus.fields.read(condition.field).kind
    except FilterError as error:
        raise DatasetError(f"{name}: {error}") from None
    if kind is None:
        return f"no document has the field {condition.field!r}; the fields are {', '.join(known) or 'none'}"
    if kind != condition.kind:
        return f"{condition.field!r} is compared with {condition.kind} values, but the documents have {kind} values"
    return ""


def find_gold_outside(corpus: Corpus, queries: Queries, judgments: Judgments) -> list[tuple[str, str]]:
    """Return the (query, document) ids of gold documents that fail the filter of their query."""
    outside: list[tuple[str, str]] = []
    if not any(queries.filters):
        return outside
    gold = (judgments.grades > 0) & (judgments.documents < len(corpus))
    documents = judgments.documents[gold]
    bounds = np.searchsorted(judgments.queries[gold], np.arange(len(queries) + 1))
    for query, own in enumerate(queries.filters):
        if own is not None:
            golds = documents[bounds[query] : bounds[query + 1]]
            failing = golds[~corpus.fields.select(own)[golds]]
            outside += [(queries.ids[query], corpus.ids[document]) for document in failing.tolist()]
    return outside
