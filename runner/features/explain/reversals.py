"""Verified causes: for each query that moved, the changes whose reversal alone restores its rank and its value.

Compares evaluations that exist; evaluates nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.comparison.comparability import score_queries
from runner.evaluation.result import Result

TOLERANCE = 1e-9
"""How far apart two values of a measure may be that count as equal: the order of a sum leaves noise."""

Changes = frozenset[str]
"""Settings and parts of the data that changed, as in a coalition."""


@dataclass(frozen=True, eq=False)
class QueryStates:
    """The value of a measure and the rank of the first gold of each query in an evaluation, float64 (queries,).

    A value is NaN where the query does not count. A rank is infinite without gold among the hits, NaN if it is unknown.
    """

    values: NDArray[np.float64]
    ranks: NDArray[np.float64]

    @classmethod
    def of(cls, result: Result, measure: str, ids: Sequence[str]) -> QueryStates:
        """Return the states of the queries with these ids in a result, whatever their texts are."""
        places = {query: i for i, query in enumerate(result.queries.ids)}
        own = [(i, places[query]) for i, query in enumerate(ids) if query in places]
        rows, columns = np.array(own, dtype=np.int64).reshape(-1, 2).T
        values, ranks = np.full(len(ids), math.nan), np.full(len(ids), math.nan)
        values[rows] = score_queries(result, measure)[columns]
        ranks[rows] = _rank_first_gold(result)[columns]
        return cls(values, ranks)

    def equals(self, other: QueryStates) -> NDArray[np.bool_]:
        """Return which queries have the same state in another evaluation; an unknown rank is not compared."""
        is_same = np.isclose(self.values, other.values, rtol=0, atol=TOLERANCE, equal_nan=True)
        is_same &= (self.ranks == other.ranks) | np.isnan(self.ranks) | np.isnan(other.ranks)
        return is_same


def _rank_first_gold(result: Result) -> NDArray[np.float64]:
    """Return the rank of each query's first hit with a grade above 0, from 1; without saved rankings, that of RR."""
    ranks = np.full(len(result.queries.ids), math.inf)
    if result.hits is not None:
        queries, places = np.nonzero(result.hits.grades > 0)
        np.minimum.at(ranks, queries, places + 1.0)
    elif "RR" in result.measures:
        np.divide(1, result.of("RR"), out=ranks, where=result.of("RR") != 0)
    else:
        ranks[:] = math.nan
    return np.round(ranks)


@dataclass(frozen=True)
class MovedQuery:
    """A query whose value of the primary measure or rank of the first gold differs between the results.

    `values` and `ranks` are those of the baseline and of the candidate, as in `QueryStates`. `restored_by` has the
    smallest sets of changes that restore both if they are reversed in the candidate: with sets of one change, each is a
    verified cause; with larger sets, no change is one alone. It is empty if no reversal restores them.
    """

    query: str
    values: tuple[float, float]
    ranks: tuple[float, float]
    restored_by: Sequence[Sequence[str]]

    @property
    def causes(self) -> list[str]:
        """Return the verified causes: the changes whose reversal alone restores the query."""
        return [changes[0] for changes in self.restored_by if len(changes) == 1]


@dataclass(frozen=True)
class MovedCounts:
    """How many queries moved, how many each change restores alone, and how many need several or are never restored.

    A query with several verified causes counts for each of them; `several` is how many such queries there are.
    """

    moved: int
    alone: Mapping[str, int]
    several: int
    together: int
    never: int

    @property
    def single(self) -> int:
        """Return how many queries have a verified cause."""
        return self.moved - self.together - self.never


def find_moved_queries(
    ids: Sequence[str],
    before: QueryStates,
    after: QueryStates,
    reversals: Mapping[Changes, QueryStates],
    names: Mapping[str, str],
) -> list[MovedQuery]:
    """Return the queries that moved, the largest loss first.

    `reversals` are evaluations of the candidate with some changes reversed, and `names` those of all changes in
    reports.
    """
    order = list(names)
    smallest_first = sorted(
        ([change for change in order if change in changes] for changes in reversals if changes),
        key=lambda changes: (len(changes), [order.index(change) for change in changes]),
    )
    restored = [reversals[frozenset(changes)].equals(before) for changes in smallest_first]
    moved = []
    for i in np.flatnonzero(~before.equals(after)).tolist():
        able = [changes for changes, own in zip(smallest_first, restored, strict=True) if own[i]]
        values = float(before.values[i]), float(after.values[i])
        ranks = float(before.ranks[i]), float(after.ranks[i])
        smallest = [[names[change] for change in changes] for changes in able if len(changes) == len(able[0])]
        moved.append(MovedQuery(ids[i], values, ranks, smallest))
    return sorted(moved, key=_sort_by_loss)


def count_moved(moved: Sequence[MovedQuery], order: Sequence[str]) -> MovedCounts:
    """Count queries that moved by what restores them."""
    alone = Counter(cause for query in moved for cause in query.causes)
    return MovedCounts(
        moved=len(moved),
        alone={change: alone[change] for change in order if alone[change]},
        several=sum(len(query.causes) > 1 for query in moved),
        together=sum(bool(query.restored_by) and not query.causes for query in moved),
        never=sum(not query.restored_by for query in moved),
    )


def _sort_by_loss(query: MovedQuery) -> tuple[float, float, str]:
    (old, new), (rank, now) = query.values, query.ranks
    difference = new - old
    lost_ranks = now - rank if math.isfinite(now - rank) else 0.0
    return 0.0 if math.isnan(difference) else round(difference, 9), -lost_ranks, query.query
