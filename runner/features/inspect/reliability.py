"""Assess how reliably a dataset ranks the systems that searched it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from runner.datasets.dataset import Dataset
from runner.metrics.judgment_bounds import BOUNDED, QueryJudgments, bound_difference
from runner.metrics.measures import Measure, parse
from runner.metrics.scores import Grader
from runner.statistics.clusters import number_clusters
from runner.statistics.comparison import compare_pairs
from runner.statistics.reliability import (
    FEWEST_SYSTEMS,
    FEWEST_UNITS,
    DiscriminativePower,
    QueryInformation,
    RankingStability,
    Separation,
    compute_detectable,
    list_separations,
    measure_discriminative_power,
    measure_information,
    measure_stability,
)
from runner.statistics.settings import Statistics

MULTIPLES = (1, 2, 4)
"""How many times the number of queries detectable differences are reported for."""


@dataclass(frozen=True)
class DifferenceBounds:
    """The mean difference of two systems, and the smallest and largest that further judgments could make of it.

    `unjudged` is the share of unjudged documents among those that either system has at the cutoff.
    """

    better: int
    worse: int
    difference: float
    low: float
    high: float
    unjudged: float


@dataclass(frozen=True, eq=False)
class Reliability:
    """How reliably a dataset ranks the systems called `names`, by the means of a measure over `queries` queries.

    `units` is the number of clusters of queries (or of queries). `stability` is None with fewer than three systems or
    four units. `detectable` are differences by the number of queries or clusters. `ids` are those of the queries
    (clusters: of their first query) that `information` is about. `bounds` are those of the pairs in `separations`;
    empty with the reason in `unbounded`.
    """

    measure: str
    names: Sequence[str]
    means: Sequence[float]
    queries: int
    units: int
    statistics: Statistics
    stability: RankingStability | None
    power: DiscriminativePower
    separations: Sequence[Separation]
    detectable: Mapping[int, float]
    information: QueryInformation
    ids: Sequence[str]
    bounds: Sequence[DifferenceBounds]
    unbounded: str = ""


def measure_reliability(
    dataset: Dataset,
    rankings: Mapping[str, Rankings],
    measure: str,
    statistics: Statistics = Statistics(),
) -> Reliability | None:
    """Return how reliably a dataset ranks systems, given their rankings; None without two systems or two queries."""
    parsed, n = parse(measure), len(dataset.queries)
    grader = Grader(dataset.judgments, n, len(dataset.documents), dataset.document_of, dataset.judged_ids)
    rows = [grader.score(ranking, [parsed]).values[0] for ranking in rankings.values()]
    if len(rows) < 2:
        return None
    scores = np.stack(rows)
    counted = ~np.isnan(scores).any(axis=0)
    scores, clusters = scores[:, counted], number_clusters(dataset.queries.clusters)
    clusters = None if clusters is None else np.unique(clusters[counted], return_inverse=True)[1]
    ids = [dataset.queries.ids[i] for i in np.flatnonzero(counted).tolist()]
    if clusters is not None:
        ids = [ids[i] for i in np.unique(clusters, return_index=True)[1].tolist()]
    if len(ids) < 2:
        return None
    pairs = compare_pairs(scores, statistics, clusters)
    separations = list_separations(scores, pairs, clusters)
    counts = np.array([len(ids) * times for times in MULTIPLES])
    detectable = compute_detectable(scores, counts, clusters, statistics.alpha)
    unbounded = _explain_unbounded(dataset, parsed)
    return Reliability(
        measure=str(parsed),
        names=list(rankings),
        means=scores.mean(axis=1).tolist(),
        queries=int(np.count_nonzero(counted)),
        units=len(ids),
        statistics=statistics,
        stability=_measure_stability(scores, clusters, statistics) if _has_stability(len(rows), len(ids)) else None,
        power=measure_discriminative_power(scores, pairs, clusters, statistics),
        separations=separations,
        detectable=dict(zip(counts.tolist(), detectable.tolist(), strict=True)),
        information=measure_information(scores, clusters),
        ids=ids,
        bounds=[] if unbounded else _bound(dataset, grader, list(rankings.values()), parsed, counted, separations),
        unbounded=unbounded,
    )


def _has_stability(systems: int, units: int) -> bool:
    return systems >= FEWEST_SYSTEMS and units >= FEWEST_UNITS


def _measure_stability(
    scores: NDArray[np.float64], clusters: NDArray[np.int64] | None, statistics: Statistics
) -> RankingStability:
    return measure_stability(scores, clusters, seed=statistics.seed, confidence=statistics.confidence)


def _explain_unbounded(dataset: Dataset, measure: Measure) -> str:
    """Return why differences by a measure have no bounds; "" if they have."""
    if measure.name not in BOUNDED or not measure.cutoff or measure.in_tokens:
        return f"bounds are computed for {', '.join(f'{name}@K' for name in BOUNDED)}, not for {measure}"
    if dataset.document_of is not None:
        return "bounds are computed for rankings of documents, not of chunks"
    return ""


def _bound(
    dataset: Dataset,
    grader: Grader,
    rankings: Sequence[Rankings],
    measure: Measure,
    counted: NDArray[np.bool_],
    separations: Sequence[Separation],
) -> list[DifferenceBounds]:
    k = int(measure.cutoff or 0)
    judgments, queries = dataset.judgments, np.flatnonzero(counted).tolist()
    highest = int(judgments.grades.max(initial=1))
    of_query = {}
    for query in queries:
        grades = judgments.grades[slice(*np.searchsorted(judgments.queries, [query, query + 1]))]
        of_query[query] = QueryJudgments(grades[grades > 0].tolist(), highest)
    tops = [_cut(ranking, grader.grades(ranking), k) for ranking in rankings]
    bounds = []
    for pair in separations:
        one, other = tops[pair.better], tops[pair.worse]
        limits = np.array([bound_difference(measure.name, k, one[q], other[q], of_query[q]) for q in queries])
        seen = [dict([*one[q], *other[q]]) for q in queries]
        unjudged = sum(grade is None for documents in seen for grade in documents.values())
        share = unjudged / max(sum(map(len, seen)), 1)
        low, high = limits.mean(axis=0).tolist()
        bounds.append(DifferenceBounds(pair.better, pair.worse, pair.difference, low, high, share))
    return bounds


def _cut(ranking: Rankings, grades: NDArray[np.int32], k: int) -> list[list[tuple[int, int | None]]]:
    """Return the first k documents of each query with their grades, None for an unjudged one."""
    return [
        [(d, None if g == NOTHING else g) for d, g in zip(documents, row, strict=True) if d != NOTHING]
        for documents, row in zip(ranking.documents[:, :k].tolist(), grades[:, :k].tolist(), strict=True)
    ]
