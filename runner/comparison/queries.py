"""Describe the results of single queries: expected and retrieved ids, the rank of the first gold, and difficulty."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runner.comparison.headline import select_headline
from runner.evaluation.result import Result
from runner.statistics.difficulty import Difficulty, difficulty


@dataclass(frozen=True)
class QueryOutcome:
    """The result of a query: the expected ids, the retrieved ids with grades (-1 unjudged), and headline measures.

    `first_gold` is the rank of the first gold document, None if it was not retrieved.
    """

    id: str
    text: str
    type: str
    status: str
    expected: Sequence[str]
    retrieved: Sequence[tuple[str, int]]
    first_gold: int | None
    values: Mapping[str, float]


def measure_difficulty(results: Sequence[Result], primary: str) -> Difficulty:
    """Return the difficulty of queries by a measure of one or more results on the same dataset."""
    return difficulty(np.stack([result.of(primary) for result in results]))


def list_hardest(result: Result, limit: int | None = None) -> list[QueryOutcome]:
    """List the queries by the primary measure, lowest first, then by reciprocal rank, then by id.

    Queries that do not count are left out.
    """
    q, primary = result.queries, result.of(result.primary)
    ranks = result.of("RR") if "RR" in result.measures else primary
    counted = [i for i in range(len(q.ids)) if not math.isnan(primary[i])]
    counted.sort(key=lambda i: (primary[i], ranks[i], q.ids[i]))
    return [build_query_outcome(result, i) for i in counted[:limit]]


def build_query_outcome(result: Result, i: int) -> QueryOutcome:
    """Return the result of the query at a position; without saved rankings, its first gold rank is computed from RR."""
    q = result.queries
    retrieved: list[tuple[str, int]] = []
    first = None
    if result.hits is not None:
        ids = result.hits.ids(i)
        grades = result.hits.grades[i, : len(ids)].tolist()
        retrieved = list(zip(ids, grades, strict=True))
        first = next((place + 1 for place, grade in enumerate(grades) if grade > 0), None)
    elif "RR" in result.measures and result.of("RR")[i] > 0:
        first = round(1 / result.of("RR")[i])
    values = {m: float(result.of(m)[i]) for m in select_headline(result.primary, result.measures)}
    return QueryOutcome(q.ids[i], q.texts[i], q.types[i], q.statuses[i], q.expected[i], retrieved, first, values)
