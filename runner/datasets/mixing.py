"""Mix two versions of a dataset: the documents of one with the judgments or the queries of the other.

A query belongs to both versions if its id, text and filter are the same. Judgments differ only where both versions can
have them: a query that one version lacks brings its judgments along, and so does a document that one version lacks.
A removed document therefore takes its judgments with it, and their loss counts as an effect of the documents. If gold
is spans, the spans of one version are found again in the documents of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from retrievers.base import Corpus
from runner.datasets.base import DatasetError, Judgments
from runner.datasets.dataset import Dataset
from runner.datasets.overlap import SpanGold, attach_spans
from runner.datasets.spans import anchor_spans

PARTS = ("documents", "judgments", "queries")
"""The parts of a dataset that can be mixed."""

Grades = Mapping[str, Mapping[str, int]]
"""The grade of each judged document, by query."""


@dataclass(frozen=True, eq=False)
class DatasetPair:
    """Two versions of a dataset with whole documents. A side is 0 for the first version and 1 for the second."""

    first: Dataset
    second: Dataset

    @property
    def sides(self) -> tuple[Dataset, Dataset]:
        """Return both versions."""
        return self.first, self.second

    @cached_property
    def changed(self) -> list[str]:
        """Return the parts that differ."""
        differs = {
            "documents": not _has_same_documents(self),
            "judgments": self._has_other_spans
            if self.has_spans
            else next(self._iter_differing_grades(), None) is not None,
            "queries": dict(_iter_queries(self.first)) != dict(_iter_queries(self.second)),
        }
        return [part for part in PARTS if differs[part]]

    @property
    def has_spans(self) -> bool:
        """Return whether the gold of both versions is spans."""
        return self.first.judgments.spans is not None and self.second.judgments.spans is not None

    @cached_property
    def shared_queries(self) -> frozenset[str]:
        """Return the ids of the queries with the same text and filter in both versions."""
        first, second = (
            {query: (text, condition) for query, (text, _, condition) in _iter_queries(data)} for data in self.sides
        )
        return frozenset(query for query in first if query in second and first[query] == second[query])

    def list_grade_changes(self, search_type: str = "") -> list[tuple[str, str, int | None, int | None]]:
        """Return the changed judgments as query, document and both grades (None: unjudged).

        `search_type` selects the judgments, as in `Judgments.select`. Spans of both versions are compared in the
        documents of the second: a span that these lack is lost, but its judgment has not changed.
        """
        pair = DatasetPair(self.mix(1, 0, 1), self.second) if self.has_spans else self
        return [row[1:] for row in pair._iter_differing_grades([search_type])]

    def list_grades(self, search_type: str = "") -> tuple[Grades, Grades]:
        """Return the grades on both sides for a search type, as in `Judgments.select`."""
        return self._grades.get(search_type, self._grades[""])

    def mix(self, documents: int, judgments: int, queries: int) -> Dataset:
        """Return the dataset that has each of its parts from one side."""
        if documents == judgments == queries:
            return self.sides[documents]
        base = replace(self.sides[documents], corpus=self._corpora[documents], queries=self.sides[queries].queries)
        if self.has_spans:
            return self._mix_spans(base, (documents, judgments, queries))
        tables = {kind: self._mix_grades(kind, documents, judgments, queries) for kind in self._kinds}
        judged = {document for table in tables.values() for grades in table.values() for document in grades}
        unknown = tuple(sorted(judged - base.corpus.positions.keys()))
        places = {**base.corpus.positions, **{name: len(base.corpus) + i for i, name in enumerate(unknown)}}
        numbers = {query: i for i, query in enumerate(base.queries.ids)}

        def build(table: Grades) -> Judgments:
            rows = [(numbers[query], places[d], grade) for query, own in table.items() for d, grade in own.items()]
            return replace(Judgments.of(rows), unknown_documents=unknown)

        by_kind = {kind: build(table) for kind, table in tables.items()}
        return replace(base, judgments=replace(by_kind.pop(""), by_search_type=by_kind))

    def _mix_spans(self, base: Dataset, parts: tuple[int, int, int]) -> Dataset:
        """Return a dataset with the spans of the mixture, found again in its documents."""
        golds = [_get_spans(data) for data in self.sides]
        wanted = {*base.queries.ids}
        spans = [
            anchored.span
            for side, gold in enumerate(golds)
            for anchored in gold.anchored
            if anchored.span.query in wanted and self._applies(anchored.span.query, anchored.span.document, side, parts)
        ]
        gold = golds[parts[1]]
        placed = anchor_spans(spans, base.corpus, gold.similarity)
        lost = {anchored.span.name for anchored in placed if anchored.anchor.is_lost}
        return attach_spans(base, placed, lost, gold.threshold, gold.similarity)

    @property
    def _has_other_spans(self) -> bool:
        """Return whether the spans of shared queries differ in documents that both versions have, or the threshold."""
        golds = [_get_spans(data) for data in self.sides]
        rows = [
            Counter(
                replace(anchored.span, location="")
                for anchored in gold.anchored
                if anchored.span.query in self.shared_queries and self._owns(anchored.span.document) is None
            )
            for gold in golds
        ]
        return rows[0] != rows[1] or golds[0].threshold != golds[1].threshold

    @cached_property
    def _corpora(self) -> tuple[Corpus, Corpus]:
        """Return the documents of both sides, each with the fields that the queries of either side filter by."""
        first, second = self.first.corpus, self.second.corpus
        if first.filter_fields == second.filter_fields:
            return first, second
        fields = tuple(sorted({*first.filter_fields, *second.filter_fields}))
        return replace(first, filter_fields=fields), replace(second, filter_fields=fields)

    @cached_property
    def _kinds(self) -> list[str]:
        """Return the search types with judgments of their own, after "" for the general judgments."""
        return ["", *sorted({*self.first.judgments.by_search_type, *self.second.judgments.by_search_type})]

    @cached_property
    def _grades(self) -> dict[str, tuple[Grades, Grades]]:
        """Return the grades on both sides, by search type."""
        return {kind: (_list_grades(self.first, kind), _list_grades(self.second, kind)) for kind in self._kinds}

    def _owns(self, document: str) -> int | None:
        """Return the only side that has a document; None if both have it, or neither."""
        first, second = (document in data.corpus.positions for data in self.sides)
        return None if first == second else int(second)

    def _iter_differing_grades(
        self, kinds: list[str] | None = None
    ) -> Iterator[tuple[str, str, str, int | None, int | None]]:
        for kind in self._kinds if kinds is None else kinds:
            first, second = self.list_grades(kind)
            for query in (query for query in self.first.queries.ids if query in self.shared_queries):
                old, new = first.get(query, {}), second.get(query, {})
                for document in dict.fromkeys((*old, *new)):
                    if old.get(document) != new.get(document) and self._owns(document) is None:
                        yield kind, query, document, old.get(document), new.get(document)

    def _mix_grades(self, kind: str, documents: int, judgments: int, queries: int) -> dict[str, dict[str, int]]:
        tables, mixed = self._grades[kind], {}
        for query in self.sides[queries].queries.ids:
            mixed[query] = {
                document: grade
                for side, table in enumerate(tables)
                for document, grade in table.get(query, {}).items()
                if self._applies(query, document, side, (documents, judgments, queries))
            }
        return mixed

    def _applies(self, query: str, document: str, side: int, parts: tuple[int, int, int]) -> bool:
        """Return whether a judgment of one side is part of the mixture."""
        documents, judgments, queries = parts
        owner = self._owns(document)
        if query in self.shared_queries:
            return side == (judgments if owner is None else documents)
        return side == queries and not (owner == side != documents)


def _get_spans(data: Dataset) -> SpanGold:
    """Return the spans of a version whose gold is spans."""
    if data.judgments.spans is None:
        raise DatasetError(f"{data.name}: its gold is not spans, so it cannot be mixed with gold in spans")
    return data.judgments.spans


def _has_same_documents(pair: DatasetPair) -> bool:
    """Return whether searches of both versions see the same documents; their order has no influence."""
    first, second = (data.corpus for data in pair.sides)
    if pair.first.exclude_self != pair.second.exclude_self or _read_fields(pair.first) != _read_fields(pair.second):
        return False
    return first.fingerprint == second.fingerprint or describe_documents(first) == describe_documents(second)


def describe_documents(corpus: Corpus) -> dict[str, tuple[str, ...]]:
    """Return the title, the text and the other searched fields of each document, by id."""
    columns = [corpus.read_field(name) for name in ("title", "text", *corpus.search_fields)]
    return dict(zip(corpus.ids, zip(*columns, strict=True), strict=True))


def _read_fields(data: Dataset) -> Mapping[str, object]:
    """Return the metadata of each document that has any, if queries filter by them."""
    corpus = data.corpus
    if not any(data.queries.filters):
        return {}
    return {name: fields for name, fields in zip(corpus.ids, corpus.metadata, strict=False) if fields}


def _iter_queries(data: Dataset) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield the id of each query with its text, type and filter."""
    queries = data.queries
    filters = queries.filters or [None] * len(queries)
    for query, text, kind, condition in zip(queries.ids, queries.texts, queries.types, filters, strict=True):
        yield query, (text, kind, str(condition or ""))


def _list_grades(data: Dataset, kind: str) -> dict[str, dict[str, int]]:
    names = [*data.corpus.ids, *data.judgments.unknown_documents]
    grades: dict[str, dict[str, int]] = {}
    for query, document, grade in data.judgments.select(kind).list_rows():
        grades.setdefault(data.queries.ids[query], {})[names[document]] = grade
    return grades
