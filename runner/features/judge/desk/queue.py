"""Which pair an assessor sees next.

Pairs are taken in batches by the order of the pool, each estimated from the grades so far. Within a batch, the pairs of
a query follow each other in random order, near-duplicates side by side, so that an assessor reads a query once and
grades copies alike. A batch of a random sample stays in its random order: any part of it is a random sample too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from retrievers.store import fingerprint
from runner.features.judge.desk.pairs import DeskPool
from runner.features.judge.judging import PairIds
from runner.features.judge.order import UNJUDGED, PairOrder, order_pairs
from runner.features.judge.prediction_powered import Ints

BATCH = 20
"""The number of pairs after which the order is estimated again."""


class PairQueue:
    """The work of one assessor on a pool, in an order that depends on the seed and the assessor's name."""

    def __init__(self, pool: DeskPool, order: PairOrder, seed: int, assessor: str) -> None:
        self._pool, self._order, self._batch = pool, order, list[int]()
        self._rng = np.random.default_rng([seed, int(fingerprint(assessor)[:8], 16)])
        self._sample = np.random.default_rng(seed).permutation(len(pool))
        self._groups: dict[int, dict[int, tuple[int, ...]]] = {}

    def find_next(self, grades: Ints, closed: Collection[int]) -> int | None:
        """Return the next pair, by position in the pool; None if none is left.

        `grades` (N + M) are the grades so far, `closed` further pairs that the assessor does not see (again).
        """
        while True:
            while self._batch:
                if grades[self._batch[0]] == UNJUDGED and self._batch[0] not in closed:
                    return self._batch[0]
                self._batch.pop(0)
            self._batch = self._draw_batch(grades, closed)
            if not self._batch:
                return None

    def group_of(self, place: int) -> tuple[int, ...]:
        """Return the near-duplicates of a pair, itself included."""
        query = int(self._pool.ranked.queries[place])
        if query not in self._groups:
            groups = self._pool.group_duplicates(query)
            self._groups[query] = {member: group for group in groups for member in group}
        return self._groups[query].get(place, (place,))

    def _draw_batch(self, grades: Ints, closed: Collection[int]) -> list[int]:
        open_ = {place for place in range(len(self._pool)) if grades[place] == UNJUDGED and place not in closed}
        if self._order == "random":
            return [place for place in self._sample.tolist() if place in open_][:BATCH]
        ordered = order_pairs(self._order, self._pool.ranked, grades, BATCH + len(closed))
        return self._arrange([place for place in ordered if place in open_][:BATCH], open_)

    def _arrange(self, drawn: list[int], left: set[int]) -> list[int]:
        """Return pairs by query in random order, each with its near-duplicates that are left."""
        by_query: dict[int, list[int]] = {}
        for place in drawn:
            by_query.setdefault(int(self._pool.ranked.queries[place]), []).append(place)
        arranged: dict[int, None] = {}
        for places in by_query.values():
            for place in self._rng.permutation(places).tolist():
                arranged |= dict.fromkeys(member for member in (place, *self.group_of(place)) if member in left)
        return list(arranged)


def is_shared(pair: PairIds, seed: int, overlap: float) -> bool:
    """Return whether every assessor grades a pair: a random share `overlap` of all pairs."""
    return int(fingerprint(str(seed), *pair)[:8], 16) < overlap * 16**8


def list_taken(
    pool: DeskPool, others: Mapping[str, Mapping[PairIds, int]], seed: int, overlap: float
) -> dict[int, int]:
    """Return the grades of pairs that another assessor graded and that need no second grade, by position."""
    taken: dict[int, int] = {}
    for grades in others.values():
        for pair, grade in grades.items():
            place = pool.places.get(pair)
            if place is not None and not is_shared(pair, seed, overlap):
                taken[place] = grade
    return taken
