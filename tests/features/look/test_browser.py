"""`look` in a real browser: newer data leave the view as it is, texts come whole, and the desk is a tab."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runner.features.judge.desk.journal import load_journals
from tests.features.look.stores import ServedStore
from tests.pages.explorer.browsing import check_focus, check_view, focus_tab, press_until
from tests.pages.explorer.conftest import axe, browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["axe", "browser"]


@pytest.fixture
def complaints() -> list[str]:
    return []


def open_page(
    browser: Browser, served: ServedStore, path: str, complaints: list[str], width: int = 1400, height: int = 900
) -> Page:
    page = browser.new_page(viewport={"width": width, "height": height})
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(served.access.url)
    page.goto("about:blank")  # otherwise, a path that differs in its fragment would not load again
    page.goto(f"{served.address}{path}")
    page.wait_for_selector("html.live")
    return page


def read_labels(page: Page) -> list[str]:
    return page.locator("#board .windowed button.open").all_inner_texts()


def test_a_finished_combination_appears_and_the_view_stays(
    browser: Browser, served: ServedStore, complaints: list[str]
) -> None:
    runs, sweep = served.read_runs(), served.shown.runs[0].id
    served.set_status(sweep, "RUNNING")
    served.set_status(runs["k1=0.4"], "RUNNING")
    page = open_page(browser, served, f"{served.page}/", complaints)
    assert read_labels(page) == ["k1=2"] or len(read_labels(page)) == 1
    page.locator("#board button.pin").first.click()
    page.keyboard.press("/")
    page.keyboard.type("k1")
    served.set_status(runs["k1=0.4"], "FINISHED")
    page.wait_for_function("document.querySelectorAll('#board .windowed button.open').length === 2")
    assert page.evaluate("document.activeElement.id") == "filter"
    page.keyboard.type(" > 1")
    assert page.get_by_label("Filter combinations").input_value() == "k1 > 1"
    assert page.locator("#board tr.pinned").count() == 1
    assert "k1=2" in page.locator("#board tr.pinned").inner_text()
    assert page.locator("#live-state").inner_text() == "The sweep is running: 2 combinations finished."
    served.set_status(sweep, "FINISHED")
    page.wait_for_function("!document.querySelector('#live-state').textContent")
    page.locator("#board button.open").first.click()
    page.get_by_role("link", name="Queries and hits of this run").click()
    page.wait_for_selector("#missed", state="attached")
    assert not complaints
    page.close()


@pytest.mark.parametrize("width", [1400, 390])
def test_runs_are_chosen_compared_and_read_by_keyboard(
    browser: Browser, axe: str, served: ServedStore, complaints: list[str], width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="dark")
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(served.access.url)
    page.wait_for_selector("html.live")
    focus_tab(page, "Queries")
    page.locator("#query-table .windowed button.open").first.wait_for()
    press_until(page, "Tab", "e.matches('#query-table .windowed button.open')")
    press_until(page, "ArrowDown", "e.textContent === 'ferry island'")
    page.keyboard.press("Enter")
    page.locator("#query-table li", has_text="d0").locator("summary").first.wait_for(state="attached")
    press_until(page, "Tab", "e.textContent === 'Whole text' && e.closest('li').innerText.includes('d0')")
    page.keyboard.press("Enter")
    page.locator("#query-table", has_text="At the end, the island appears.").wait_for()
    check_view(page, axe)
    press_until(page, "Shift+Tab", "e.textContent === 'All runs'")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    check_focus(page)
    check_view(page, axe)
    for _ in range(2):
        press_until(page, "Tab", "e.matches('input[type=checkbox]') && !e.checked")
        page.keyboard.press("Space")
    press_until(page, "Tab", "e.matches('button')")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.wait_for_selector("html.live")
    assert page.evaluate("document.querySelectorAll('[role=tab]').length") >= 5
    assert not complaints
    page.close()


@pytest.mark.parametrize("width", [1400, 390])
def test_whole_texts_and_the_desk_are_on_the_page(
    browser: Browser, axe: str, served: ServedStore, complaints: list[str], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(served.folder)
    run = served.read_runs()["k1=2"]
    page = open_page(browser, served, f"/show/{run}/", complaints, width)
    page.get_by_role("tab", name="Queries", exact=True).click()
    page.locator("#board button.open", has_text="ferry island").click()
    hit = page.locator("#query li", has=page.get_by_text("d0", exact=True)).first
    hit.locator("summary").click()
    hit.get_by_text("At the end, the island appears.").wait_for()
    page.get_by_role("tab", name="Judge").click()
    desk = page.frame_locator("iframe")
    desk.locator("button[data-key='1']").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(axe)
    report = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false, iframes: false})")
    assert not [found for found in report["violations"] if found["impact"] in ("serious", "critical")]
    before = desk.locator(".status span").inner_text()
    desk.locator("#document").press("1")
    page.wait_for_function(
        "old => document.querySelector('iframe').contentDocument.querySelector('.status span')?.innerText !== old",
        arg=before,
    )
    journals = served.folder / "mlruns" / "judgments" / run / "by_hand" / "journals"
    assert load_journals(journals, 3)["anna"].grades
    assert page.evaluate("window.hit") is None
    assert not complaints
    page.close()


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844), (844, 390)])
def test_the_desk_fills_the_window_and_only_its_document_scrolls(
    browser: Browser,
    served: ServedStore,
    complaints: list[str],
    width: int,
    height: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(served.folder)
    page = open_page(browser, served, f"{served.page}/#tab=judge", complaints, width, height)
    page.frame_locator("iframe").locator("button[data-key='1']").wait_for()
    # A button can be visible before the style sheet of the desk is there.
    page.wait_for_function("document.querySelector('iframe').contentDocument.readyState === 'complete'")
    for document in ("document", "document.querySelector('iframe').contentDocument"):
        fits = "(e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight)"
        assert page.evaluate(f"{fits}({document}.documentElement)"), document
    shown = page.frame_locator("iframe").locator("#document").bounding_box()
    assert shown is not None and shown["height"] >= min(150, 0.35 * height), "some lines of the document are visible"
    for button in page.frame_locator("iframe").locator("#keys button:visible").all():
        box = button.bounding_box()
        assert box is not None and box["y"] + box["height"] <= height and box["x"] + box["width"] <= width
    tab = page.get_by_role("tab", name="Judge").bounding_box()
    assert tab is not None and tab["x"] >= 0 and tab["x"] + tab["width"] <= width
    assert not page.locator("h1").is_visible(), "what leads would bias the grades"
    page.get_by_role("tab", name="Leaderboard").click()
    page.locator("h1").wait_for()
    assert not complaints
    page.close()
