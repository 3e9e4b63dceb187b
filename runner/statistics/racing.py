"""Races: drop configurations that are surely not the best before all queries are searched.

The queries are searched in random order. A configuration is dropped by a test that stays valid at any stopping time
(betting on the difference to the leader, for sampling without replacement: Waudby-Smith and Ramdas, 2020 and 2024).
`docs/explanations/racing.md` has the formulas and the proof. Only arithmetic: knows nothing of retrievers and sweeps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BETS: Floats = np.array([0.2, 0.5, 0.99])
"""The bets of the gamblers, as shares of the largest bet that cannot lose everything.

They are few, because each takes a part of the capital, and large, because small bets grow too slowly to drop anything.
"""


@dataclass(frozen=True)
class Drop:
    """A dropped configuration: after how many queries, against which leader, and the p-value, valid at any time.

    `mean` and `leader_mean` are the means over these queries.
    """

    configuration: int
    queries: int
    leader: int
    p: float
    mean: float
    leader_mean: float


class Race:
    """A race of configurations on a finite set of queries that are drawn in random order without replacement.

    `queries` is the size of the whole set. At any time, the probability that the winner on all queries has been dropped
    is at most `alpha`; with a `margin`, the probability that all configurations have been dropped whose mean is lower
    than the winner's by at most the margin. Values must be from 0 to 1.
    """

    def __init__(self, configurations: int, queries: int, alpha: float = 0.05, margin: float = 0.0) -> None:
        self.queries, self.alpha, self.margin = queries, alpha, margin
        self.seen = 0
        self.drops: list[Drop] = []
        self._is_left, self._is_out = np.ones(configurations, dtype=np.bool_), np.zeros(configurations, dtype=np.bool_)
        self._sums = np.zeros(configurations)
        self._log_capital = np.zeros((configurations, len(BETS)))
        self._log_margin_capital = np.zeros((configurations, len(BETS)))
        self._champions: list[int] = []
        self._most = np.zeros(configurations)

    @property
    def survivors(self) -> NDArray[np.int64]:
        """Return the configurations that have not been dropped, by number."""
        return np.flatnonzero(self._is_left)

    @property
    def racing(self) -> NDArray[np.int64]:
        """Return the survivors that are compared with each other, by number."""
        return np.flatnonzero(self._is_left & ~self._is_out)

    @property
    def capital(self) -> Floats:
        """Return the current capital of each configuration's test, which starts with 1."""
        capital: Floats = np.exp(self._pool(self._log_capital, self._log_margin_capital))
        return capital

    def exempt(self, configuration: int) -> None:
        """Take a survivor out of the comparisons: it is neither dropped nor a leader, because a value is missing."""
        self._is_out[configuration] = True

    @property
    def evaluations(self) -> int:
        """Return how often a configuration was evaluated on a query so far."""
        return self.seen * len(self.survivors) + sum(drop.queries for drop in self.drops)

    def observe(self, values: Floats) -> list[Drop]:
        """Add the values of `racing` on the next queries (configurations x queries), and return the new drops.

        Raises `ValueError` for values outside [0, 1], for NaN, and for more queries than there are.
        """
        racing = self.racing
        if values.shape[0] != len(racing) or self.seen + values.shape[1] > self.queries:
            raise ValueError(f"expected {len(racing)} rows and at most {self.queries - self.seen} columns")
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError("a race needs values from 0 to 1")
        if len(racing) > 1:
            self._bet(racing, values)
        self.seen += values.shape[1]
        if self.seen == self.queries or len(racing) < 2:
            return []
        leader = int(racing[np.argmax(self._sums[racing])])
        drops = [
            Drop(one, self.seen, leader, p, float(self._sums[one] / self.seen), float(self._sums[leader] / self.seen))
            for one in racing.tolist()
            if (p := math.exp(-self._most[one])) <= self.alpha and one != leader and one not in self._champions
        ]
        self._is_left[[drop.configuration for drop in drops]] = False
        self.drops += drops
        if self.margin and self._needs_champion(leader):
            self._champions.append(leader)
        return drops

    def _needs_champion(self, leader: int) -> bool:
        """Return whether there is no champion yet, or it is out or behind the leader by more than the margin."""
        if not self._champions or self._is_out[self._champions[-1]]:
            return True
        return bool(self._sums[leader] - self._sums[self._champions[-1]] > self.margin * self.seen)

    def _bet(self, racing: NDArray[np.int64], values: Floats) -> None:
        """Let each configuration's gamblers bet, query by query, that another one is better on the remaining queries.

        That is the leader and, with a margin, also the latest champion, which is never dropped. The rivals, their leads
        and the bets depend only on earlier queries.
        """
        # Why bets: a race looks at its test after every block. An ordinary test at 0.05 that is looked at ten times is
        # positive in 0.19 of the cases without a difference (Armitage, McPherson & Rowe 1969), so it would drop the
        # best configuration four times as often as alpha allows. The capital of a gambler in a game that is fair, or
        # against it, reaches 1 / alpha at any time with a probability of at most alpha (Ville 1939), however often one
        # looks. The game is fair only if a bet and its rival are fixed before the query: one that saw the values of
        # this query first would always win.
        sums, capital, most = self._sums[racing], self._log_capital[racing], self._most[racing]
        margin_capital, own = self._log_margin_capital[racing], np.arange(len(racing))
        champion = np.flatnonzero(racing == self._champions[-1]) if self._champions else own[:0]
        for i in range(values.shape[1]):
            rivals = np.full(len(racing), np.argmax(sums))
            first = rivals[0]
            rivals[first] = np.argmax(np.where(own == first, -np.inf, sums))
            seen = self.seen + i
            left, leads, gains = self.queries - seen, sums[rivals] - sums, values[rivals, i] - values[own, i]
            capital += log_growth(gains, -leads / left, 1.0)
            if len(champion):
                leads = sums[champion] - sums + self.margin * seen
                gains = values[champion, i] - values[own, i] + self.margin
                margin_capital += log_growth(gains, -leads / left, 1.0 - self.margin)
            most = np.maximum(most, self._pool(capital, margin_capital))
            sums = sums + values[:, i]
        most[sums + (self.queries - self.seen - values.shape[1]) < sums.max() - 1e-9] = np.inf  # they cannot catch up
        self._sums[racing], self._log_capital[racing], self._most[racing] = sums, capital, most
        self._log_margin_capital[racing] = margin_capital

    def _pool(self, capital: Floats, margin_capital: Floats) -> Floats:
        """Return the logarithm of the mean capital of all gamblers of each configuration."""
        everything = np.hstack((capital, margin_capital)) if self.margin else capital
        pooled: Floats = np.logaddexp.reduce(everything, axis=1) - math.log(everything.shape[1])
        return pooled


