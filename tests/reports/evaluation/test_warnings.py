"""Warnings of a result stand wherever its figures do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from runner.reports import console
from runner.reports.evaluation.insights import insights
from runner.reports.evaluation.markdown import result_markdown
from runner.reports.evaluation.page import result_page
from runner.reports.sweep.leaderboard import leaderboard
from runner.reports.sweep.tables import notices
from runner.result import Result, load, save
from tests.reports.factory import result

WARNING = "5 queries have more gold than results"


@pytest.fixture
def warned() -> Result:
    return replace(result(), warnings=[WARNING])


def test_console_and_reports_show_them(warned: Result, capsys: pytest.CaptureFixture[str]) -> None:
    console.show_result(warned)
    assert f"warning: {WARNING}" in capsys.readouterr().out
    assert WARNING in result_markdown(warned, insights(warned))
    assert WARNING in result_page(warned, insights(warned))


def test_a_leaderboard_shows_each_once(warned: Result) -> None:
    board = leaderboard([warned, replace(warned, name="other")], "nDCG@10")
    assert notices(board).count(WARNING) == 1


def test_the_record_keeps_them(warned: Result, tmp_path: Path) -> None:
    save(warned, tmp_path)
    assert load(tmp_path).warnings == [WARNING]
