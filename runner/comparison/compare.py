"""Compare results side by side: the means of each measure, and how each system differs from the first, the baseline."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.threads import map_threads
from runner.comparison.agreement import PairAgreement, measure_pair
from runner.comparison.comparability import (
    NotComparable,
    check_comparable,
    find_gold_differences,
    find_shared_measures,
    find_uncounted_queries,
    reorder_queries,
    score_queries,
    select_shared_queries,
)
from runner.comparison.families import (
    Family,
    compare_measures,
    correct_for_choice,
    find_choice_correction,
    find_family,
)
from runner.comparison.headline import select_headline
from runner.comparison.labels import label_results
from runner.comparison.notes import describe_index_changes, explain_foreign_ids, list_some, warn_unequal_holes
from runner.comparison.queries import QueryOutcome, build_query_outcome
from runner.config.objects import build_settings
from runner.evaluation.represented import describe_over_searches
from runner.evaluation.result import QueryTable, Result
from runner.pages.numbers import difference_interval, format_signed, p_value, score4
from runner.statistics.agreement import Headroom, headroom
from runner.statistics.clusters import Clusters, count_clusters, number_clusters
from runner.statistics.comparison import Difference
from runner.statistics.corrections import CORRECTIONS
from runner.statistics.settings import Statistics, TableCorrection
from runner.statistics.significance import compute_differences

Floats = NDArray[np.float64]

NO_DIFFERENCE = 1e-12
"""Differences up to this size are rounding errors."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class TableStatistics(Statistics):
    """The test of the differences in a table; corrections for all pairs of systems by one measure do not apply.

    Intervals are uncorrected: one excludes 0 where the uncorrected p-value is below 1 - `confidence`. Only that of the
    primary measure is corrected, for systems that were chosen by their scores.
    """

    correction: TableCorrection = Field(default="holm", repr=False)


def read_statistics(result: Result) -> TableStatistics:
    """Return the statistics that a result recorded, with the correction that fits a table of many measures."""
    own = build_settings(Statistics, result.config.get("statistics"), "statistics")
    return TableStatistics(**vars(own) | {"correction": CORRECTIONS[own.correction].for_family().name})


@dataclass(frozen=True)
class Versus:
    """The mean of a measure for one system, and its difference from the first system.

    Only queries that count for every system enter. The difference is corrected for the tests of its measure's family
    (`runner.comparison.families`), and `relative` is its share of the first mean. For the first system, all but `mean`
    are NaN.
    """

    mean: float
    difference: Difference = field(default_factory=Difference)
    relative: float = math.nan

    def __repr__(self) -> str:
        own = self.difference
        if not own.queries:
            return score4(self.mean)
        low_high = difference_interval((own.low, own.high, own.differing, own.queries))
        p = p_value(own.corrected)
        return (
            f"{score4(self.mean)}: {format_signed(own.mean)} {low_high}, p {p if p[0] == '<' else f'= {p}'}; better on "
            f"{own.wins}, equal on {own.ties}, worse on {own.losses} of {own.queries} queries"
        )

    def to_dict(self) -> dict[str, float]:
        """Return the fields for JSON and data frames, those of the difference beside the others."""
        difference = vars(self.difference)
        return {"mean": self.mean, "difference": difference["mean"], "relative": self.relative} | {
            name: value for name, value in difference.items() if name != "mean"
        }


@dataclass(frozen=True)
class Change:
    """A query whose primary measure differs between the first system (`before`) and another (`after`).

    What the two retrieved is described on demand, because most changes are only counted.
    """

    first: Result = field(repr=False, compare=False)
    other: Result = field(repr=False, compare=False)
    place: int
    difference: float

    @cached_property
    def before(self) -> QueryOutcome:
        """Return the result of the first system for the query."""
        return build_query_outcome(self.first, self.place)

    @cached_property
    def after(self) -> QueryOutcome:
        """Return the result of the other system for the query."""
        return build_query_outcome(self.other, self.place)


