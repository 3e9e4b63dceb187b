"""The page of a monitor in a browser: a click on a window leads to its queries, and its address leads there again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner.__main__ import main
from tests.features.monitor.traces import write_judgments, write_traces
from tests.pages.explorer.browsing import check_view, focus_tab
from tests.pages.explorer.conftest import axe, browser, show

if TYPE_CHECKING:
    from playwright.sync_api import Page

Show = Callable[..., "Page"]

__all__ = ["axe", "browser", "show"]


@pytest.fixture
def html(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the page of four windows, in the last of which query 3 lost its gold."""
    monkeypatch.chdir(tmp_path)
    write_judgments(tmp_path / "golden")
    (tmp_path / "traces").mkdir()
    write_traces(tmp_path / "traces" / "a.jsonl", [1.0] * 4, gone=(3,))
    words = ("traffic.path=traces", "dataset=beir", "dataset.path=golden", "log=false", "output=page")
    assert main(["monitor", *words, "monitor.baseline=2"]) == 0
    return (tmp_path / "page" / "monitor.html").read_text()


def read_rows(page: Page) -> list[list[str]]:
    rows = page.locator("#board .windowed tbody tr").all()
    return [row.locator("th, td").all_inner_texts() for row in rows if row.locator("td").count() > 4]


def test_a_click_on_a_window_leads_to_its_queries(show: Show, html: str, axe: str) -> None:
    page = show(html)
    points = page.locator('figure[data-plot="quality"] .mark-symbol.role-mark path')
    points.nth(3).click()
    assert page.get_by_role("tab", name="Queries").get_attribute("aria-selected") == "true"
    assert page.get_by_label("Filter queries").input_value() == 'window = "2026-01-26"'
    first = read_rows(page)[0]
    assert first[:4] == ["2026-01-26", "Question 3", "0.000", "1.000"]
    assert first[-1] == "d3"
    assert {row[0] for row in read_rows(page)} == {"2026-01-26"}
    check_view(page, axe)
    again = show(html, hash=page.evaluate("location.hash"))
    assert read_rows(again)[0] == first
    page.locator("#board .windowed button.open").first.click()
    assert "d3" in page.locator("dialog").inner_text()


def test_the_queries_of_a_window_are_reached_by_keyboard(show: Show, html: str) -> None:
    page = show(html)
    focus_tab(page, "Queries")
    page.keyboard.press("/")
    page.keyboard.type("window = 2026-01-12")
    assert {row[0] for row in read_rows(page)} == {"2026-01-12"}


def test_the_page_of_a_monitor_is_complete_without_scripts(show: Show, html: str) -> None:
    text = show(html, java_script_enabled=False).locator("main").inner_text()
    assert "Question 3" in text
    assert "All windows" in text
