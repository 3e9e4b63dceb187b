"""Read a golden dataset in JSON: curated queries with their expected items, and the items to search.

The file of queries has `metadata` and `queries`, each with `query_id`, `query_text`, `query_type`, `expected_items`
(`item_id` and a `relevance` in words) and, by search type, `expected_items_by_search_type`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus
from runner.datasets import files
from runner.datasets.base import DatasetError, Qrel, Queries, Raw, corpus_of
from runner.datasets.files import Place, PlaceTable, SourceRecord
from runner.datasets.filtering import DocumentFields, read_filters
from runner.datasets.rows import open_table
from runner.datasets.source import SHARED_PATHS, DatasetSource

BUNDLED = "bundled:"
"""The prefix of paths to files that come with this package."""

QUERY_METADATA = ("notes", "expected_count", "expected_count_range")
"""The fields of a query that become metadata."""

_BUNDLE = Path(__file__).parent / "golden"


@settings(frozen=True, config={"extra": "forbid"})
class GoldenJson(DatasetSource):
    """A file of queries (`path`) and a table of items, in any format of `runner.datasets.rows`.

    A path that starts with `bundled:` names a file that comes with this package. An item's title and text are built
    from its fields; `details.themes` reaches into an object, and lists are joined, one value per line.
    `metadata_fields` are shown in reports and not searched. `expected_items` is the required number of items, because
    every measure is wrong with other items than those the queries were written for. For a query whose expected list is
    empty, the right result is an empty one. Without `items`, only a retriever with its own index, such as a search API,
    can search.
    """

    access: ClassVar[Access] = Access(paths=(*SHARED_PATHS, "path", "items"))
    golden: ClassVar[bool] = True

    path: str
    items: str | None = None
    item_id: str = "item_id"
    title_field: str | None = None
    text_fields: tuple[str, ...] = ("headline", "summary", "category", "subcategories", "image_details.extracted_text")
    metadata_fields: tuple[str, ...] = ("category", "headline")
    expected_items: int | None = Field(default=None, ge=1)
    relevance: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=lambda: {"high": 3, "medium": 2, "low": 1}
    )

    @property
    def has_documents(self) -> bool:
        """Return whether there is a file of items."""
        return self.items is not None

    def read(self) -> Raw:
        """Read both files."""
        path, metadata, records = self._read_queries()
        queries = Queries(
            ids=[record.identifier("query_id") for record in records],
            texts=[record.text("query_text") for record in records],
            types=[record.text("query_type") if "query_type" in record.fields else "" for record in records],
            metadata=files.with_named_fields(
                records,
                [{n: record.fields[n] for n in QUERY_METADATA if n in record.fields} for record in records],
                self.query_fields,
            ),
            filters=read_filters(records, self.filter_field),
        )
        fields = DocumentFields(queries.filters, str(path), self.search_fields)
        _check_counts(path, metadata, queries)
        qrels: list[Qrel] = []
        by_search_type: dict[str, list[Qrel]] = {}
        for record in records:
            general, by_type = self._list_expected(record)
            qrels += general
            for search_type, own in by_type.items():
                by_search_type.setdefault(search_type, []).extend(own)
        return Raw(
            corpus=self._corpus(_path(self.items, "items"), fields) if self.items else corpus_of(()),
            queries=queries,
            qrels=qrels,
            judged=queries.ids,
            qrels_by_search_type=by_search_type,
            qrels_name=str(path),
            document_fields=fields.names,
        )

    def iter_places(self, table: PlaceTable) -> Iterator[Place]:
        """Yield the number of each item or query in its file; a judgment is where its query is."""
        if table == "document":
            items = _item_records(_path(self.items, "items")) if self.items else []
            yield from ((record.location, (record.identifier(self.item_id),)) for record in items)
            return
        for record in self._read_queries()[-1]:
            query = record.identifier("query_id")
            if table == "query":
                yield record.location, (query,)
            else:
                general, by_type = self._list_expected(record)
                for _, item, _ in chain(general, *by_type.values()):
                    yield record.location, (query, item)

    def _read_queries(self) -> tuple[Path, object, list[SourceRecord]]:
        """Return the file of queries, its metadata, and its queries."""
        path = _path(self.path, "path")
        content = files.json_content(path)
        if not isinstance(content, dict) or not isinstance(content.get("queries"), list):
            raise DatasetError(f"{path}: expected a JSON object with the list 'queries'")
        return path, content.get("metadata"), files.json_objects(path, "query", content["queries"])

    def _list_expected(self, record: SourceRecord) -> tuple[list[Qrel], dict[str, list[Qrel]]]:
        """Return the expected items of a query for any search type, and for those that it names.

        Without a general list, it is the union of those of the search types. Items that are expected in general but not
        for a search type are judged irrelevant for it, so that an empty list is a judgment too.
        """
        by_type = record._replace(fields=record.mapping("expected_items_by_search_type"))
        own = {kind: self._grades(record, by_type.objects(kind, required=True)) for kind in by_type.fields}
        if record.fields.get("expected_items") is not None or not own:
            general = self._grades(record, record.objects("expected_items", required=True))
            _check_expected_count(record, {len(general)})
        else:
            _check_expected_count(record, {len(grades) for grades in own.values()})
            general = {}
            for grades in own.values():
                general |= {item: max(grade, general.get(item, grade)) for item, grade in grades.items()}
        query = record.identifier("query_id")
        own = {search_type: dict.fromkeys(general, 0) | grades for search_type, grades in own.items()}
        qrels = {search_type: [(query, *grade) for grade in grades.items()] for search_type, grades in own.items()}
        return [(query, *grade) for grade in general.items()], qrels

    def _grades(self, record: SourceRecord, items: Sequence[SourceRecord]) -> dict[str, int]:
        query, grades = record.identifier("query_id"), dict[str, int]()
        for item in items:
            identifier, label = item.identifier("item_id"), item.text("relevance")
            if label not in self.relevance:
                known = ", ".join(self.relevance)
                raise item.fault(
                    f"{query!r} has an item with the unknown relevance {label!r} (known: {known}); correct it, or "
                    "assign a grade with +dataset.relevance.NAME=GRADE"
                )
            if grades.setdefault(identifier, self.relevance[label]) != self.relevance[label]:
                raise item.fault(f"{query!r} lists the item {identifier!r} twice, with different relevance labels")
        return grades

    def _corpus(self, path: Path, fields: DocumentFields) -> Corpus:
        records = _item_records(path)
        if self.expected_items not in (None, len(records)):
            raise DatasetError(
                f"{path}: expected {self.expected_items} items, found {len(records)}. Do the queries belong to "
                "these items? To skip this check, set dataset.expected_items=null"
            )
        shown = [{name: value for name in self.metadata_fields if (value := _at(r.fields, name))} for r in records]
        for known, record in zip(shown, records, strict=True):
            known.update(fields.read(record))
        return replace(corpus_of(self._items(path, records)), metadata=shown if any(shown) else ())

    def _items(self, path: Path, records: Sequence[SourceRecord]) -> Iterator[tuple[str, str, str]]:
        for name in (*([self.title_field] if self.title_field else []), *self.text_fields):
            if records and all(_at(record.fields, name) is None for record in records):
                raise DatasetError(
                    f"{path}: no item has a value in the field {name!r} (dataset.title_field, dataset.text_fields); "
                    f"the first item has {', '.join(records[0].fields)}"
                )
        for record in records:
            title = _text(record, [self.title_field]) if self.title_field else ""
            yield record.identifier(self.item_id), title, _text(record, self.text_fields)


def _path(path: str, setting: str) -> Path:
    if not path.startswith(BUNDLED):
        return files.resolve_path(path, setting)
    return files.resolve_path(_BUNDLE / path.removeprefix(BUNDLED), setting)


def _check_counts(path: Path, metadata: object, queries: Queries) -> None:
    stated = metadata if isinstance(metadata, dict) else {}
    if stated.get("total_queries", len(queries)) != len(queries):
        raise DatasetError(
            f"{path}: metadata.total_queries is {stated['total_queries']}, but the file contains {len(queries)} queries"
        )
    counts = dict(Counter(queries.types))
    if stated.get("query_types", counts) != counts:
        raise DatasetError(f"{path}: metadata.query_types is {stated['query_types']}, but the queries have {counts}")


def _check_expected_count(record: SourceRecord, counts: Collection[int]) -> None:
    """Raise for an expected count that differs from all lists of a query: the general one, or else those by type."""
    query, listed = record.identifier("query_id"), " or ".join(map(str, sorted(counts)))
    exact, allowed = record.fields.get("expected_count"), record.fields.get("expected_count_range")
    if exact is not None and exact not in counts:
        raise record.fault(f"{query!r} has the expected_count {exact}, but lists {listed} items")
    if allowed is None:
        return
    try:
        least, most = allowed
        fits = any(least <= count <= most for count in counts)
    except (TypeError, ValueError):
        raise record.fault(
            f"{query!r} has the expected_count_range {allowed}; write it as [minimum, maximum]"
        ) from None
    if not fits:
        raise record.fault(f"{query!r} has the expected_count_range {allowed}, but lists {listed} items")


def _item_records(path: Path) -> list[SourceRecord]:
    return list(open_table(path, "items").read(None))


def _at(value: object, name: str) -> object:
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _text(record: SourceRecord, names: Sequence[str]) -> str:
    return "\n".join(text for name in names for text in _texts(record, name, _at(record.fields, name)) if text)


def _texts(record: SourceRecord, name: str, value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _texts(record, name, item)
    elif isinstance(value, Mapping):
        raise record.fault(f"{name!r} is an object; name one of its fields, such as {name}.{next(iter(value), 'x')}")
    elif value is not None:
        yield str(value)
