"""Recommend a row of a leaderboard: the best, or the cheapest of those like it if choosing the best gained nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from runner.comparison.criteria import COSTS
from runner.comparison.gate import find_allowed_loss
from runner.comparison.leaderboard import Leaderboard, LeaderboardRow
from runner.pages.numbers import missing

SAME_SPEED = 2.0
"""Times per query within this factor count as equal, because they differ as much from run to run."""


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The `row` to use, the rows `alike`, best first, and the cheapest of these (None if no time is known).

    Rows alike do not differ significantly from the best, which is the first of them. The choice among them is
    `arbitrary` if no row differs from the best, or if choosing the best gained no more than chance gives to a search of
    equal systems; then the cheapest is the row to use.
    """

    row: LeaderboardRow
    alike: Sequence[LeaderboardRow]
    cheapest: LeaderboardRow | None
    arbitrary: bool

    @property
    def is_harmless(self) -> bool:
        """Return whether no row alike can be further from the best than the loss that the default gate allows.

        Their intervals say so; without one, as where few queries differ, nothing is known.
        """
        margin, others = find_allowed_loss(), [row.difference for row in self.alike[1:]]
        return all(-own.low <= margin and own.high <= margin for own in others)


def recommend(board: Leaderboard) -> Recommendation | None:
    """Return what to use; None if there is no choice."""
    if len(board.rows) < 2 or not board.queries or missing(board.rows[0].mean):
        return None
    alike = [row for row in board.rows if not row.difference.significant]
    gain, cheapest = board.search_gain, find_cheapest(alike)
    arbitrary = len(alike) > 1 and (len(alike) == len(board.rows) or gain.observed <= gain.expected)
    return Recommendation(cheapest if arbitrary and cheapest else board.rows[0], alike, cheapest, arbitrary)


def find_cheapest(rows: Sequence[LeaderboardRow]) -> LeaderboardRow | None:
    """Return the row with the lowest API cost, then the fastest; of those as fast, the first; None without times."""
    times = {row.rank: row.means.get(COSTS["median_ms"].name, math.nan) for row in rows}
    timed = [row for row in rows if not math.isnan(times[row.rank])]
    if not timed:
        return None
    prices = [row.means.get(COSTS["api_cost"].name, 0.0) for row in timed]
    cheap = [row for row, price in zip(timed, prices, strict=True) if not price > min(prices)]
    fastest = min(times[row.rank] for row in cheap)
    return next(row for row in cheap if times[row.rank] <= SAME_SPEED * fastest)
