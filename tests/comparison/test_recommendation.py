"""Which row of a leaderboard is recommended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runner.comparison.leaderboard import LeaderboardRow, build_leaderboard
from runner.comparison.recommendation import find_cheapest, recommend
from runner.statistics.search_gain import SearchGain
from tests.pages.factory import result, sweep


def rows(*figures: dict[str, float]) -> list[LeaderboardRow]:
    board = build_leaderboard(sweep(len(figures)), "nDCG@10")
    return [replace(row, means=means) for row, means in zip(board.rows, figures, strict=True)]


@pytest.mark.parametrize(
    ("figures", "rank"),
    [
        ([{"median_ms": 9.0}, {"median_ms": 2.0}, {"median_ms": 1.0}], 2),  # 2 ms and 1 ms count as equal
        ([{"median_ms": 9.0}, {"median_ms": 2.1}, {"median_ms": 1.0}], 3),
        ([{"median_ms": 1.0, "api_cost": 0.5}, {"median_ms": 9.0, "api_cost": 0.0}], 2),
        ([{}, {"median_ms": 4.0}], 2),
    ],
)
def test_the_cheapest_has_no_api_cost_and_is_as_fast_as_any(figures: list[dict[str, float]], rank: int) -> None:
    cheapest = find_cheapest(rows(*figures))
    assert cheapest is not None
    assert cheapest.rank == rank


def test_without_times_there_is_no_cheapest() -> None:
    assert find_cheapest(rows({}, {})) is None


@pytest.mark.parametrize(("observed", "rank"), [(0.01, 2), (0.03, 1)])
def test_the_cheapest_is_recommended_only_if_the_gain_is_that_of_chance(observed: float, rank: int) -> None:
    times = {"a": [3.0] * 9, "b": [0.5] * 9}
    results = [result("a", quality=0.62), result("b", quality=0.6)]
    board = build_leaderboard(
        [replace(of, timings=replace(of.timings, each_ms=times[of.name])) for of in results], "nDCG@10"
    )
    board = replace(board, search_gain=SearchGain(2, observed, 0.02))
    board = replace(board, rows=[replace(row, difference=board.rows[0].difference) for row in board.rows])
    advice = recommend(board)
    assert advice is not None
    assert (advice.row.rank, advice.arbitrary, len(advice.alike)) == (rank, rank == 2, 2)
