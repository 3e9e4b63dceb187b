"""Expand the measures of results as functions of the grades of a pool, to estimate them from a judge and a few people.

Precision is linear in the grades, so its expansion is exact. nDCG is not linear, because an unknown grade also changes
the ideal ranking. It is expanded to first order, query by query, around the expected grades given the judge's
(Hoeffding's projection): the effect of a grade is the mean change of nDCG if the other grades of the pool are drawn at
random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING
from runner.analysis.judging import SCALE, JudgedRankings, Pair, rank_documents
from runner.analysis.prediction_powered import Expansion, Floats, expand_linear

_DRAWS = 32
"""The number of random gradings of a query's pool over which a first-order effect is averaged."""


@dataclass(frozen=True)
class PooledRanking:
    """The first k documents of a result that are judged or pooled, in columns, and their earlier judgments.

    `pairs` is the position of each document in the pool, or -1 for one that people judged before, whose gain is in
    `gains`. `known` are the gains of all earlier judgments of each counted query, in descending order; `pools` are the
    positions of each query in the pool.
    """

    queries: NDArray[np.int64]
    ranks: NDArray[np.int64]
    pairs: NDArray[np.int64]
    gains: Floats
    known: Mapping[int, Floats]
    pools: Mapping[int, NDArray[np.int64]]


def convert_grades(greatest: int) -> Floats:
    """Convert each grade of the judge's scale to the scale of a dataset with the largest grade `greatest`."""
    return np.floor(np.arange(SCALE.greatest + 1) * greatest / SCALE.greatest + 0.5)


def list_pooled(run: JudgedRankings, pairs: Sequence[Pair], k: int) -> PooledRanking:
    """Return the first k documents of a result with their positions in the pool."""
    judgments = run.judgments
    counted = set(judgments.queries[judgments.grades > 0].tolist()) - set(run.rankings.errors or ())
    grades = {
        (query, document): float(grade)
        for query, document, grade in zip(
            judgments.queries.tolist(), judgments.documents.tolist(), judgments.grades.tolist(), strict=True
        )
    }
    at = {pair: place for place, pair in enumerate(pairs)}
    known: dict[int, list[float]] = {query: [] for query in counted}
    for (query, _), grade in grades.items():
        if query in counted and grade > 0:
            known[query].append(grade)
    pools: dict[int, list[int]] = {query: [] for query in counted}
    for pair, place in at.items():
        if pair[0] in counted and pair not in grades:
            pools[pair[0]].append(place)
    rows = []
    for query, documents in enumerate(rank_documents(run, k)):
        seen: set[int] = set()
        for rank, document in enumerate(documents.tolist(), start=1):
            if query in counted and document != NOTHING and document not in seen:
                seen.add(document)
                pair = (query, document)
                rows.append((query, rank, -1 if pair in grades else at.get(pair, -1), grades.get(pair, 0.0)))
    columns = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    return PooledRanking(
        columns[0].astype(np.int64),
        columns[1].astype(np.int64),
        columns[2].astype(np.int64),
        columns[3],
        {query: np.sort(np.array(gains))[::-1] for query, gains in known.items()},
        {query: np.array(places, dtype=np.int64) for query, places in pools.items()},
    )


def expand_precision(pooled: PooledRanking, k: int, gains: Floats, chances: Floats) -> Expansion:
    """Return P@k, the mean over counted queries, as an expansion; `gains` are those of the judge's grades."""
    weight = 1 / (k * max(len(pooled.known), 1))
    parts = np.zeros(chances.shape)
    there = pooled.pairs >= 0
    parts[pooled.pairs[there]] = weight * (gains > 0)
    return expand_linear(weight * float((pooled.gains[~there] > 0).sum()), parts, chances)


@dataclass(frozen=True)
class IdealDraws:
    """Random grades of the pool of each query, and the DCG of the ideal ranking with them.

    By query: `gains` (draws x pairs), `ideal` (draws,), and `ideal_of` (pairs x grades x draws), the ideal DCG with the
    grade of one pair fixed.
    """

    gains: Mapping[int, Floats]
    ideal: Mapping[int, Floats]
    ideal_of: Mapping[int, Floats]


def draw_ideals(pooled: PooledRanking, k: int, gains: Floats, chances: Floats, rng: np.random.Generator) -> IdealDraws:
    """Draw grades of the pool; results with the same earlier judgments share the draws."""
    discounts = 1 / np.log2(np.arange(2, k + 2))
    drawn, ideal, ideal_of = dict[int, Floats](), dict[int, Floats](), dict[int, Floats]()
    for query, known in pooled.known.items():
        places = pooled.pools[query]
        uniform = rng.random((_DRAWS, len(places), 1))
        own = gains[(uniform > np.cumsum(chances[places], axis=1)[:, :-1]).sum(axis=2)]
        fixed = np.broadcast_to(own, (len(places), len(gains), *own.shape)).copy()
        for column in range(len(places)):
            fixed[column, :, :, column] = gains[:, None]
        drawn[query] = own
        ideal[query] = _ideal(known, own, discounts)
        ideal_of[query] = _ideal(known, fixed, discounts)
    return IdealDraws(drawn, ideal, ideal_of)


def expand_ndcg(pooled: PooledRanking, k: int, gains: Floats, chances: Floats, ideals: IdealDraws) -> Expansion:
    """Return nDCG@k, the mean over counted queries, as its first-order expansion."""
    effects = np.zeros(chances.shape)
    discounts = 1 / np.log2(np.arange(2, k + 2))
    total = 0.0
    for query, places in pooled.pools.items():
        first, last = np.searchsorted(pooled.queries, [query, query + 1])
        own, discount = pooled.pairs[first:last], discounts[pooled.ranks[first:last] - 1]
        weights = np.zeros(len(places))
        weights[np.searchsorted(places, own[own >= 0])] = discount[own >= 0]
        constant = float((pooled.gains[first:last] * discount)[own < 0].sum())
        drawn = ideals.gains[query]
        dcg = constant + drawn @ weights
        total += float((dcg / ideals.ideal[query]).mean())
        change = weights[:, None, None] * (gains[:, None] - drawn.T[:, None])
        values = ((dcg + change) / ideals.ideal_of[query]).mean(axis=2)
        effects[places] = values - (values * chances[places]).sum(axis=1, keepdims=True)
    counted = max(len(pooled.known), 1)
    return Expansion(total / counted, effects / counted)


def _ideal(known: Floats, gains: Floats, discounts: Floats) -> Floats:
    """Return the DCG of the ideal ranking of earlier gains and of gains drawn along the last axis."""
    earlier = np.broadcast_to(known[: len(discounts)], (*gains.shape[:-1], min(len(discounts), len(known))))
    best = -np.sort(-np.concatenate([earlier, gains], axis=-1), axis=-1)[..., : len(discounts)]
    ideal: Floats = best @ discounts[: best.shape[-1]]
    return ideal
