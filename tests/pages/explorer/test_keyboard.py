"""Each thing that a reader can do on a page, done by keyboard alone: wide and narrow, in the dark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from retrievers.base import Corpus
from runner.comparison.compare import TableStatistics, compare_results
from runner.comparison.gate import Gate, check_gate
from runner.comparison.insights import find_insights
from runner.comparison.leaderboard import build_leaderboard
from runner.comparison.report.page import comparison_page
from runner.config.repeating import list_overrides
from runner.evaluation.report.page import result_page
from runner.features.traces.report.page import render_page
from runner.pages.explorer.place import PagePlace
from runner.sweep.report.page import sweep_page
from tests.features.traces.report.factory import report, several
from tests.pages.explorer.browsing import check_focus, check_view, choose_option, focus_tab, press_until
from tests.pages.factory import result, sweep

if TYPE_CHECKING:
    from playwright.sync_api import Page

PRIMARY = "nDCG@10"
Show = Callable[..., "Page"]

WIDTHS = pytest.mark.parametrize("width", [1400, 390])
CORPUS = Corpus(
    [f"d{i}" for i in range(300)],
    [f"{'The harbour is quiet. ' * 20}The keeper lit lamp {i}." for i in range(300)],
    [f"Lamp {i}" for i in range(300)],
)
RESULTS = sweep(6, queries=8, no_result=1)
BOARD = build_leaderboard(RESULTS, PRIMARY, runs=[f"{i:032x}" for i in range(6)])
PLACE = PagePlace(None, (), list_overrides, "http://127.0.0.1:5000", "python -m runner ui")


@pytest.fixture(scope="module")
def of_sweep() -> str:
    """Return the page of six combinations, with the hits of the best five."""
    hits = [result(seed=i, queries=8, no_result=1).hits for i in range(6)]
    best = {row.rank: replace(RESULTS[row.position], hits=hits[row.position]) for row in BOARD.rows[:5]}
    return sweep_page(BOARD, RESULTS, PLACE, best, CORPUS)


@pytest.fixture(scope="module")
def of_result() -> str:
    """Return the page of one result, with texts."""
    one = result(queries=9, no_result=1)
    return result_page(one, find_insights(one), CORPUS)


@pytest.fixture(scope="module")
def of_comparison() -> str:
    """Return the page of a comparison of three results with texts, and a gate."""
    results = [result(f"system {i}", seed=i, quality=0.6 - 0.1 * i, queries=9, no_result=1) for i in range(3)]
    comparison = compare_results(results, TableStatistics(permutations=100))
    return comparison_page(comparison, check_gate(Gate(drops={"primary": 0.02}), comparison), corpus=CORPUS)


def list_rows(page: Page, table: str = "#board") -> list[str]:
    return page.locator(f"{table} .windowed button.open").all_inner_texts()


def open_menu(page: Page, name: str) -> None:
    press_until(page, "Tab", f"e.matches('summary') && e.textContent === '{name}'")
    page.keyboard.press("Enter")


def focused(page: Page) -> str:
    text: str = page.evaluate("document.activeElement.textContent")
    return text


@WIDTHS
def test_a_leaderboard_is_filtered_sliced_sorted_pinned_and_exported(show: Show, of_sweep: str, width: int) -> None:
    page = show(of_sweep, width=width, color_scheme="dark")
    check_focus(page)
    page.keyboard.press("/")
    page.keyboard.type("b > 0.2")
    few = [row.label for row in BOARD.rows if float(row.swept["retriever.b"]) > 0.2]
    assert list_rows(page) == few
    choose_option(page, "Queries", "type: precise")
    page.get_by_role("columnheader", name=f"{PRIMARY}, precise").wait_for()
    choose_option(page, "Group by", "retriever.b")
    assert page.locator("#board tr.group").count() == len(few) > 1
    choose_option(page, "Group by", "nothing")
    page.keyboard.press("Shift+Tab")
    choose_option(page, "Queries", "all")
    open_menu(page, "Columns")
    press_until(page, "Tab", "e.matches('.menu input') && !e.checked")
    column = page.evaluate("document.activeElement.labels[0].textContent")
    page.keyboard.press("Space")
    assert page.locator(f"#board th:has-text('{column}')").count() >= 1
    page.keyboard.press("Escape")
    assert (focused(page), page.locator("details.menu[open]").count()) == ("Columns", 0)
    open_menu(page, "Export")
    for kind in ("CSV", "Markdown", "LaTeX"):
        press_until(page, "Tab", f"e.textContent === '{kind}'")
        with page.expect_download() as download:
            page.keyboard.press("Enter")
        assert download.value.suggested_filename.startswith("leaderboard.")
    page.keyboard.press("Escape")
    press_until(page, "Tab", f"e.dataset.column && e.textContent === '{PRIMARY}'")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert list_rows(page) == few[::-1] and focused(page) == PRIMARY
    press_until(page, "Tab", "e.matches('#board button.open')")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("p")
    assert list_rows(page)[0] == few[-2]
    assert page.locator("#board button.open:focus").count() == 1
    assert {"filter=b+%3E+0.2", "sort=mean"} <= set(page.evaluate("location.hash.slice(1)").split("&"))


@WIDTHS
def test_the_details_of_a_row_lead_to_its_command_and_its_queries(
    show: Show, axe: str, of_sweep: str, width: int
) -> None:
    page = show(of_sweep, width=width, color_scheme="dark")
    press_until(page, "Tab", "e.matches('#board button.open')")
    page.keyboard.press("ArrowDown")
    row = focused(page)
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    assert BOARD.rows[1].label in dialog.inner_text()
    check_view(page, axe)
    press_until(page, "Tab", "e.textContent === 'Configuration'")
    page.keyboard.press("Enter")
    assert dialog.locator("details[open] tr").count() > 0
    press_until(page, "Tab", "e.getAttribute('aria-label') === 'Copy the command'")
    page.keyboard.press("Enter")
    page.locator("dialog button", has_text="Copied").or_(page.get_by_text("Selected: press Ctrl-C")).wait_for()
    press_until(page, "Tab", "e.textContent === 'Open in MLflow'")
    page.keyboard.press("Escape")
    assert (dialog.is_visible(), focused(page)) == (False, row)
    page.keyboard.press("Enter")
    press_until(page, "Tab", "e.textContent === 'Compare its queries with the best'")
    page.keyboard.press("Enter")
    assert focused(page) == "Queries"
    page.locator("#query-table .windowed button.open").first.wait_for()
    chosen = page.locator("#query-table select").first.locator("option:checked")
    assert chosen.inner_text() == f"2. {BOARD.rows[1].label}"


@WIDTHS
def test_axes_costs_and_the_front_of_plots_are_chosen(show: Show, axe: str, of_sweep: str, width: int) -> None:
    page = show(of_sweep, width=width, color_scheme="dark")
    focus_tab(page, "Plots")
    page.wait_for_function(
        "[...document.querySelectorAll('#plots figure[data-plot]')].every(f => f.querySelector('.plot svg'))"
    )
    choose_option(page, "cost", "p95 ms")
    page.locator('figure[data-plot="tradeoff"] .plot svg', has_text="p95 ms").wait_for()
    choose_option(page, "x axis", "retriever.b")
    page.locator('figure[data-plot="effect"] .plot svg', has_text="retriever.b").wait_for()
    choose_option(page, "y axis", "retriever.k1")
    press_until(page, "Tab", "e.matches('.vega-embed summary')")
    page.keyboard.press("Enter")
    press_until(page, "Tab", "e.textContent === 'Save as SVG'")
    page.keyboard.press("Escape")
    assert page.locator(".vega-embed details[open]").count() == 0
    check_focus(page)
    check_view(page, axe)
    low = BOARD.rows[2].mean - 1e-6
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "filter", "a filter selects the rows of plots by keyboard"
    page.keyboard.type(f"{PRIMARY} >= {low}")
    focus_tab(page, "Plots")
    points = "#plots figure[data-plot='tradeoff'] path[aria-roledescription='point']"
    page.wait_for_function("points => document.querySelectorAll(points).length === 3", arg=points)


@WIDTHS
def test_queries_of_two_combinations_are_compared_and_read(show: Show, of_sweep: str, width: int) -> None:
    page = show(of_sweep, width=width, color_scheme="dark")
    focus_tab(page, "Queries")
    page.locator("#query-table .windowed button.open").first.wait_for()
    choose_option(page, "A", f"3. {BOARD.rows[2].label}")
    choose_option(page, "B", f"2. {BOARD.rows[1].label}")
    for order in ("most divisive", "largest gains of B", "largest losses of B"):
        page.keyboard.press("Shift+Tab")
        choose_option(page, "Order", order)
    page.keyboard.press("/")
    page.keyboard.type("gap != 0")
    rows = list_rows(page, "#query-table")
    press_until(page, "Tab", "e.matches('#query-table .windowed button.open')")
    page.keyboard.press("Enter")
    page.wait_for_function("document.activeElement.id === 'query-title'")
    assert focused(page) == rows[0]
    systems = page.locator("#query-table .system:not(.missed)")
    assert systems.locator("h4").all_inner_texts() == [f"{row.rank}. {row.label}" for row in BOARD.rows[:5]]
    press_until(page, "Tab", "e.textContent === 'Whole text'")
    page.keyboard.press("Enter")
    assert "The keeper lit lamp" in page.locator("#query-table details[open]").inner_text()
    check_focus(page)


@WIDTHS
def test_a_query_of_an_evaluation_can_be_filtered_opened_and_read(show: Show, of_result: str, width: int) -> None:
    page = show(of_result, width=width, color_scheme="dark")
    page.keyboard.press("/")
    page.keyboard.type("status != pass")
    choose_option(page, "Group by", "type")
    press_until(page, "Tab", f"e.dataset.column && e.textContent === '{PRIMARY}'")
    page.keyboard.press("Enter")
    press_until(page, "Tab", "e.matches('#board button.open')")
    page.keyboard.press("End")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "query-title"
    press_until(page, "Tab", "e.textContent === 'Whole text'")
    page.keyboard.press("Enter")
    assert "The harbour is quiet" in page.locator("#query details[open]").inner_text()
    check_focus(page)
    press_until(page, "Tab", "e.matches('.tile a.define')")
    page.keyboard.press("Enter")
    assert page.get_by_role("tab", name="Definitions").get_attribute("aria-selected") == "true"
    assert page.evaluate("document.activeElement.localName") == "dt"


@WIDTHS
def test_a_comparison_shows_its_gate_its_measures_and_who_moved_a_document(
    show: Show, axe: str, of_comparison: str, width: int
) -> None:
    page = show(of_comparison, width=width, color_scheme="dark")
    check_focus(page)
    assert page.get_by_role("heading", name="Rules").is_visible()
    focus_tab(page, "Queries")
    press_until(page, "Tab", "e.matches('#board button.open')")
    page.keyboard.press("Enter")
    assert page.locator("#query .system h4").all_inner_texts()[:3] == ["system 0", "system 1", "system 2"]
    check_focus(page)
    focus_tab(page, "All measures")
    press_until(page, "Tab", "e.matches('[data-filter=measures]')")
    page.keyboard.type("ndcg")
    assert page.locator("#measures tbody tr:visible").count() == 2
    press_until(page, "Tab", "e.matches('#measures th button')")
    page.keyboard.press("Enter")
    assert page.locator("#measures th[aria-sort]").count() == 1
    check_focus(page)
    check_view(page, axe)


@WIDTHS
def test_timelines_of_agents_are_filtered_and_opened(show: Show, axe: str, width: int) -> None:
    page = show(render_page(report(several(), timelines=8)), width=width, color_scheme="dark")
    focus_tab(page, "Timelines")
    press_until(page, "Tab", "e.matches('[data-filter=timelines]')")
    page.keyboard.type("t1 mcp")
    assert page.locator("#timelines > details:visible").count() == 1
    press_until(page, "Tab", "e.matches('#timelines summary')")
    is_open = "document.activeElement.parentElement.open"
    before = page.evaluate(is_open)
    page.keyboard.press("Enter")
    assert page.evaluate(is_open) is not before
    check_focus(page)
    check_view(page, axe)
