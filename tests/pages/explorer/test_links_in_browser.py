"""From a page to what stands behind it: the run in MLflow, its settings and command, and definitions of figures."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from runner.comparison.compare import TableStatistics, compare_results
from runner.comparison.insights import find_insights
from runner.comparison.leaderboard import build_leaderboard
from runner.comparison.report.page import comparison_page
from runner.config.repeating import list_overrides
from runner.evaluation.report.page import result_page
from runner.evaluation.result import Result
from runner.pages.explorer.place import PagePlace
from runner.sweep.report.page import sweep_page
from tests.pages.factory import result
from tests.pages.reading import EVIL

if TYPE_CHECKING:
    from playwright.sync_api import Page

Show = Callable[..., "Page"]

RUNS = ("a" * 32, "b" * 32)
PLACE = PagePlace(None, RUNS, list_overrides, "http://127.0.0.1:5000", "python -m runner ui tracking.experiment=x")


@pytest.fixture(scope="module")
def results() -> list[Result]:
    """Return two results; a setting of the second is a text that a shell would expand."""
    config = {"retriever": {"_target_": "x.Y", "k1": 1.2, "note": EVIL}, "choices": {"retriever": "bm25"}}
    pair = [result(f"k{i}", seed=i, swept={"k": i}, queries=8, no_result=1) for i in range(2)]
    return [pair[0], replace(pair[1], config=config)]


def read_command(page: Page, place: str) -> list[str]:
    command = page.locator(f"{place} .copied pre").first.inner_text()
    return shlex.split(command)


def test_a_row_leads_to_its_run_and_to_the_command_that_repeats_it(show: Show, results: list[Result]) -> None:
    board = build_leaderboard(results, "nDCG@10", runs=RUNS)
    page = show(sweep_page(board, results, PLACE))
    for row, opened in zip(board.rows, page.locator("#board button.open").all(), strict=True):
        opened.click()
        words = list(list_overrides(results[row.position].config).values())
        assert read_command(page, "dialog") == ["python", "-m", "runner", *words]
        link = page.get_by_role("link", name="Open in MLflow")
        assert link.get_attribute("href") == f"http://127.0.0.1:5000/#/runs/{RUNS[row.position]}"
        assert "python -m runner ui tracking.experiment=x" in page.locator("dialog").inner_text()
        page.locator("dialog summary", has_text="Configuration").click()
        assert page.locator("dialog table tr").count() == len(words)
        page.keyboard.press("Escape")
    page.locator("#board button.open").first.click()
    page.get_by_role("button", name="Copy the command").click()
    page.get_by_role("button", name="Copy the command").get_by_text("Copied", exact=True).or_(
        page.get_by_text("Selected: press Ctrl-C")
    ).wait_for()


def test_figures_lead_to_definitions_that_are_in_the_page(show: Show, results: list[Result]) -> None:
    html = result_page(results[1], find_insights(results[1]), None, replace(PLACE, runs=RUNS[1:]))
    page = show(html)
    page.locator(".tile a.define", has_text="nDCG@10").focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("tab", name="Runs and definitions").get_attribute("aria-selected") == "true"
    assert page.evaluate("document.activeElement.textContent") == "nDCG"
    assert "sum of grade / log2(rank + 1)" in page.locator("#define-nDCG").inner_text()
    assert read_command(page, "#runs")[3:] == list(list_overrides(results[1].config).values())
    assert RUNS[1] in page.locator("#runs").inner_text()
    plain = show(html, java_script_enabled=False)
    assert "sum of grade / log2(rank + 1)" in plain.locator("main").inner_text()


def test_each_compared_result_has_its_run(show: Show, results: list[Result]) -> None:
    page = show(comparison_page(compare_results(results, TableStatistics(permutations=100)), place=PLACE))
    page.get_by_role("tab", name="Runs and definitions").click()
    text = page.locator("#runs").inner_text()
    assert all(run in text for run in RUNS)
    assert page.locator("#runs .copied").count() == 2
