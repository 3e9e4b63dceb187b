"""The pages of agents' runs and of an inspection in a browser: by keyboard alone, narrow and wide, in the dark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from runner.features.inspect.report.page import inspection_page
from runner.features.traces.report.page import render_page
from tests.features.inspect.report.test_inspection import FINDINGS, inspection
from tests.features.traces.documents import document, read, search
from tests.features.traces.report.factory import report
from tests.pages.explorer.browsing import check_view, focus_tab, press_until
from tests.pages.explorer.test_sweep_in_browser import PAYLOADS

if TYPE_CHECKING:
    from playwright.sync_api import Page

Show = Callable[..., "Page"]


@pytest.fixture(scope="module")
def of_agents() -> str:
    """Return the page of two configurations on six tasks, whose names, files and arguments are markup."""
    documents = {}
    for place, payload in enumerate(PAYLOADS[:6]):
        for config, files in (("baseline", ["x.py"]), ("mcp", [f"a.py{payload}", "x.py"])):
            calls = [search(*files, tool_name=payload, arguments={"query": payload}), read(files[0])]
            gold = [f"a.py{payload}", "b.py"]
            whose = {"task_name": f"t{place}{payload}", "config_name": config}
            documents[f"{config}/t{place}{payload}"] = document(calls, gold, **whose)
    return render_page(report(documents, timelines=4))


@pytest.mark.parametrize("width", [390, 1400])
def test_a_task_can_be_filtered_opened_and_read_by_keyboard(show: Show, axe: str, of_agents: str, width: int) -> None:
    page = show(of_agents, width=width, color_scheme="dark")
    focus_tab(page, "Tasks")
    page.keyboard.press("/")
    page.keyboard.type("configuration = mcp")
    assert page.locator("#board output").inner_text() == "6 of 12"
    press_until(page, "Tab", "e.matches('#board tbody button')")
    page.keyboard.press("Enter")
    query = page.locator("#query")
    assert page.evaluate("document.activeElement.id") == "query-title"
    assert query.locator("h4").all_inner_texts() == ["baseline", "mcp"], "all runs of a task stand side by side"
    mcp = query.get_by_role("region", name="mcp")
    assert mcp.locator("ol.files li.relevant").count() == 1
    assert mcp.locator("ul.files li").all_inner_texts() == ["b.py gold"]
    press_until(page, "Tab", "e.textContent === 'Tool calls (2)'")
    page.keyboard.press("Enter")
    assert query.locator("details[open] li").count() == 2
    assert query.locator("svg.timeline").count() == 2
    check_view(page, axe)
    assert page.evaluate("window.hit") is None


def test_runs_of_a_task_count_once_in_the_interval_of_a_group(show: Show, of_agents: str) -> None:
    """Each of the 6 tasks has a mean of 0.25: without spread between tasks, the interval has no width."""
    page = show(of_agents, hash="#tab=tasks&group=g2")
    assert page.get_by_label("Group by").locator("option:checked").inner_text() == "suite"
    assert "suite = suite: mean of 12, recall 0.250 [0.250, 0.250]" in page.locator("#board tr.group").inner_text()


@pytest.mark.parametrize("of", ["agents", "inspection"])
def test_the_other_views_fit_a_phone_in_the_dark(show: Show, axe: str, of_agents: str, of: str) -> None:
    page = show(of_agents if of == "agents" else inspection_page(inspection(FINDINGS)), width=390, color_scheme="dark")
    for tab in page.get_by_role("tab").all_inner_texts():
        focus_tab(page, tab)
        plots = page.locator(".panel:not(.off) figure[data-plot]")
        page.wait_for_function(
            "n => document.querySelectorAll('.panel:not(.off) .plot svg.marks').length === n", arg=plots.count()
        )
        check_view(page, axe)


def test_without_a_script_the_tables_can_be_read(show: Show, of_agents: str) -> None:
    page = show(of_agents, java_script_enabled=False)
    for heading in ("By configuration", "Tasks", "Timelines", "By slice", "All figures"):
        assert page.get_by_role("heading", name=heading, exact=True).is_visible()
    assert page.locator("#board table tbody tr").count() == 12
