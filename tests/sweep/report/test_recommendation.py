"""The last words of a sweep: what to use, what the choice rests on, and which values to try next."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from runner.__main__ import main
from runner.comparison.leaderboard import Leaderboard, build_leaderboard
from runner.comparison.selection import DefaultComparison, WinnerSelection
from runner.evaluation.result import Result
from runner.sweep.report.recommendation import describe_recommendation
from tests.pages.factory import result

PRIMARY = "nDCG@10"


def timed(name: str, quality: float, milliseconds: float) -> Result:
    one = result(name, quality=quality, seed=ord(name))
    return replace(one, timings=replace(one.timings, each_ms=[milliseconds] * 9))


def test_the_recommendation_names_the_cheapest_of_those_like_the_best() -> None:
    board = build_leaderboard([timed("a", 0.8, 0.25), timed("b", 0.81, 3.0), timed("c", 0.2, 0.01)], PRIMARY)
    assert [row.difference.significant for row in board.rows] == [False, False, True]
    best, second = board.labels[:2]
    assert describe_recommendation(board) == (
        f"Use {best} ({PRIMARY} {board.rows[0].mean:.4f}); {second} does not differ significantly from it on these 30 "
        f"queries. The cheapest of these: {second} (0.25 ms a query)."
    )


def chosen_by_chance(**figures: float) -> Leaderboard:
    """Return a leaderboard of three whose best gained no more than chance, its differences with some other figures."""
    board = build_leaderboard([timed(name, 0.6, ms) for name, ms in zip("abc", (0.25, 2.0, 3.0), strict=True)], PRIMARY)
    assert 0 < board.search_gain.observed < board.search_gain.expected
    rows = [replace(row, difference=replace(row.difference, **figures)) for row in board.rows[1:]]
    return replace(board, rows=[board.rows[0], *rows])


def test_a_choice_that_the_queries_cannot_decide_is_said_to_be_one() -> None:
    board = chosen_by_chance()
    cheapest = next(row for row in board.rows if row.name == "a")
    assert (cheapest.rank, 100 < cheapest.difference.needed < 10_000) == (2, True)
    assert describe_recommendation(board) == (
        "These 30 queries cannot show which of the best 3 is better: they usually show differences from about "
        f"{board.detectable:.4f}, and choosing the best gained no more than chance gives. Use the cheapest: "
        f"{board.labels[1]} ({PRIMARY} {cheapest.mean:.4f}, 0.25 ms a query). About {cheapest.difference.needed:,.0f} "
        f"queries would be needed to show its difference from the best ({cheapest.difference.mean:+.4f})."
    )


def test_combinations_like_the_best_need_not_be_the_first_ones() -> None:
    board = chosen_by_chance()
    second = replace(board.rows[1], difference=replace(board.rows[1].difference, significant=True))
    board = replace(board, rows=[board.rows[0], second, board.rows[2]])
    assert describe_recommendation(board).startswith("These 30 queries cannot show which of 2 combinations is better: ")


def test_none_is_called_the_cheapest_where_no_time_is_known() -> None:
    board = chosen_by_chance()
    untimed = [replace(row, means={**row.means, "median_ms": math.nan}) for row in board.rows]
    advice = describe_recommendation(replace(board, rows=untimed))
    assert f"Use any, such as {board.labels[0]} ({PRIMARY} {board.rows[0].mean:.4f})." in advice
    assert "cheapest" not in advice


@pytest.mark.parametrize(
    ("figures", "is_harmless"),
    [
        ({"low": -0.009, "high": 0.01}, True),
        ({"low": -0.011, "high": 0.001}, False),
        ({"low": -0.001, "high": 0.011}, False),
        ({"low": math.nan, "high": math.nan}, False),
    ],
)
def test_a_choice_does_not_matter_only_if_all_intervals_are_within_the_margin(
    figures: dict[str, float], is_harmless: bool
) -> None:
    advice = describe_recommendation(chosen_by_chance(**figures))
    harmless = (
        "The choice among the best 3 does not matter: their differences from the best are within 0.01 (95% intervals)."
    )
    assert advice.startswith(harmless) == is_harmless
    assert ("would be needed" in advice) != is_harmless


def test_a_sweep_on_few_queries_says_what_they_cannot_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    words = ["-m", "retriever.k1=0.8,1.2,1.6", "dataset.max_queries=15", "tracking=none"]
    assert main([*words, "--json"]) == 0
    (board,) = json.loads(capsys.readouterr().out)["leaderboards"]
    assert main(words) == 0
    last = " ".join(capsys.readouterr().out.split())
    assert board["search_gain"]["observed"] <= board["search_gain"]["expected"]
    assert (
        f"These {board['queries']} queries cannot show which of the best 3 is better: they usually show differences "
        f"from about {board['detectable']:.4f}, and" in last
    )
    assert "does not matter" not in last


@pytest.mark.parametrize(
    ("values", "qualities", "hint"),
    [
        ((64, 128, 256), (0.2, 0.5, 0.8), "the largest tried (256), significantly better than 128: try larger values."),
        (
            (8, 128, 256),
            (0.8, 0.5, 0.2),
            "the smallest tried (8), significantly better than 128: try smaller values.",
        ),
        (
            (64, 128, 256),
            (0.2, 0.6, 0.66),
            "the largest tried (256), though not significantly better than 128; larger values may be worth a try.",
        ),
        ((64, 128, 256), (0.2, 0.8, 0.5), ""),
        ((64, 128), (0.2, 0.8), ""),
        (("a", "b", "c"), (0.2, 0.5, 0.8), ""),
        ((0, 0.5, 1), (0.8, 0.5, 0.2), ""),
        ((0, 0.5, 1), (0.2, 0.5, 0.8), ""),
        ((0.5, 1, 1.5), (0.2, 0.5, 0.8), "the largest tried (1.5), significantly better than 1: try larger values."),
    ],
)
def test_the_last_words_say_when_the_best_is_at_an_end_of_a_range(
    values: tuple[object, ...], qualities: tuple[float, ...], hint: str
) -> None:
    results = [
        result(str(value), swept={"chunking.size": value}, quality=quality, seed=seed)
        for seed, (value, quality) in enumerate(zip(values, qualities, strict=True))
    ]
    advice = describe_recommendation(build_leaderboard(results, PRIMARY))
    assert advice.partition("The best chunking.size is ")[2] == hint


def test_only_combinations_that_differ_in_one_setting_are_a_range() -> None:
    swept = [{"size": 64, "b": 1}, {"size": 128, "b": 2}, {"size": 256, "b": 3}, {"size": 256}]
    results = [result(str(i), swept=of, quality=0.2 * (i + 1)) for i, of in enumerate(swept)]
    assert "tried" not in describe_recommendation(build_leaderboard(results, PRIMARY))


@pytest.mark.parametrize(("p", "gain", "is_better"), [(0.01, 0.1, True), (0.4, 0.1, False), (0.01, -0.1, False)])
def test_what_was_selected_elsewhere_is_compared_with_the_default_settings(
    p: float, gain: float, is_better: bool
) -> None:
    board = build_leaderboard([timed("a", 0.6, 3.0), timed("b", 0.2, 0.25)], PRIMARY)
    default = DefaultComparison(0.4321, replace(board.rows[1].difference, p=p, mean=gain), board.statistics)
    chosen = WinnerSelection("harbour", "train", "test", "a", {}, PRIMARY, 30, {}, default=default)
    advice = describe_recommendation(replace(board, selection=chosen))
    assert advice.endswith("; but it is not shown to be better than the default settings (0.4321).") != is_better


def test_the_recommendation_says_when_all_others_are_worse() -> None:
    board = build_leaderboard([timed("a", 0.9, 3.0), timed("b", 0.2, 0.25)], PRIMARY)
    assert describe_recommendation(board).endswith("all others are significantly worse on these 30 queries.")


def test_the_recommendation_counts_a_single_query_in_words() -> None:
    board = build_leaderboard([result("a", queries=1), result("b", queries=1)], PRIMARY)
    assert describe_recommendation(board) == (
        "This one query cannot show which of the best 2 is better: no difference is significant. Use the cheapest: a "
        f"({PRIMARY} {board.rows[0].mean:.4f}, 1.50 ms a query)."
    )


def test_a_single_combination_is_not_recommended() -> None:
    assert describe_recommendation(build_leaderboard([result()], PRIMARY)) == ""
