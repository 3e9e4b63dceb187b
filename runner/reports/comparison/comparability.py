"""Whether and by what results may be compared: those measured on the same data, by measures that mean the same in all.

It says what differs where they may not, and what they share where they may. Knows nothing of how they did.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Rankings
from runner.metrics.formulas import find_formula
from runner.result import QueryTable, Result, ResultError

TN_RATE = "tn_rate"
"""The measure of the queries whose right answer is nothing: how many of them got nothing."""

GRADE = "grade"
"""The measure that a language model gives, where one was asked."""

OTHERS = (TN_RATE, GRADE)
"""The measures that are not of a ranking."""


class ReportError(ValueError):
    """Results cannot be reported together."""


class NotComparable(ResultError):
    """Results differ in what they were measured on or by."""


def what_is_same(one: Result, other: Result) -> str:
    """Return what two results share; raises `NotComparable` where they are about different things."""
    names = f"{one.name} and {other.name}"
    if one.dataset.fingerprint and other.dataset.fingerprint:
        if one.dataset.fingerprint != other.dataset.fingerprint:
            corpora = {one.dataset.corpus_fingerprint, other.dataset.corpus_fingerprint} - {""}
            what = "documents" if len(corpora) > 1 else _difference(one, other) or _clusters_apart(one, other)
            raise NotComparable(
                f"{names} were measured on different datasets, {_dataset(one)} and {_dataset(other)}: "
                f"their {what} differ"
            )
        same = f"Measured on the same dataset, {_dataset(one)}."
        what = _asked_apart(one, other)  # of a part of it
    else:
        same = "Measured by the same queries, types and expected items; a report does not tell what was searched."
        what = _difference(one, other)
    if what:
        raise NotComparable(f"{names} were measured on different datasets: their {what} differ")
    judges = [r.grades and f"{r.grades.judge}, prompt {r.grades.prompt[:8]}, k={r.grades.k}" for r in (one, other)]
    if all(judges) and judges[0] != judges[1]:
        raise NotComparable(f"{names} were graded by different judges: {judges[0]} and {judges[1]}")
    return same


def _dataset(result: Result) -> str:
    d = result.dataset
    return f"{d.name} ({d.split}, {d.fingerprint[:8]})"


def _difference(one: Result, other: Result) -> str:
    """Return what differs between the queries of two results, and what is expected of them; "" for nothing."""
    if 0 != one.dataset.documents != other.dataset.documents != 0:
        return f"documents ({one.dataset.documents:,} and {other.dataset.documents:,})"
    if what := _asked_apart(one, other):
        return what
    if unlike := other_gold(one, other):
        what = "grades" if _gold(one.queries, False) == _gold(other.queries, False) else "items"
        return f"expected {what} (of {some(unlike)})"
    return ""


def _asked_apart(one: Result, other: Result) -> str:
    asked, others = _asked(one.queries), _asked(other.queries)
    if asked.keys() != others.keys():
        return f"queries ({some(sorted(asked.keys() ^ others.keys()))} in one of them alone)"
    for place, what in enumerate(("query texts", "query types")):
        if unlike := [i for i in asked if asked[i][place] != others[i][place]]:
            return f"{what} (of {some(unlike)})"
    return ""


def _clusters_apart(one: Result, other: Result) -> str:
    """Return that clusters differ, of results whose queries and gold do not; they are compared by query id."""
    clusters, others = (
        dict(zip(r.queries.ids, r.queries.clusters or [""] * len(r.queries.ids), strict=True)) for r in (one, other)
    )
    return "query clusters (dataset.cluster_field)" if clusters != others else "documents or judgments"


def other_gold(one: Result, other: Result) -> list[str]:
    """Return the queries, of those that both have, of which two results expect other items, or other grades of them.

    A dataset may expect other items of one search type than of another. Grades count where both results know them.
    """
    graded = bool(one.queries.expected_grades and other.queries.expected_grades)
    gold, others = _gold(one.queries, graded), _gold(other.queries, graded)
    return [query for query, expected in gold.items() if query in others and expected != others[query]]


def _asked(queries: QueryTable) -> dict[str, tuple[str, str]]:
    return {i: (text, kind) for i, text, kind in zip(queries.ids, queries.texts, queries.types, strict=True)}


def _gold(queries: QueryTable, graded: bool) -> dict[str, dict[str, int]]:
    grades = queries.expected_grades if graded else [[1] * len(expected) for expected in queries.expected]
    columns = zip(queries.ids, queries.expected, grades, strict=True)
    return {query: dict(zip(expected, of, strict=True)) for query, expected, of in columns}


def some(names: Sequence[str], most: int = 5) -> str:
    """Return the first few of some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def in_order(result: Result, ids: Sequence[str]) -> Result:
    """Return a result with its queries in another order. It loses its grades: a report, which has one, has none."""
    if list(result.queries.ids) == list(ids):
        return result
    position = {query: i for i, query in enumerate(result.queries.ids)}
    order = np.array([position[query] for query in ids])
    q = result.queries
    columns = {name: [column[i] for i in order] if (column := getattr(q, name)) else () for name in vars(q)}
    found = result.hits
    if found is not None:
        rankings = Rankings(found.rankings.documents[order], found.rankings.scores[order])
        found = replace(found, rankings=rankings, grades=found.grades[order])
    each = [*result.timings.each_ms, *[None] * (len(order) - len(result.timings.each_ms))]
    return replace(
        result,
        queries=QueryTable(**columns),
        scores=result.scores[:, order],
        hits=found,
        grades=None,
        timings=replace(result.timings, each_ms=[each[i] for i in order]),
    )


