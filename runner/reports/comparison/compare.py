"""Results side by side: what each measure is worth in each, how sure a difference is, and where it comes from.

The first result is the one that the others are compared to. Made from results alone; knows nothing of how a comparison
is shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass as settings

from runner.analysis.agreement import Headroom, headroom
from runner.analysis.clusters import Clusters, count_clusters, number_clusters
from runner.analysis.comparison import Differences
from runner.analysis.comparison import compare as compare_rows
from runner.analysis.effects import queries_needed
from runner.analysis.significance import compute_differences
from runner.metrics.statistics import Statistics
from runner.reports.comparison.agreement import PairAgreement, agreement_of
from runner.reports.comparison.comparability import (
    NotComparable,
    in_order,
    other_gold,
    per_query,
    shared_measures,
    some,
    uncounted_queries,
    what_is_same,
)
from runner.reports.comparison.labels import labels
from runner.reports.evaluation.tables import Hard, hard
from runner.result import QueryTable, Result

Floats = NDArray[np.float64]

NO_DIFFERENCE = 1e-12
"""What rounding may make of none."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class TableStatistics(Statistics):
    """How the differences of a table are tested: without the corrections for all pairs of systems by one measure.

    An interval is that of one test alone: it excludes 0 where the uncorrected p-value is below 1 - `confidence`.
    """

    correction: Literal["holm", "bh", "none"] = "holm"


@dataclass(frozen=True)
class Versus:
    """A measure of one system, and its difference to the first's.

    All is over the queries that count for every system. `relative` is the share of the first's mean, `p` that of one
    test, `corrected` for all of the table, `effect` the mean difference in its own standard deviations (Hedges' g),
    `needed` how many queries (or clusters) a t-test needs to see one of this size four times out of five. All but
    `mean` are NaN for the first.
    """

    mean: float
    difference: float = math.nan
    relative: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    corrected: float = math.nan
    effect: float = math.nan
    needed: float = math.nan
    significant: bool = False
    wins: int = 0
    ties: int = 0
    losses: int = 0


@dataclass(frozen=True)
class Change:
    """A query that went otherwise: how it did in the first, and in another."""

    before: Hard
    after: Hard
    difference: float


@dataclass(frozen=True)
class Times:
    """Milliseconds of a query asked alone, None where they are not known."""

    mean: float | None
    median: float | None
    p95: float | None
    least: float | None
    most: float | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Results on the same queries in the same order, the first being what the others are compared to.

    `labels` tell them apart, `sources` say where each is from. `same` is what they were found to share, `notes` what a
    reader should know besides. `table` has for each measure a value of each system.
    """

    results: Sequence[Result]
    labels: Sequence[str]
    sources: Sequence[str]
    primary: str
    same: str
    notes: Sequence[str]
    statistics: TableStatistics
    table: Mapping[str, Sequence[Versus]]

    @property
    def queries(self) -> QueryTable:
        """Return the queries that all share."""
        return self.results[0].queries

    @property
    def clusters(self) -> int | None:
        """Return how many clusters of variants the queries form; None where every query is its own."""
        return count_clusters(_cluster_labels(self.results))

    @property
    def cluster_numbers(self) -> Clusters | None:
        """Return the cluster of each query; None where every query is its own."""
        return number_clusters(_cluster_labels(self.results))

    @property
    def tests(self) -> int:
        """Return how many tests the correction is for."""
        return sum(len(row) - 1 for row in self.table.values())

    def is_first(self, system: int) -> bool:
        """Tell whether a system is the first's very evaluation: no two take the same times."""
        first, other = self.results[0], self.results[system]
        same = (first.config_hash, first.timings) == (other.config_hash, other.timings)
        return same and np.array_equal(first.scores, other.scores, equal_nan=True)

    def winner(self, measure: str) -> str:
        """Return which system has the highest mean, or those that share it."""
        return self.highest([versus.mean for versus in self.table[measure]])

    def highest(self, means: Sequence[float]) -> str:
        """Return which system has the highest of their means; "tie" where all have it."""
        known = [value for value in means if not math.isnan(value)]
        best = max(known, default=math.nan) - NO_DIFFERENCE
        names = [name for name, value in zip(self.labels, means, strict=True) if value >= best]
        return "tie" if len(names) == len(self.labels) else ", ".join(names)

    @cached_property
    def scores(self) -> dict[str, Floats]:
        """Return the values of each measure (systems x queries), NaN where a query does not count for all."""
        return {measure: _shared(self.results, measure) for measure in self.table}

    def agreement_of(self, system: int) -> PairAgreement | None:
        """Return how far a system finds what the first finds; None where one was kept without its rankings."""
        first, other = self.results[0], self.results[system]
        return None if first.hits is None or other.hits is None else agreement_of(first, other)

    @property
    def headroom(self) -> Headroom:
        """Return what an oracle would reach that takes the best system for each query."""
        return headroom(self.scores[self.primary])

    def types(self) -> dict[str, NDArray[np.bool_]]:
        """Return the queries of each type that there is more than one of."""
        kinds = np.array(self.queries.types)
        found = {kind: kinds == kind for kind in sorted({*self.queries.types} - {""})}
        return found if len(found) > 1 else {}

    def changes(self, system: int) -> list[Change]:
        """Return the queries whose primary measure differs from the first's, the largest gain first."""
        scores = self.scores[self.primary]
        differences = np.nan_to_num(scores[system] - scores[0])
        changed = np.flatnonzero(np.abs(differences) > NO_DIFFERENCE)
        order = sorted(changed.tolist(), key=lambda i: (-differences[i], self.queries.ids[i]))
        return [Change(hard(self.results[0], i), hard(self.results[system], i), float(differences[i])) for i in order]


