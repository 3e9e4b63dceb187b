"""Expand the measures of results as functions of the grades of a pool, to estimate them from a judge and a few people.

Precision is linear in the grades, so its expansion is exact. nDCG is not linear, because an unknown grade also changes
the ideal ranking. It is expanded to first order, query by query, around the expected grades given the judge's
(Hoeffding's projection): the effect of a grade is the mean change of nDCG if the other grades of the pool are drawn at
random. The draws are independent given the judge's grades. The estimate is biased as far as people's grades are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
    """Random grades of the pools of some `queries`, and the DCG of the ideal ranking with them.

    `places` (P,) are the pairs of these queries, by position in the pool, and `rows` (P,) the query of each, from 0.
    `gains` (draws x P) are drawn, `ideal` (draws x Q) is the ideal DCG with them, and `ideal_of` (grades x draws x P)
    that with the grade of one pair fixed.
    """

    queries: Sequence[int]
    places: NDArray[np.int64]
    rows: NDArray[np.int64]
    gains: Floats
    ideal: Floats
    ideal_of: Floats


def draw_ideals(pooled: PooledRanking, k: int, gains: Floats, chances: Floats, rng: np.random.Generator) -> IdealDraws:
    """Draw grades of the pool; results with the same earlier judgments share the draws.

    The ideal DCG is summed over levels of gain: each adds the step from the level below, times the discounts of as many
    ranks as documents reach the level.
    """
    queries = list(pooled.known)
    places = np.concatenate([np.zeros(0, dtype=np.int64), *(pooled.pools[query] for query in queries)])
    rows = np.repeat(np.arange(len(queries)), [len(pooled.pools[query]) for query in queries])
    uniform, limits = rng.random((_DRAWS, len(places))), np.cumsum(chances[places], axis=1)
    own = gains[np.sum([uniform > limits[:, grade] for grade in range(len(gains) - 1)], axis=0)]
    ends = np.searchsorted(rows, np.arange(len(queries) + 1))
    first = np.concatenate(([0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))))  # the sum of the first discounts
    ideal, ideal_of = np.zeros((_DRAWS, len(queries))), np.zeros((len(gains), _DRAWS, len(places)))
    levels = np.unique(np.concatenate([gains, *pooled.known.values()]))
    for below, level in pairwise([0.0, *levels[levels > 0].tolist()]):
        known = np.array([(row >= level).sum() for row in pooled.known.values()], dtype=np.int64)
        reached = own >= level
        running = np.pad(np.cumsum(reached, axis=1), ((0, 0), (1, 0)))
        counts = known + np.diff(running[:, ends], axis=1)
        ideal += (level - below) * first[np.minimum(counts, k)]
        others = counts[:, rows] - reached
        for grade, gain in enumerate(gains.tolist()):
            ideal_of[grade] += (level - below) * first[np.minimum(others + (gain >= level), k)]
    return IdealDraws(queries, places, rows, own, ideal, ideal_of)


def expand_ndcg(pooled: PooledRanking, k: int, gains: Floats, chances: Floats, ideals: IdealDraws) -> Expansion:
    """Return nDCG@k, the mean over counted queries, as its first-order expansion."""
    places, rows, drawn = ideals.places, ideals.rows, ideals.gains
    row_of = {query: row for row, query in enumerate(ideals.queries)}
    own, discounts = pooled.pairs >= 0, 1 / np.log2(pooled.ranks + 1)
    discount_of = np.zeros(len(chances))
    discount_of[pooled.pairs[own]] = discounts[own]
    weights, counted = discount_of[places], len(ideals.queries)
    before = np.array([row_of[query] for query in pooled.queries[~own].tolist()], dtype=np.int64)
    constant = np.bincount(before, (pooled.gains * discounts)[~own], counted)
    dcg = constant + np.stack([np.bincount(rows, draw * weights, counted) for draw in drawn])
    values = np.stack(
        [
            ((dcg[:, rows] + weights * (gain - drawn)) / ideal).mean(axis=0)
            for gain, ideal in zip(gains.tolist(), ideals.ideal_of, strict=True)
        ],
        axis=1,
    )
    effects = np.zeros(chances.shape)
    effects[places] = values - (values * chances[places]).sum(axis=1, keepdims=True)
    return Expansion(float((dcg / ideals.ideal).mean(axis=0).sum()) / max(counted, 1), effects / max(counted, 1))