def per_query(result: Result, measure: str) -> NDArray[np.float64]:
    """Return a measure's value for each query, NaN where it does not count; raises `ResultError`."""
    if measure == TN_RATE:
        value = {"true_negative": 1.0, "false_positive": 0.0}
        return np.array([value.get(status, math.nan) for status in result.queries.statuses])
    if measure == GRADE:
        return np.full(len(result.queries.ids), math.nan) if result.grades is None else result.grades.values
    return result.of(measure)


def shared_measures(results: Sequence[Result], primary: str, notes: list[str]) -> list[str]:
    """Return the measures that mean the same in all results, the primary one first; note what is left out."""
    for result in results:
        result.of(primary)
    depths = [depth(result) for result in results]
    shared = [m for m in results[0].measures if all(m in r.measures for r in results) and _is_merit(m)]
    if len(set(depths)) > 1:
        whole = [m for m in shared if "@" not in m]
        if primary in whole:
            raise NotComparable(
                f"{primary} is of the whole ranking, which is {depths[0]} deep in {results[0].name} and "
                f"{next(d for d in depths if d != depths[0])} elsewhere; compare another: compare.primary=MEASURE"
            )
        if whole:
            notes.append(f"{some(whole)} left out: rankings are {some([*map(str, dict.fromkeys(depths))])} deep")
        shared = [m for m in shared if m not in whole]
    others = [m for m in OTHERS if not any(np.isnan(per_query(result, m)).all() for result in results)]
    return [primary, *(m for m in shared if m != primary), *others]


def _is_merit(measure: str) -> bool:
    """Return whether a higher value of a measure is better."""
    formula = find_formula(measure)
    return formula is None or formula.better == "higher"


def depth(result: Result) -> int:
    """Return how many hits each query can have; a service that returned unknown documents may exceed the corpus."""
    requested = int((result.config.get("metrics") or {}).get("depth", 0))
    if not result.dataset.documents or (result.hits is not None and result.hits.unknown):
        return requested
    return min(requested, result.dataset.documents)


def uncounted_queries(results: Sequence[Result], measure: str) -> list[str]:
    """Return the queries that count for some of the results only."""
    counted = np.array([~np.isnan(result.of(measure)) for result in results])
    return [results[0].queries.ids[i] for i in np.flatnonzero(counted.any(axis=0) & ~counted.all(axis=0)).tolist()]
