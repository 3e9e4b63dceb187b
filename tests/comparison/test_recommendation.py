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


@pytest.mark.parametrize(("observed", "others", "rank"), [(0.01, [0.2], 2), (0.03, [0.2], 1), (0.03, [], 2)])
def test_the_cheapest_is_recommended_if_no_gain_or_no_difference_is_shown(
    observed: float, others: list[float], rank: int
) -> None:
    times = {"a": [3.0] * 9, "b": [0.5] * 9, "c": [0.1] * 9}
    results = [result(name, quality=quality) for name, quality in zip("abc", [0.62, 0.6, *others], strict=False)]
    board = build_leaderboard(
        [replace(of, timings=replace(of.timings, each_ms=times[of.name])) for of in results], "nDCG@10"
    )
    board = replace(board, search_gain=SearchGain(len(results), observed, 0.02))
    alike = [replace(row, difference=board.rows[0].difference) for row in board.rows[:2]]
    worse = [replace(row, difference=replace(row.difference, significant=True)) for row in board.rows[2:]]
    advice = recommend(replace(board, rows=[*alike, *worse]))
    assert advice is not None
    assert (advice.row.rank, advice.arbitrary, len(advice.alike)) == (rank, rank == 2, 2)