def log_growth(gains: Floats, bound: Floats | float, most_lost: float) -> Floats:
    """Return the logarithm of the factor of each gambler's capital, with the bets as the last axis.

    `bound` is the largest possible mean of the remaining gains under the hypothesis; a gain is at least `-most_lost`.
    """
    room = bound + most_lost
    with np.errstate(divide="ignore", invalid="ignore"):
        growth: Floats = np.log1p(BETS * np.where(room > 0, (gains - bound) / room, 0.0)[..., None])
    return growth


def run_race(
    scores: Floats, order: Sequence[int] | NDArray[np.int64], block: int, alpha: float = 0.05, margin: float = 0.0
) -> Race:
    """Race all configurations on stored scores (configurations x queries) in an order, in blocks of queries."""
    configurations, queries = scores.shape
    race = Race(configurations, queries, alpha, margin)
    for start in range(0, queries, block):
        race.observe(scores[np.ix_(race.racing, np.asarray(order)[start : start + block])])
    return race


@dataclass
class ErrorBudget:
    """The error rate that is left for the races of a search, in which each trial races against the best one so far.

    The probability that any dropped trial is better than the one that it raced against is at most the initial `left`.
    """

    left: float

    def share(self, trials: int) -> float:
        """Return the error rate of the next race, if this many trials are still to come."""
        return max(self.left, 0.0) / trials

    def charge(self, share: float, mean: float | None, best: float) -> float:
        """Return what a race used up, given the mean of its trial (None if it was dropped) and that of the best one.

        The race of a complete trial that is worse than the best one cannot have made an error, and used up nothing.
        """
        used = share if mean is None or mean >= best else 0.0
        self.left -= used
        return used


NOISE = 0.15
"""The assumption of `estimate_saving`: the standard deviation of the values of a query around its own level."""


def estimate_saving(
    spread: float, configurations: int, queries: int, block: int, alpha: float, margin: float = 0.0, races: int = 8
) -> float:
    """Return the mean share of evaluations that simulated races save, for at most 50 configurations and 2,000 queries.

    `spread` is the standard deviation of the means of configurations. The level of a query is drawn from a beta
    distribution with most values near 0 and 1.
    """
    configurations, queries = min(configurations, 50), min(queries, 2000)
    rng, saved = np.random.default_rng(0), 0.0
    for _ in range(races):
        values = rng.beta(0.6, 0.6, queries) + rng.normal(0, NOISE, (configurations, queries))
        values += rng.normal(0, spread, (configurations, 1))
        saved += 1 - run_race(np.clip(values, 0, 1), range(queries), block, alpha, margin).evaluations / values.size
    return saved / races