@dataclass(frozen=True)
class Times:
    """Milliseconds per single query, None if unknown."""

    mean: float | None
    median: float | None
    p95: float | None
    least: float | None
    most: float | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Results on the same queries in the same order; the first one is the baseline.

    `sources` are the names that the results were loaded by, `same` is a sentence on the shared data, and `notes` are
    further remarks. `table` holds one value per system for each measure. `rules` are the measures of a gate.
    `among` is the number of systems that these were chosen from by their scores, 0 if they were not, and
    `choice_correction` the correction of the primary measure for all pairs of them.
    """

    results: Sequence[Result]
    labels: Sequence[str]
    sources: Sequence[str]
    primary: str
    same: str
    notes: Sequence[str]
    statistics: TableStatistics
    table: Mapping[str, Sequence[Versus]]
    rules: Sequence[str] = ()
    among: int = 0
    choice_correction: str = ""

    @property
    def queries(self) -> QueryTable:
        """Return the shared queries."""
        return self.results[0].queries

    @property
    def clusters(self) -> int | None:
        """Return the number of clusters of query variants; None without clusters."""
        return count_clusters(_cluster_labels(self.results))

    @property
    def cluster_numbers(self) -> Clusters | None:
        """Return the cluster of each query; None without clusters."""
        return number_clusters(_cluster_labels(self.results))

    @property
    def headline(self) -> list[str]:
        """Return the few measures that summarise the comparison, and the outcomes."""
        outcomes = [name for name in self.table if name in self.results[0].outcomes]
        return [*select_headline(self.primary, self.table), *outcomes]

    def find_family(self, measure: str) -> Family:
        """Return the family that the tests of a measure are corrected in."""
        return find_family(measure, self.primary, self.rules)

    @property
    def candidates(self) -> list[int]:
        """Return the positions of the systems that are compared with the first."""
        return _list_candidates(self.results)

    def count_tests(self) -> dict[Family, int]:
        """Return the number of tests that the p-values of each family are corrected for."""
        sizes = Counter(self.find_family(measure) for measure in self.table)
        tests = {family: count * len(self.candidates) for family, count in sizes.items()}
        return tests | ({"primary": math.comb(self.among, 2)} if self.among else {})

    def is_first(self, system: int) -> bool:
        """Return whether a system is the same evaluation as the first one."""
        return is_same_evaluation(self.results[0], self.results[system])

    def winner(self, measure: str) -> str:
        """Return the system with the highest mean, or all systems that share it."""
        return self.name_highest([versus.mean for versus in self.table[measure]])

    def name_highest(self, means: Sequence[float]) -> str:
        """Return the systems with the highest of some means; "tie" if all share it."""
        known = [value for value in means if not math.isnan(value)]
        best = max(known, default=math.nan) - NO_DIFFERENCE
        names = [name for name, value in zip(self.labels, means, strict=True) if value >= best]
        return "tie" if len(names) == len(self.labels) else ", ".join(names)

    @cached_property
    def scores(self) -> dict[str, Floats]:
        """Return the values of each measure (systems x queries), NaN for queries that do not count for all."""
        return {measure: _score_shared_queries(self.results, measure) for measure in self.table}

    @cached_property
    def agreement(self) -> dict[str, PairAgreement]:
        """Return the agreement of each other system with the first, by label, where rankings were kept."""
        first, *others = self.results
        ranked = [
            (label, result)
            for label, result in zip(self.labels[1:], others, strict=True)
            if first.hits is not None and result.hits is not None
        ]
        pairs = map_threads(lambda result: measure_pair(first, result), [result for _, result in ranked])
        return {label: pair for (label, _), pair in zip(ranked, pairs, strict=True)}

    @property
    def headroom(self) -> Headroom:
        """Return what an oracle reaches that picks the best system for each query."""
        return headroom(self.scores[self.primary])

    def split_by_type(self) -> dict[str, NDArray[np.bool_]]:
        """Return the mask of the queries of each type; empty for fewer than two types."""
        column = np.array(self.queries.types)
        queries_of = {kind: column == kind for kind in sorted({*self.queries.types} - {""})}
        return queries_of if len(queries_of) > 1 else {}

    def list_changes(self, system: int) -> list[Change]:
        """List the queries whose primary measure differs from that of the first system, the largest gain first."""
        scores = self.scores[self.primary]
        differences = np.nan_to_num(scores[system] - scores[0])
        changed = np.flatnonzero(np.abs(differences) > NO_DIFFERENCE)
        order = sorted(changed.tolist(), key=lambda i: (-differences[i], self.queries.ids[i]))
        return [Change(self.results[0], self.results[system], i, float(differences[i])) for i in order]


def compare_results(
    results: Sequence[Result],
    statistics: TableStatistics,
    primary: str | None = None,
    sources: Sequence[str] = (),
    rules: Sequence[str] = (),
    rivals: Sequence[Result] = (),
) -> Comparison:
    """Compare results with the first; raises `NotComparable`, or `ResultError` for a missing measure.

    `rules` are the measures of a gate, which are not exploratory, and `rivals` the results among which these were
    chosen by their scores (`runner.comparison.families`); those on other data do not count.
    """
    results, notes = select_shared_queries(results)
    first, *others = results
    wanted = primary or first.primary
    same = " ".join(dict.fromkeys(check_comparable(first, other) for other in others))
    if primary is None and (other := next((r for r in others if r.primary != wanted), None)) is not None:
        raise NotComparable(
            f"the primary measures differ ({wanted} of {first.name}, {other.primary} of {other.name}); choose one "
            "with compare.primary=MEASURE"
        )
    aligned = [first, *(reorder_queries(other, first.queries.ids) for other in others)]
    measures = find_shared_measures(aligned, wanted, notes)
    sources = sources or [result.name for result in results]
    return build_comparison(
        aligned, measures, statistics, labels=label_results(aligned), sources=sources, same=same, notes=notes,
        rules=rules, rivals=_select_rivals(rivals, aligned),
    )  # fmt: skip


def build_comparison(
    results: Sequence[Result],
    measures: Sequence[str],
    statistics: TableStatistics,
    *,
    labels: Sequence[str],
    sources: Sequence[str],
    same: str,
    notes: Sequence[str],
    rules: Sequence[str] = (),
    rivals: Sequence[Result] = (),
) -> Comparison:
    """Compare results on the same queries in the same order by these measures, the primary one first."""
    first, *others = results
    primary, remarks = measures[0], list(notes)
    choice_correction = find_choice_correction(rivals, statistics) if rivals else ""
    for other in others:
        if unlike := find_gold_differences(first, other):
            remarks.append(
                f"{len(unlike):,} of {len(first.queries.ids):,} queries have different gold in {other.name} and "
                f"{first.name} ({list_some(unlike)}); each result is measured against its own gold"
            )
        if changes := describe_index_changes(first, other):
            names = f"{first.name} and {other.name}"
            remarks.append(f"the index changed between {names} ({changes}), which may have changed their measures")
    failed = set().union(*(result.failures for result in results))
    uncounted = find_uncounted_queries(results, primary)
    for queries, why in (
        ([query for query in uncounted if query in failed], "a search failed"),
        ([query for query in uncounted if query not in failed], "they have no gold in some results"),
    ):
        if queries:
            remarks.append(f"without {list_some(queries)}, because {why}")
    means = ((label, describe_over_searches(result)) for label, result in zip(labels, results, strict=True))
    remarks += [f"{label}: {mean}" for label, mean in means if mean]
    if warning := warn_unequal_holes(results, labels):
        remarks.insert(0, warning)
    foreign = [(label, result) for label, result in zip(labels, results, strict=True) if result.has_foreign_ids]
    remarks[:0] = [f"Warning: {label} is not compared: {explain_foreign_ids(result)}" for label, result in foreign]
    return Comparison(
        results=results,
        labels=labels,
        sources=sources,
        primary=primary,
        same=same,
        notes=remarks,
        statistics=statistics,
        table=_build_table(results, measures, statistics, rules, rivals, choice_correction),
        rules=rules,
        among=len(results) + len(rivals) if rivals else 0,
        choice_correction=choice_correction,
    )


def _select_rivals(rivals: Sequence[Result], results: Sequence[Result]) -> list[Result]:
    """Return the rivals on the data of the last result that are not among the results, with the queries in order."""
    data, ids = results[-1].dataset.fingerprint, results[0].queries.ids
    others = [rival for rival in rivals if rival.dataset.fingerprint == data]
    others = [rival for rival in others if not any(is_same_evaluation(rival, result) for result in results)]
    return [reorder_queries(rival, ids) for rival in others]


def is_same_evaluation(one: Result, other: Result) -> bool:
    """Return whether two results are of the same evaluation, which its times identify."""
    same = (one.config_hash, one.timings) == (other.config_hash, other.timings)
    return same and np.array_equal(one.scores, other.scores, equal_nan=True)


def compute_mean(values: Floats) -> float:
    """Return the mean of the values that are not NaN; NaN without any."""
    counted = values[~np.isnan(values)]
    return float(counted.mean()) if len(counted) else math.nan


def summarise_times(result: Result) -> Times:
    """Return statistics of the time per query."""
    known = np.array([ms for ms in result.timings.each_ms if ms is not None])
    if not len(known):
        return Times(None, None, None, None, None)
    median, p95 = (float(value) for value in np.percentile(known, [50, 95]))
    return Times(float(known.mean()), median, p95, float(known.min()), float(known.max()))


def _cluster_labels(results: Sequence[Result]) -> Sequence[str]:
    """Return the query clusters of the first result that has any; imported reports have none."""
    return next((result.queries.clusters for result in results if any(result.queries.clusters)), ())


def _score_shared_queries(results: Sequence[Result], measure: str) -> Floats:
    """Return the scores of the queries that count for all results (m x n), NaN for results with foreign ids."""
    scores = np.array([score_queries(result, measure) for result in results], dtype=np.float64)
    is_foreign = np.array([result.has_foreign_ids for result in results])
    scores[:, np.isnan(scores[~is_foreign]).any(axis=0)] = np.nan
    scores[is_foreign] = np.nan
    return scores


def _list_candidates(results: Sequence[Result]) -> list[int]:
    """Return the positions of the results to compare with the first; those with foreign ids say nothing."""
    others = [] if results[0].has_foreign_ids else range(1, len(results))
    return [i for i in others if not results[i].has_foreign_ids]


def _build_table(
    results: Sequence[Result],
    measures: Sequence[str],
    statistics: TableStatistics,
    rules: Sequence[str],
    rivals: Sequence[Result],
    choice_correction: str,
) -> dict[str, list[Versus]]:
    """Return the means and differences by measure, the primary one first."""
    scores = np.array([_score_shared_queries(results, measure) for measure in measures])
    families = [find_family(measure, measures[0], rules) for measure in measures]
    clusters, candidates = number_clusters(_cluster_labels(results)), _list_candidates(results)
    tested = compare_measures(compute_differences(scores[:, candidates], scores[:, :1]), families, statistics, clusters)
    if rivals and candidates:
        compared = [results[0], *(results[i] for i in candidates), *rivals]
        every = np.array([score_queries(result, measures[0]) for result in compared], dtype=np.float64)
        tested[0] = correct_for_choice(tested[0], every, statistics, choice_correction, clusters)
    table = {}
    for m, measure in enumerate(measures):
        first = compute_mean(scores[m, 0])
        table[measure] = [Versus(first)]
        differences = dict(zip(candidates, tested[m], strict=True))
        for i in range(1, len(results)):
            difference = differences.get(i, Difference())
            relative = difference.mean / first if first else math.nan
            table[measure].append(Versus(compute_mean(scores[m, i]), difference, relative))
    return table
