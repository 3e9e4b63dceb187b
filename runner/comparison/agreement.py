"""Measure the agreement of the rankings of systems, and what the best system for each query would reach.

Documents and queries are matched by id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING
from retrievers.id_table import IdTable, select_ids
from runner.comparison.comparability import ReportError
from runner.comparison.labels import label_results
from runner.evaluation.result import Hits, Result
from runner.statistics.agreement import Documents, Headroom, headroom, jaccard, kendall_tau, rank_1, rbo

ANSWERED = ("pass", "partial", "fail")
"""The statuses of queries with gold whose search did not fail."""

COEFFICIENTS: Mapping[str, Callable[[Documents, Documents], NDArray[np.float64]]] = {
    "rank_1": rank_1,
    "jaccard@3": lambda first, second: jaccard(first, second, 3),
    "jaccard@5": lambda first, second: jaccard(first, second, 5),
    "rbo": rbo,
    "tau@10": kendall_tau,
}


@dataclass(frozen=True)
class PairAgreement:
    """Mean `coefficients` of the agreement of two systems over a number of `queries`, NaN where undefined.

    Only queries that have gold and were answered in both count.
    """

    queries: int
    coefficients: Mapping[str, float]


@dataclass(frozen=True)
class Agreement:
    """The agreement of all pairs of systems, and the headroom in each shared measure.

    `systems` are the labels of the results, `pairs` in the order of `itertools.combinations`; the `best` of a headroom
    is a position among the systems.
    """

    systems: Sequence[str]
    pairs: Sequence[PairAgreement]
    headroom: Mapping[str, Headroom]


def measure_agreement(results: Sequence[Result]) -> Agreement:
    """Measure the agreement of every two results; raises `ReportError` for fewer than two, or without rankings."""
    if len(results) < 2:
        raise ReportError(f"agreement needs at least two results, found {len(results)}")
    queries = _find_shared_queries(results)
    measures = [m for m in results[0].measures if all(m in result.measures for result in results)]
    scores = {m: np.stack([r.of(m)[of] for r, of in zip(results, queries, strict=True)]) for m in measures}
    return Agreement(
        label_results(results),
        [measure_pair(first, second) for first, second in combinations(results, 2)],
        {measure: headroom(values) for measure, values in scores.items()},
    )


def measure_pair(first: Result, second: Result) -> PairAgreement:
    """Measure the agreement of two results; raises `ReportError` if one has no rankings."""
    pair = (first, second)
    documents = _number_documents([_require_hits(result) for result in pair])
    shared = _find_shared_queries(pair)
    a, b = (np.isin(result.queries.statuses, ANSWERED)[of] for result, of in zip(pair, shared, strict=True))
    rankings = [ranked[of[a & b]] for ranked, of in zip(documents, shared, strict=True)]
    means = {name: _mean(of(*rankings)) for name, of in COEFFICIENTS.items()}
    return PairAgreement(int(np.count_nonzero(a & b)), means)


def _find_shared_queries(results: Sequence[Result]) -> list[NDArray[np.int64]]:
    """Return the positions of the shared queries in each result, in the order of the first."""
    places = [{query: i for i, query in enumerate(result.queries.ids)} for result in results]
    shared = [query for query in results[0].queries.ids if all(query in place for place in places)]
    return [np.array([place[query] for query in shared], dtype=np.int64) for place in places]


def _require_hits(result: Result) -> Hits:
    if result.hits is None:
        raise ReportError(f"{result.name} was loaded without its rankings, which are needed to compute agreement")
    return result.hits


def _number_documents(pair: Sequence[Hits]) -> list[NDArray[np.int64]]:
    """Return rankings of two results with one number per document id.

    A chunk has the number of its document, which stands at the rank of its first chunk.
    """
    used, places = zip(*(hits.number_used() for hits in pair), strict=True)
    first, second = (select_ids(hits.judged, is_used) for hits, is_used in zip(pair, used, strict=True))
    numbers = _number_ids(first, second)
    ranked = [  # the last entry stands for no document
        np.append(of_ids, NOTHING)[of_hits] for of_ids, of_hits in zip(numbers, places, strict=True)
    ]
    return [_drop_repeats(row) if hits.parents else row for row, hits in zip(ranked, pair, strict=True)]


def _number_ids(first: Sequence[str], second: Sequence[str]) -> list[NDArray[np.int64]]:
    """Return the number of each id of two lists; equal ids have equal numbers."""
    if isinstance(first, IdTable) and first.pieces is not None and isinstance(second, IdTable):
        from retrievers.pieces import find_ids

        places = find_ids(second, first).astype(np.int64)
        return [np.arange(len(first)), np.where(places == NOTHING, len(first) + np.arange(len(second)), places)]
    code_of: dict[str, int] = {}
    codes = ([code_of.setdefault(name, len(code_of)) for name in ids] for ids in (first, second))
    return [np.array(numbers, dtype=np.int64) for numbers in codes]


def _drop_repeats(documents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return rankings with only the first occurrence of each document; later documents move up."""
    order = np.argsort(documents, axis=1, kind="stable")
    ordered = np.take_along_axis(documents, order, axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = NOTHING
    single = np.empty_like(documents)
    np.put_along_axis(single, order, ordered, axis=1)
    return np.take_along_axis(single, np.argsort(single == NOTHING, axis=1, kind="stable"), axis=1)


def _mean(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
