"""Hole rates stand next to the measures, and unequal ones are pointed out."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from runner.comparison.compare import Comparison, TableStatistics, compare_results
from runner.comparison.leaderboard import build_leaderboard
from runner.comparison.notes import warn_holes, warn_unequal_holes
from runner.comparison.report.json import comparison_json
from runner.comparison.report.tables import measures_table
from runner.evaluation.report.printing import show_result
from runner.evaluation.result import Holes, Result
from runner.statistics.settings import Statistics
from runner.sweep.report.printing import show_leaderboard
from runner.sweep.report.tables import describe_judging, leaderboard_table
from tests.pages.factory import result

PRIMARY = "nDCG@10"
FEW = Statistics(permutations=100)


def with_holes(name: str, unjudged: int, seed: int = 0) -> Result:
    """Return a result with so many unjudged hits among 200, and a fifth of that rate at the first rank."""
    holes = Holes(10, 200, unjudged, 0, 0, {"1": unjudged / 1000, "10": unjudged / 200})
    return replace(result(name, seed=seed), holes=holes)


def compare(*results: Result) -> Comparison:
    return compare_results(results, TableStatistics(permutations=100))


def test_a_leaderboard_has_the_hole_rate_at_the_main_cutoff() -> None:
    board = build_leaderboard([with_holes("a", 5), with_holes("b", 0, 1), result("c", seed=2)], PRIMARY, (), FEW)
    table = leaderboard_table(board)
    place = [column.title for column in table.columns].index("holes@10")
    shown = dict(zip([row.name for row in board.rows], [row[place] for row in table.texts()], strict=True))
    assert shown["a"] == "2.5%"
    assert shown["b"] == "0.0%"
    assert board.to_frame().set_index("name")["hole_rate_at_10"]["a"] == 0.025


def test_a_leaderboard_without_unjudged_hits_has_no_such_column() -> None:
    board = build_leaderboard([with_holes("a", 0), result("b", seed=1)], PRIMARY, (), FEW)
    assert not [criterion.name for criterion in board.criteria if "hole" in criterion.name]
    assert (board.notes, board.holes) == ([], "")


def test_a_comparison_shows_the_hole_rates_at_the_cutoffs_of_its_measures() -> None:
    comparison = compare(with_holes("a", 5), with_holes("b", 10, 1))
    rows = {row[0]: row[1:3] for row in measures_table(comparison).rows}
    assert rows["hole rate@1"] == [0.005, 0.01]
    assert rows["hole rate@10"] == [0.025, 0.05]
    assert list({row[0]: 0 for row in measures_table(comparison, [PRIMARY]).rows}) == [PRIMARY, "hole rate@10"]
    assert json.loads(comparison_json(comparison, []))["systems"][1]["hole_rates"] == {"1": 0.01, "10": 0.05}


def test_a_comparison_without_unjudged_hits_has_no_hole_rates() -> None:
    for pair in ((result("a"), result("b", seed=1)), (with_holes("a", 0), with_holes("b", 0, 1))):
        assert not [row for row in measures_table(compare(*pair)).rows if "hole" in row[0]]


@pytest.mark.parametrize(("fewer", "more", "unfair"), [(20, 39, False), (20, 40, True), (0, 200, True)])
def test_unequal_hole_rates_are_pointed_out(fewer: int, more: int, unfair: bool) -> None:
    results = [with_holes("few", fewer), with_holes("middle", fewer, 1), with_holes("many", more, 2)]
    warning = warn_unequal_holes(results, ["few", "middle", "many"])
    assert bool(warning) == unfair
    board = build_leaderboard(results, PRIMARY, (), FEW)
    assert any("the hole rates at 10 differ" in note for note in board.notes) == unfair
    assert any("the hole rates at 10 differ" in note for note in compare(*results).notes) == unfair
    if unfair:
        assert f"{more / 200:.1%} of the hits of many are unjudged, but {fewer / 200:.1%} of those of few" in warning


def test_results_without_a_count_of_holes_are_not_compared() -> None:
    assert warn_unequal_holes([result("a"), with_holes("b", 200)], ["a", "b"]) == ""
    assert warn_unequal_holes([result("a")], ["a"]) == ""
    assert warn_unequal_holes([], []) == ""


@pytest.mark.parametrize(("each", "warns"), [(1, False), (1.9, False), (2, True)])
def test_unequal_hole_rates_of_known_item_data_are_no_warning(each: float, warns: bool) -> None:
    results = [with_judgments(each, 120), replace(with_judgments(each, 180, seed=1), name="b")]
    assert bool(warn_unequal_holes(results, ["a", "b"])) == warns
    assert any("the hole rates at 10 differ" in note for note in compare(*results).notes) == warns


def test_the_first_hits_of_known_item_data_are_no_warning() -> None:
    found = with_judgments(1, 100)
    first = replace(found, holes=Holes(1, 200, 100, 0, 0, {"1": 0.5}))
    assert warn_holes(first) == ""
    assert warn_holes(replace(first, dataset=replace(found.dataset, judgments=2 * found.dataset.queries))) != ""


def with_judgments(each: float, unjudged: int, seed: int = 0) -> Result:
    """Return a result with `each` judgments per query and `unjudged` unjudged hits among 200."""
    found = with_holes("a", unjudged, seed)
    return replace(found, dataset=replace(found.dataset, judgments=int(each * found.dataset.queries)))


@pytest.mark.parametrize(
    ("each", "unjudged", "warns", "is_first"),
    [
        (20, 30, False, False),
        (20, 50, True, False),
        (20, 170, True, True),
        (1, 180, False, False),
        (1, 200, True, True),
    ],
)
def test_many_unjudged_hits_are_warned_of_unless_each_query_has_few_judgments(
    each: float, unjudged: int, warns: bool, is_first: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    found = with_judgments(each, unjudged)
    board = build_leaderboard([found], PRIMARY, (), FEW)
    share = f"{unjudged / 200:.1%}"
    assert board.holes.startswith(f"{share} of the first 10 hits of bm25 are unjudged") == warns
    assert describe_judging(replace(board, rows=[replace(board.rows[0], run="0123456789")])) == (
        f"{board.holes}; judge the hits: python -m runner judge by=hand run=01234567" if warns else ""
    )
    show_result(found)
    lines = capsys.readouterr().out.splitlines()
    assert (
        any(line.startswith(f"warning: {share} of the first 10 hits are unjudged, so") for line in lines[:3])
        == is_first
    )
    show_leaderboard(board)
    lines = capsys.readouterr().out.splitlines()
    assert (
        any(line.startswith(f"warning: {share} of the first 10 hits are unjudged, so") for line in lines[:3])
        == is_first
    )
