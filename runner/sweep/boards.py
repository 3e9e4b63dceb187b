"""The leaderboards of a sweep, one for each dataset, and its best result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from retrievers.base import Corpus
from runner.comparison.datasets import rank_systems
from runner.comparison.leaderboard import FailedCombination, Leaderboard, build_leaderboard
from runner.comparison.race import RaceRecord
from runner.comparison.search import Search
from runner.comparison.selection import WinnerSelection
from runner.metrics.settings import MetricSettings
from runner.result import Result

BestRankings = tuple[Mapping[int, Result], Corpus | None]
"""The best results with their rankings, by rank, and the documents that these name (None if they are unknown)."""

BEST = 5
"""The number of results whose rankings the report of a sweep shows."""


def load_nothing() -> BestRankings:
    """Return no rankings."""
    return {}, None


@dataclass(frozen=True, eq=False)
class Board:
    """A leaderboard and its results, by combination; `load_best` reads the rankings of the best ones for the report."""

    leaderboard: Leaderboard
    results: Mapping[str, Result]
    load_best: Callable[[], BestRankings] = load_nothing

    @property
    def best(self) -> dict[int, str]:
        """Return the best combinations by their rank."""
        names = list(self.results)
        return {row.rank: names[row.position] for row in self.leaderboard.rows[:BEST]}


def build_boards(
    results: Mapping[str, Result], failures: Sequence[FailedCombination], metrics: MetricSettings
) -> list[Board]:
    """Return a leaderboard for each dataset; the first one lists all failures."""
    groups: dict[str, dict[str, Result]] = {}
    for combination, result in results.items():
        groups.setdefault(result.dataset.fingerprint, {})[combination] = result
    primary = str(metrics.primary_measure)
    boards = [
        Board(build_leaderboard(list(group.values()), primary, () if position else failures, metrics), group)
        for position, group in enumerate(groups.values() or [{}])
    ]
    systems = rank_systems([board.leaderboard for board in boards])
    return [replace(board, leaderboard=replace(board.leaderboard, systems=systems)) for board in boards]


def complete_boards(
    boards: Sequence[Board],
    runs: Mapping[str, str],
    selections: Mapping[str, WinnerSelection],
    search: Search | None,
    race: RaceRecord | None = None,
) -> list[Board]:
    """Return leaderboards with the run ids of combinations, the selection for each dataset, the search and the race.

    `runs` is by combination, `selections` by the fingerprint of the dataset.
    """
    return [
        replace(
            board,
            leaderboard=replace(
                board.leaderboard,
                selection=selections.get(dataset.fingerprint) if (dataset := board.leaderboard.dataset) else None,
                search=search,
                race=race,
            ).with_runs([runs.get(combination, "") for combination in board.results]),
        )
        for board in boards
    ]


def find_best(results: Sequence[Result]) -> Result | None:
    """Return the best result by its primary measure; None without results or with several datasets."""
    if len({(result.dataset.fingerprint, result.dataset.split) for result in results}) > 1:
        return None
    return max(results, key=lambda result: np.nan_to_num(result.means[result.primary]), default=None)


def find_run(best: Result, results: Mapping[str, Result], runs: Mapping[str, str]) -> str:
    """Return the run id of the best result, "" if unknown.

    A cross-validated result has no run; it has the name of its combination, whose run is returned.
    """
    return next(
        (
            runs.get(combination, "")
            for combination, result in results.items()
            if (result.name, result.dataset) == (best.name, best.dataset)
        ),
        "",
    )
