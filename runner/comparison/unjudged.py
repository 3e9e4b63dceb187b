"""Bound the difference of two results by what judgments of their unjudged hits could make of it, by slice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING
from runner.comparison.compare import Comparison
from runner.evaluation.result import Hits
from runner.metrics.judgment_bounds import BOUNDED, QueryJudgments, Ranking, bound_difference
from runner.metrics.measures import parse

SERVED = "telemetry"
"""The name of the baseline that is what production served."""

_MOST_VALUES = 20
"""The largest number of values of a field whose values are slices."""


@dataclass(frozen=True)
class SliceBounds:
    """The mean difference of a system from the baseline in a slice, and the least and most that judgments could make.

    `unjudged` is the share of unjudged documents among those that either has within the cutoff.
    """

    field: str
    value: str
    queries: int
    before: float
    after: float
    low: float
    high: float
    unjudged: float


def bound_slices(comparison: Comparison, system: int) -> list[SliceBounds]:
    """Return the bounds for all queries, and for each value of the fields of queries, such as the week.

    Empty if the baseline is not what production served, without rankings of documents in both results, and for a
    primary measure without bounds.
    """
    first, other = comparison.results[0], comparison.results[system]
    measure = parse(comparison.primary)
    is_served = comparison.sources[0] == SERVED
    if not is_served or measure.name not in BOUNDED or not measure.cutoff or measure.in_tokens:
        return []
    if first.hits is None or other.hits is None or first.hits.parents or other.hits.parents:
        return []
    scores = comparison.scores[comparison.primary][[0, system]]
    counted = np.flatnonzero(~np.isnan(scores).any(axis=0)).tolist()
    grades = comparison.queries.expected_grades or [[1] * len(gold) for gold in comparison.queries.expected]
    highest = max((grade for own in grades for grade in own), default=1)
    bounds = np.full((3, scores.shape[1]), np.nan)
    for query in counted:
        one, two = (_list_ranking(hits, query, measure.cutoff) for hits in (other.hits, first.hits))
        known = QueryJudgments(list(grades[query]), highest)
        seen = dict([*one, *two])
        share = sum(grade is None for grade in seen.values()) / max(len(seen), 1)
        bounds[:, query] = *bound_difference(measure.name, measure.cutoff, one, two, known), share
    means = (
        (field, value, len(inside), *np.vstack([scores, bounds])[:, inside].mean(axis=1).tolist())
        for field, value, inside in _iter_slices(comparison, counted)
    )
    return [SliceBounds(*own) for own in means]


def _list_ranking(hits: Hits, query: int, k: int) -> Ranking:
    documents, grades = hits.rankings.documents[query, :k].tolist(), hits.grades[query, :k].tolist()
    return [
        (hits.documents[document], None if grade == NOTHING else grade)
        for document, grade in zip(documents, grades, strict=True)
        if document != NOTHING
    ]


def _iter_slices(comparison: Comparison, counted: list[int]) -> Iterator[tuple[str, str, NDArray[np.int64]]]:
    """Yield the field, the value and the queries of each slice: first all, then by type and by field, in order."""
    fields = comparison.queries.fields
    columns = {"type": list(comparison.queries.types)} if any(comparison.queries.types) else {}
    names = dict.fromkeys(["week", *(name for of in fields for name in of)])
    columns |= {name: [of.get(name, "") for of in fields] for name in names if fields}
    yield "all", "", np.array(counted, dtype=np.int64)
    for name, column in columns.items():
        values = sorted({column[query] for query in counted} - {""})
        if 1 < len(values) <= _MOST_VALUES:
            for value in values:
                yield name, value, np.array([query for query in counted if column[query] == value], dtype=np.int64)
