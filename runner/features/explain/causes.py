"""What changed between two versions of a dataset, and which gold fell because of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from retrievers.base import NOTHING
from runner.comparison.comparability import score_queries
from runner.datasets.mixing import DatasetPair, describe_documents
from runner.evaluation.result import Result

ADDED, REMOVED, CHANGED, REWORDED = "added", "removed", "changed", "reworded"


@dataclass(frozen=True)
class DisplacedGold:
    """A gold document with new or changed documents above it.

    Ranks count from 1, and None stands for a document outside the ranking. `without` is the rank without the documents
    in `by`, best first. `unjudged` are those of them without a judgment for the query. `difference` is that of the
    primary measure.
    """

    query: str
    gold: str
    before: int
    after: int | None
    without: int | None
    by: Sequence[str]
    unjudged: Sequence[str]
    difference: float


@dataclass(frozen=True)
class GoldChange:
    """A gold document that was removed, added or changed, with its ranks and the difference of the primary measure."""

    query: str
    gold: str
    change: str
    before: int | None
    after: int | None
    difference: float


@dataclass(frozen=True)
class JudgmentChange:
    """A judgment that changed (None: unjudged), with the difference of the primary measure of its query."""

    query: str
    document: str
    before: int | None
    after: int | None
    difference: float


@dataclass(frozen=True)
class QueryChange:
    """A query that was added, removed or reworded, with its value of the primary measure before and after."""

    query: str
    text: str
    change: str
    before: float
    after: float


@dataclass(frozen=True)
class Causes:
    """The changes of the data by kind; `documents` has the ids of the documents added, removed and changed."""

    documents: Mapping[str, Sequence[str]]
    displaced: Sequence[DisplacedGold] = ()
    gold: Sequence[GoldChange] = ()
    judgments: Sequence[JudgmentChange] = ()
    queries: Sequence[QueryChange] = ()

    @property
    def displacing(self) -> list[tuple[str, int]]:
        """Return the documents that displaced gold, each with the number of gold documents, most first."""
        counts = Counter(document for one in self.displaced for document in one.by)
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


@dataclass(frozen=True, eq=False)
class DataContrast:
    """Two evaluations on the same queries that differ in one part of the data; the same twice if it did not change."""

    before: Result
    after: Result

    def list_differences(self, measure: str) -> dict[str, float]:
        """Return the difference of a measure for each query."""
        before, after = (
            dict(zip(result.queries.ids, score_queries(result, measure), strict=True))
            for result in (self.before, self.after)
        )
        return {query: float(after[query] - before[query]) for query in after}


def find_causes(
    pair: DatasetPair, ends: tuple[Result, Result], by_documents: DataContrast, by_judgments: DataContrast, measure: str
) -> Causes:
    """Find what changed in the data, and its effect on single queries.

    `ends` are evaluations of both sides. The contrasts have the candidate's settings and data on both sides, except
    for the documents or the judgments. Gold is that of the search type of the results.
    """
    documents = list_document_changes(pair)
    rows = [] if by_documents.before is by_documents.after else list(_iter_gold(pair, by_documents))
    return Causes(
        documents=documents,
        displaced=_find_displaced_gold(rows, documents, by_documents.list_differences(measure)),
        gold=_find_gold_changes(rows, documents, by_documents.list_differences(measure)),
        judgments=_find_judgment_changes(pair, by_judgments, measure),
        queries=_find_query_changes(pair, ends, measure),
    )


def list_document_changes(pair: DatasetPair) -> dict[str, list[str]]:
    """Return the ids of the documents that were added, removed and changed."""
    old, new = (describe_documents(data.corpus) for data in pair.sides)
    return {
        ADDED: [name for name in new if name not in old],
        REMOVED: [name for name in old if name not in new],
        CHANGED: [name for name in new if name in old and old[name] != new[name]],
    }


@dataclass(frozen=True)
class _Gold:
    """A gold document of a query, the documents that are judged for the query, and the ranks of all hits by id."""

    query: str
    document: str
    judged: Collection[str]
    before: Mapping[str, int]
    after: Mapping[str, int]


def _iter_gold(pair: DatasetPair, contrast: DataContrast) -> Iterator[_Gold]:
    """Yield the gold of shared queries on either side."""
    first, second = pair.list_grades(contrast.after.search_type)
    places = [{query: i for i, query in enumerate(r.queries.ids)} for r in (contrast.before, contrast.after)]
    for query in (query for query in contrast.after.queries.ids if query in pair.shared_queries):
        grades = {**first.get(query, {}), **second.get(query, {})}
        gold = [name for side in (first, second) for name, grade in side.get(query, {}).items() if grade > 0]
        before = _rank_documents(contrast.before, places[0][query])
        after = _rank_documents(contrast.after, places[1][query])
        for document in dict.fromkeys(gold):
            yield _Gold(query, document, grades, before, after)


def _rank_documents(result: Result, query: int) -> dict[str, int]:
    """Return the rank of each document, counted from 1; a document has the rank of its first chunk."""
    ranks: dict[str, int] = {}
    if result.hits is not None:
        names = result.hits.judged
        for rank, document in enumerate(result.hits.rankings.documents[query].tolist(), start=1):
            if document != NOTHING:
                ranks.setdefault(names[document], rank)
    return ranks


def _find_displaced_gold(
    rows: Sequence[_Gold], changes: Mapping[str, Sequence[str]], differences: Mapping[str, float]
) -> list[DisplacedGold]:
    """Return the unchanged gold that has new or changed documents above it, the largest loss first.

    A document counts if it is above the gold now and was not before. The gold need not have fallen: a document above it
    may have been removed at the same time.
    """
    new, touched = {*changes[ADDED], *changes[CHANGED]}, {name for names in changes.values() for name in names}
    displaced = []
    for row in rows:
        old, now = row.before.get(row.document), row.after.get(row.document)
        if old is None or row.document in touched:
            continue
        last = len(row.after) + 1 if now is None else now
        by = [
            document
            for document, rank in row.after.items()
            if rank < last and document in new and row.before.get(document, old) >= old
        ]
        if by:
            unjudged = [document for document in by if document not in row.judged]
            without = None if now is None else now - len(by)
            displaced.append(
                DisplacedGold(row.query, row.document, old, now, without, by, unjudged, differences[row.query])
            )
    return sorted(displaced, key=_sort_by_loss)


def _find_gold_changes(
    rows: Sequence[_Gold], changes: Mapping[str, Sequence[str]], differences: Mapping[str, float]
) -> list[GoldChange]:
    """Return the gold that was removed, added or changed, the largest loss first."""
    kinds = {name: kind for kind, names in changes.items() for name in names}
    gold = [
        GoldChange(
            row.query,
            row.document,
            kinds[row.document],
            row.before.get(row.document),
            row.after.get(row.document),
            differences[row.query],
        )
        for row in rows
        if row.document in kinds
    ]
    return sorted(gold, key=_sort_by_loss)


def _find_judgment_changes(pair: DatasetPair, contrast: DataContrast, measure: str) -> list[JudgmentChange]:
    differences = contrast.list_differences(measure)
    changes = [
        JudgmentChange(query, document, before, after, differences[query])
        for query, document, before, after in pair.list_grade_changes(contrast.after.search_type)
    ]
    return sorted(changes, key=_sort_by_loss)


def _find_query_changes(pair: DatasetPair, ends: tuple[Result, Result], measure: str) -> list[QueryChange]:
    """Return the queries that differ, the added ones first."""
    texts = [dict(zip(data.queries.ids, data.queries.texts, strict=True)) for data in pair.sides]
    values = [dict(zip(end.queries.ids, score_queries(end, measure).tolist(), strict=True)) for end in ends]
    changes = [
        QueryChange(
            query,
            texts[query in texts[1]][query],
            REWORDED if query in texts[0] and query in texts[1] else ADDED if query in texts[1] else REMOVED,
            values[0].get(query, math.nan),
            values[1].get(query, math.nan),
        )
        for query in dict.fromkeys((*texts[1], *texts[0]))
        if query not in pair.shared_queries
    ]
    return sorted(changes, key=lambda change: (ADDED, REWORDED, REMOVED).index(change.change))


def _sort_by_loss(row: DisplacedGold | GoldChange | JudgmentChange) -> tuple[float, str, str]:
    document = row.document if isinstance(row, JudgmentChange) else row.gold
    return 0.0 if math.isnan(row.difference) else row.difference, row.query, document
