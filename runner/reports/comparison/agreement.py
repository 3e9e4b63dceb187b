"""How far systems agree on what they find, and what the better of them for each query would reach.

Made from results alone, whose documents and queries are compared by id. Knows nothing of how this is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING
from runner.analysis.agreement import Documents, Headroom, headroom, jaccard, kendall_tau, rank_1, rbo
from runner.reports.comparison.comparability import ReportError
from runner.reports.comparison.labels import labels
from runner.result import Hits, Result

ANSWERED = ("pass", "partial", "fail")
"""The statuses of queries that have gold, and whose search went well."""

COEFFICIENTS: Mapping[str, Callable[[Documents, Documents], NDArray[np.float64]]] = {
    "rank_1": rank_1,
    "jaccard@3": lambda first, second: jaccard(first, second, 3),
    "jaccard@5": lambda first, second: jaccard(first, second, 5),
    "rbo": rbo,
    "tau@10": kendall_tau,
}


@dataclass(frozen=True)
class PairAgreement:
    """How far two systems agree over `queries`: mean `coefficients`, NaN where there is none.

    The queries are those that have gold in both and that both answered: what is found where nothing is right, or where
    a search failed, is no opinion to agree with.
    """

    queries: int
    coefficients: Mapping[str, float]


@dataclass(frozen=True)
class Agreement:
    """All pairs of systems, and the headroom in each measure that all of them have.

    `systems` are the labels that tell the results apart, `pairs` as `combinations` makes them of these; a headroom's
    `best` is a position among them.
    """

    systems: Sequence[str]
    pairs: Sequence[PairAgreement]
    headroom: Mapping[str, Headroom]


def agreement(results: Sequence[Result]) -> Agreement:
    """Compare what results found, each with each; raises `ReportError` for fewer than two, or one without rankings."""
    if len(results) < 2:
        raise ReportError(f"agreement is between two results or more: there is {len(results)}")
    queries = _shared(results)
    measures = [m for m in results[0].measures if all(m in result.measures for result in results)]
    scores = {m: np.stack([r.of(m)[of] for r, of in zip(results, queries, strict=True)]) for m in measures}
    return Agreement(
        labels(results),
        [agreement_of(first, second) for first, second in combinations(results, 2)],
        {measure: headroom(values) for measure, values in scores.items()},
    )


def agreement_of(first: Result, second: Result) -> PairAgreement:
    """Compare what two results found; raises `ReportError` for one without rankings."""
    code_of: dict[str, int] = {}
    pair = (first, second)
    documents = [_documents(_found(result), code_of) for result in pair]
    shared = _shared(pair)
    a, b = (np.isin(result.queries.statuses, ANSWERED)[of] for result, of in zip(pair, shared, strict=True))
    found = [ranked[of[a & b]] for ranked, of in zip(documents, shared, strict=True)]
    means = {name: _mean(of(*found)) for name, of in COEFFICIENTS.items()}
    return PairAgreement(int(np.count_nonzero(a & b)), means)


def _shared(results: Sequence[Result]) -> list[NDArray[np.int64]]:
    """Return for each result the positions of the queries that all have, in the order of the first."""
    places = [{query: i for i, query in enumerate(result.queries.ids)} for result in results]
    shared = [query for query in results[0].queries.ids if all(query in place for place in places)]
    return [np.array([place[query] for query in shared], dtype=np.int64) for place in places]


def _found(result: Result) -> Hits:
    if result.hits is None:
        raise ReportError(f"{result.name} was loaded without its rankings: there is nothing to compare")
    return result.hits


def _documents(found: Hits, code_of: dict[str, int]) -> NDArray[np.int64]:
    """Return rankings by numbers that are the same for the same id in all results; new ids are added to `code_of`.

    Of chunks these are of their documents, each where its first chunk is.
    """
    there = found.rankings.documents != NOTHING
    used, inverse = np.unique(found.rankings.documents[there], return_inverse=True)
    numbers = np.full(there.shape, NOTHING, dtype=np.int64)
    numbers[there] = np.array([code_of.setdefault(found.judged[d], len(code_of)) for d in used], np.int64)[inverse]
    return _once(numbers) if found.parents else numbers


def _once(documents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return rankings with each document where it is first alone, and those below moved up."""
    order = np.argsort(documents, axis=1, kind="stable")
    ordered = np.take_along_axis(documents, order, axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = NOTHING
    single = np.empty_like(documents)
    np.put_along_axis(single, order, ordered, axis=1)
    return np.take_along_axis(single, np.argsort(single == NOTHING, axis=1, kind="stable"), axis=1)


def _mean(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
