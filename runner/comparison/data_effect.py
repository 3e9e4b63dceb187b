"""Separate the effect of changed data on a baseline from the effect of code and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from runner.comparison.comparability import (
    NotComparable,
    find_gold_differences,
    list_texts_and_types,
    reorder_queries,
    score_queries,
)
from runner.comparison.compare import Comparison, Floats, TableStatistics, build_comparison, compute_mean
from runner.comparison.headline import select_headline
from runner.comparison.notes import describe_dataset, list_some
from runner.datasets.document_hashes import DocumentChanges, count_changes
from runner.evaluation.result import Result


@dataclass(frozen=True)
class Shares:
    """A mean in the recorded baseline, the re-evaluated baseline and each candidate, over the same queries."""

    recorded: float
    re_evaluated: float
    candidates: Sequence[float]

    @property
    def data(self) -> float:
        """Return the effect of the data."""
        return self.re_evaluated - self.recorded

    @property
    def code(self) -> Sequence[float]:
        """Return the effect of code and settings in each candidate."""
        return [mean - self.re_evaluated for mean in self.candidates]


@dataclass(frozen=True, eq=False)
class DataEffect:
    """What changed in the data since a baseline was recorded, and the effect on the baseline.

    `changes` are the parts that changed. `comparison` compares the re-evaluated baseline with the recorded one, and
    `candidates` are the results of the candidates, both over the shared queries. `labels` are those of the candidates.
    """

    changes: Sequence[str]
    comparison: Comparison
    candidates: Sequence[Result]
    labels: Sequence[str]

    @property
    def measures(self) -> list[str]:
        """Return the measures that all results have, the primary one first."""
        return list(self.comparison.table)

    def split(self, measure: str) -> Shares:
        """Return a measure's means over the queries that count in all results."""
        results = [*self.comparison.results, *self.candidates]
        scores: Floats = np.array([score_queries(result, measure) for result in results])
        scores[:, np.isnan(scores).any(axis=0)] = np.nan
        recorded, re_evaluated, *candidates = map(compute_mean, scores)
        return Shares(recorded, re_evaluated, candidates)


def measure_data_effect(
    recorded: Result, again: Result, candidates: Sequence[Result], labels: Sequence[str], against: Comparison
) -> DataEffect:
    """Compare the baseline evaluated `again` with the `recorded` one, with the measures and statistics of `against`.

    Raises `NotComparable` if they share no query.
    """
    shared = check_shared_queries(recorded, again)
    pair = [reorder_queries(result, shared) for result in (recorded, again)]
    shown = select_headline(against.primary, against.table)
    measures = [m for m in shown if m == against.primary or all(_has_values(result, m) for result in pair)]
    return DataEffect(
        changes=describe_changes(recorded, again),
        comparison=_compare(pair, measures, against.statistics),
        candidates=[reorder_queries(candidate, shared) for candidate in candidates],
        labels=labels,
    )


def check_shared_queries(before: Result, after: Result) -> list[str]:
    """Return the ids of the queries with the same text in both results; raises `NotComparable` if there are none."""
    old, new = list_texts_and_types(before.queries), list_texts_and_types(after.queries)
    shared = [query for query in new if query in old and old[query][0] == new[query][0]]
    if not shared:
        raise NotComparable(f"{describe_dataset(before)} and {describe_dataset(after)} have no query in common")
    return shared


def _compare(pair: Sequence[Result], measures: Sequence[str], statistics: TableStatistics) -> Comparison:
    labels = ["the recorded baseline", "the re-evaluated baseline"]
    same = f"Over the {len(pair[0].queries.ids):,} queries that are in both."
    return build_comparison(pair, measures, statistics, labels=labels, sources=labels, same=same, notes=[])


def _has_values(result: Result, measure: str) -> bool:
    try:
        return not np.isnan(score_queries(result, measure)).all()
    except ValueError:
        return False


def describe_changes(before: Result, after: Result) -> list[str]:
    """Return the parts of the data that differ between two results of one configuration, each with its extent."""
    changes = []
    if before.dataset.corpus_fingerprint != after.dataset.corpus_fingerprint:
        changes.append(_describe_document_changes(before, after))
    queries = _describe_query_changes(before, after)
    changes += queries
    gold = find_gold_differences(before, after)
    if gold:
        changes.append(f"judgments of {len(gold):,} {_noun(gold)} ({list_some(gold)})")
    elif not queries and before.dataset.judgments != after.dataset.judgments:
        changes.append(f"judgments ({before.dataset.judgments:,} before, {after.dataset.judgments:,} now)")
    if _map_clusters(before) != _map_clusters(after):
        changes.append("clusters of queries")
    return changes or ["parts that a result does not record"]


def _describe_document_changes(before: Result, after: Result) -> str:
    n, n_now = before.dataset.documents, after.dataset.documents
    if before.document_hashes is None or after.document_hashes is None:
        counts = f"{n:,} before and now, some with other contents" if n == n_now else f"{n:,} before, {n_now:,} now"
        return f"documents ({counts})"
    changes = count_changes(before.document_hashes, after.document_hashes)
    if changes == DocumentChanges(0, 0, 0):
        return f"the order of the {n:,} documents"
    new, gone = (
        f", {count:,} {what}" if count else "" for count, what in ((changes.new, "new"), (changes.gone, "gone"))
    )
    return f"{changes.changed:,} of {n:,} documents changed{new}{gone}"


def _map_clusters(result: Result) -> dict[str, str]:
    """Return the clusters of the queries that have one."""
    queries = result.queries
    return {query: label for query, label in zip(queries.ids, queries.clusters, strict=False) if label}


def _describe_query_changes(before: Result, after: Result) -> list[str]:
    old, new = list_texts_and_types(before.queries), list_texts_and_types(after.queries)
    both = [query for query in new if query in old]
    parts = {
        "added": [query for query in new if query not in old],
        "removed": [query for query in old if query not in new],
        "reworded": [query for query in both if old[query][0] != new[query][0]],
        "of another type": [query for query in both if old[query][1] != new[query][1]],
    }
    return [f"{len(ids):,} {_noun(ids)} {what} ({list_some(ids)})" for what, ids in parts.items() if ids]


def _noun(queries: Sequence[str]) -> str:
    return "query" if len(queries) == 1 else "queries"
