"""Measure the difficulty of each query by the scores of several systems.

Systems are rows, queries are columns, and NaN marks a query that does not count for a system. Larger is better, and 0
marks a query without an answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SAME = 1e-9
"""Values that differ by at most this much are equal; the difference is rounding."""


@dataclass(frozen=True, eq=False)
class Difficulty:
    """The distribution of each query's scores: `means`, `spreads` (standard deviations), `lowest` and `highest`.

    All have shape (queries,) and are NaN for a query that counts for no system. `systems` is how many systems the query
    counts for, `answering` how many of these score above 0. The lower the mean, the harder the query (Mizzaro &
    Robertson 2007 call the average over systems the ease of a topic).
    """

    means: Floats
    spreads: Floats
    lowest: Floats
    highest: Floats
    systems: NDArray[np.int64]
    answering: NDArray[np.int64]

    @property
    def hardest(self) -> NDArray[np.int64]:
        """Return the positions of the queries that count, lowest mean first, then smallest spread first."""
        return self._order(~np.isnan(self.means), self.means, self.spreads)

    @property
    def unanswered(self) -> NDArray[np.int64]:
        """Return the positions of the queries that count and that no system answers."""
        return np.flatnonzero((self.systems > 0) & (self.answering == 0))

    @property
    def divisive(self) -> NDArray[np.int64]:
        """Return the positions of the queries on which systems differ, largest spread first."""
        return self._order(self.spreads > SAME, -self.spreads, self.means)

    @staticmethod
    def _order(some: NDArray[np.bool_], by: Floats, then: Floats) -> NDArray[np.int64]:
        positions = np.flatnonzero(some)
        keys = [np.round(key[positions] / SAME) for key in (then, by)]
        return positions[np.lexsort((positions, *keys))]


def difficulty(scores: Floats) -> Difficulty:
    """Summarise the scores of systems (m x queries) by query."""
    present = ~np.isnan(scores)
    counts = np.count_nonzero(present, axis=0)
    there = counts > 0

    def mean(values: Floats) -> Floats:
        result = np.full(scores.shape[1], np.nan)
        np.divide(np.where(present, values, 0).sum(axis=0), counts, out=result, where=there)
        return result

    means = mean(scores)
    return Difficulty(
        means=means,
        spreads=np.sqrt(mean((scores - means) ** 2)),
        lowest=np.where(there, np.where(present, scores, np.inf).min(axis=0, initial=np.inf), np.nan),
        highest=np.where(there, np.where(present, scores, -np.inf).max(axis=0, initial=-np.inf), np.nan),
        systems=counts,
        answering=np.count_nonzero(present & (scores > 0), axis=0),
    )
