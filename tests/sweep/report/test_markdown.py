"""A sweep in Markdown: its numbers are those of the leaderboard."""

from __future__ import annotations

from dataclasses import replace

from runner.comparison.leaderboard import FailedCombination, build_leaderboard
from runner.comparison.swept_settings import estimate_shares
from runner.sweep.report.sections import sweep_markdown
from runner.sweep.report.tables import LEAST_SHARE
from tests.pages.factory import mixed, result, sweep
from tests.pages.reading import rows
from tests.sweep.report.test_selection import search

PRIMARY = "nDCG@10"


def test_a_sweep_without_gold_has_no_best() -> None:
    results = [result(name, queries=0) for name in "ab"]
    text = sweep_markdown(build_leaderboard(results, PRIMARY), results)
    assert "No query has gold" in text
    assert "Best" not in text


def test_a_sweep_shows_its_leaderboard_and_its_verdict() -> None:
    results = mixed()
    board = build_leaderboard(results, PRIMARY, [FailedCombination("x", "boom")])
    text = sweep_markdown(board, results)
    shown = rows(text, "Leaderboard")
    assert [row[1:3] for row in shown] == [[row.label, f"{row.mean:.4f}"] for row in board.rows]
    assert "differ from the best (p < 0.05, max-T over all pairs)" in text
    letters = {row[0]: row[3] for row in rows(text, "Significance groups")}
    assert letters == {str(rank): told for rank, told in board.letters.items()}
    assert len(set(letters.values())) > 1
    assert "## Quality against time" in text
    assert "### retriever.k1: range of the mean" in text
    assert "| boom | 1 | x |" in text
    assert rows(text, "Hardest queries")[0][0].startswith("q")


def test_a_sweep_shows_the_importance_of_its_settings_unless_a_search_estimated_it() -> None:
    results = sweep(25)
    board = build_leaderboard(results, PRIMARY)
    shown = rows(sweep_markdown(board, results), "Importance of settings")
    shares = [share for share in estimate_shares(board, results) if share.share >= LEAST_SHARE]
    assert [row[:2] for row in shown] == [[" x ".join(i.settings), f"{i.share:.1%}"] for i in shares]
    searched = replace(board, search=search())
    assert len(rows(sweep_markdown(searched, results), "Importance of settings")) == 2
    assert "Importance of settings" not in sweep_markdown(board, [])


def test_a_sweep_in_which_all_failed_says_so() -> None:
    text = sweep_markdown(
        build_leaderboard([], PRIMARY, [FailedCombination("a", "boom"), FailedCombination("b", "boom")]), []
    )
    assert "All combinations failed" in text
    assert rows(text, "2 failed") == [["boom", "2", "a, b"]]


def test_the_same_input_gives_the_same_text() -> None:
    results = sweep(5)
    assert sweep_markdown(build_leaderboard(results, PRIMARY), results) == sweep_markdown(
        build_leaderboard(sweep(5), PRIMARY), sweep(5)
    )