def compare(
    results: Sequence[Result], statistics: TableStatistics, primary: str | None = None, sources: Sequence[str] = ()
) -> Comparison:
    """Compare results to the first of them; raises `NotComparable`, and `ResultError` for a measure that is missing."""
    first, *others = results
    wanted = primary or first.primary
    notes: list[str] = []
    same = " ".join(dict.fromkeys(what_is_same(first, other) for other in others))
    if primary is None and (other := next((r for r in others if r.primary != wanted), None)) is not None:
        raise NotComparable(
            f"the primary measures differ: {wanted} of {first.name}, {other.primary} of {other.name}; "
            f"say which with compare.primary=MEASURE"
        )
    aligned = [first, *(in_order(other, first.queries.ids) for other in others)]
    measures = shared_measures(aligned, wanted, notes)
    for other in others:
        if unlike := other_gold(first, other):
            notes.append(
                f"{len(unlike):,} of {len(first.queries.ids):,} queries have other gold in {other.name} than in "
                f"{first.name} ({some(unlike)}): each result is measured by what is expected of it"
            )
    failed = set().union(*(result.failures for result in aligned))
    uncounted = uncounted_queries(aligned, wanted)
    for queries, why in (
        ([query for query in uncounted if query in failed], "a search failed there"),
        ([query for query in uncounted if query not in failed], "nothing is expected of some there"),
    ):
        if queries:
            notes.append(f"{some(queries)} left out: {why}, so that it does not count for all")
    return Comparison(
        results=aligned,
        labels=labels(aligned),
        sources=sources or [result.name for result in results],
        primary=wanted,
        same=same,
        notes=notes,
        statistics=statistics,
        table=_table(aligned, measures, statistics),
    )


def mean(values: Floats) -> float:
    """Return the mean of what counts, NaN if nothing does."""
    counted = values[~np.isnan(values)]
    return float(counted.mean()) if len(counted) else math.nan


def tested(differences: Floats, statistics: TableStatistics, clusters: Clusters | None = None) -> Differences:
    """Return how sure paired differences (m x queries) are, corrected for their number."""
    return compare_rows(differences, statistics, clusters)


def times(result: Result) -> Times:
    """Return how long a query takes."""
    each = np.array([ms for ms in result.timings.each_ms if ms is not None])
    if not len(each):
        return Times(None, None, None, None, None)
    median, p95 = (float(value) for value in np.percentile(each, [50, 95]))
    return Times(float(each.mean()), median, p95, float(each.min()), float(each.max()))


def _cluster_labels(results: Sequence[Result]) -> Sequence[str]:
    """Return the labels of clusters that any of some results has, as a report that was imported has none."""
    return next((result.queries.clusters for result in results if any(result.queries.clusters)), ())


def _shared(results: Sequence[Result], measure: str) -> Floats:
    scores = np.array([per_query(result, measure) for result in results], dtype=np.float64)
    scores[:, np.isnan(scores).any(axis=0)] = np.nan
    return scores


def _table(results: Sequence[Result], measures: Sequence[str], statistics: TableStatistics) -> dict[str, list[Versus]]:
    scores = np.array([_shared(results, measure) for measure in measures])
    differences = compute_differences(scores[:, 1:], scores[:, :1]).reshape(-1, scores.shape[2])
    rows = tested(differences, statistics, number_clusters(_cluster_labels(results)))
    needed = queries_needed(rows.differences, rows.deviations, statistics.alpha)
    table = {}
    for m, measure in enumerate(measures):
        first = mean(scores[m, 0])
        table[measure] = [Versus(first)]
        for i in range(1, len(results)):
            row = m * (len(results) - 1) + i - 1
            difference = float(rows.differences[row])
            table[measure].append(
                Versus(
                    mean=mean(scores[m, i]),
                    difference=difference,
                    relative=difference / first if first else math.nan,
                    low=float(rows.intervals[row, 0]),
                    high=float(rows.intervals[row, 1]),
                    p=float(rows.uncorrected[row]),
                    corrected=float(rows.p_values[row]),
                    effect=float(rows.effects[row]),
                    needed=float(needed[row]),
                    significant=bool(rows.significant[row]),
                    wins=int(rows.wins[row]),
                    ties=int(rows.ties[row]),
                    losses=int(rows.losses[row]),
                )
            )
    return table
