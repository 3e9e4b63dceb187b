"""Warnings of a result stand wherever its figures do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from runner.comparison.insights import find_insights
from runner.comparison.leaderboard import build_leaderboard
from runner.evaluation.records import load_record, save_record
from runner.evaluation.report.insights import thresholds_table
from runner.evaluation.report.page import result_page
from runner.evaluation.report.printing import show_result
from runner.evaluation.report.sections import result_markdown
from runner.evaluation.report.tables import abstention_table
from runner.evaluation.result import Result
from runner.sweep.report.tables import leaderboard_table, notices
from runner.tracking.record import metrics_of
from tests.pages.factory import TYPES, result

WARNING = "5 queries have more gold than results"


@pytest.fixture
def warned() -> Result:
    return replace(result(), warnings=[WARNING])


def test_console_and_reports_show_them(warned: Result, capsys: pytest.CaptureFixture[str]) -> None:
    show_result(warned)
    assert f"warning: {WARNING}" in capsys.readouterr().out
    assert WARNING in result_markdown(warned, find_insights(warned))
    assert WARNING in result_page(warned, find_insights(warned))


def test_a_leaderboard_shows_each_once(warned: Result) -> None:
    board = build_leaderboard([warned, replace(warned, name="other")], "nDCG@10")
    assert notices(board).count(WARNING) == 1


def test_the_record_keeps_them(warned: Result, tmp_path: Path) -> None:
    save_record(warned, tmp_path)
    assert load_record(tmp_path).warnings == [WARNING]


def test_a_true_negative_rate_stands_with_its_cost(capsys: pytest.CaptureFixture[str]) -> None:
    found = result()
    titles = ("TN rate", "recall lost", "answerable rejected")
    show_result(found)
    shown_there = capsys.readouterr().out
    assert all(title in shown_there for title in titles)
    for table in (
        abstention_table(found),
        thresholds_table(find_insights(found)),
        leaderboard_table(build_leaderboard([found], "R@10")),
    ):
        shown = [column.title.partition("@")[0] for column in table.columns]
        assert set(titles) <= {*shown}
    logged = {name for name, *_ in metrics_of(found)}
    for place in ("", "threshold_0.5/"):
        assert {f"{place}tn_rate", f"{place}answerable_rejected"} <= logged
    rates = {name.removesuffix("tn_rate") for name in logged if name.endswith("/tn_rate")}
    assert {f"by_type/{kind}/" for kind in TYPES} < rates
    assert {f"{place}answerable_rejected" for place in rates} <= logged
    assert "threshold_0.5/recall_lost" in logged  # without a threshold, no recall is lost
