"""The desk in a real browser: judging by keyboard, undo, a server that is killed, markup, width and contrast."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner.features.judge.desk.journal import load_journals
from tests.features.judge.desk.desks import build_pool, open_desk, serve_desk
from tests.features.judge.desk.payloads import PAYLOADS
from tests.pages.explorer.browsing import check_focus, check_view, press_until
from tests.pages.explorer.conftest import axe

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


__all__ = ["axe"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_api.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


def press(page: Page, key: str) -> None:
    """Press a key that sends the form, and wait for the next page."""
    with page.expect_navigation():
        page.keyboard.press(key)


def test_fifteen_payloads_run_nowhere(browser: Browser, tmp_path: Path) -> None:
    pool = build_pool(texts=PAYLOADS, queries=(PAYLOADS[0], PAYLOADS[8]), needs=(PAYLOADS[3], PAYLOADS[5]))
    desk, other = open_desk(tmp_path, pool, overlap=1), open_desk(tmp_path, pool, "ben", overlap=1)
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    with serve_desk(desk, tmp_path) as served:
        page.goto(served.access.url)
        for payload in PAYLOADS:
            pair = desk.view().pair
            assert pair is not None
            other.decide("grade", pair.ids, 0, payload)
            page.keyboard.press("n")
            page.keyboard.insert_text(payload)
            page.keyboard.press("Escape")
            assert page.text_content(".text") == pair.text
            press(page, "3")
            assert desk.journal.assessment.notes[pair.ids] == payload
        for path in ("differences", "export"):
            page.goto(f"{served.address}/{path}")
        assert page.evaluate("window.hacked") is None
        assert page.text_content("h1") == "Export the grades"
        page.goto(f"{served.address}/differences")
        assert PAYLOADS[0] in str(page.text_content("h1")) or PAYLOADS[8] in str(page.text_content("h1"))
        assert page.evaluate("window.hacked") is None
    assert not problems
    other.journal.close()
    page.close()


def test_a_keyboard_is_enough_and_a_server_that_is_killed_loses_nothing(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    with serve_desk(open_desk(tmp_path), tmp_path) as served:
        page.goto(served.access.url)
        for key in "3", "0", "s", "u", "2":
            press(page, key)
        press(page, "z")
        assert page.text_content(".status span").startswith("3 of ")  # type: ignore[union-attr]  # it is on the page
        with page.expect_navigation():
            page.keyboard.down("1")  # holding a key grades one pair
        page.keyboard.up("1")
    journal = tmp_path / "journals" / "anna.jsonl"
    with journal.open("ab") as file:
        file.write(b'{"at": "2026')  # as a process leaves it that is killed while it writes
    kept = load_journals(tmp_path / "journals", 3)["anna"]
    with serve_desk(open_desk(tmp_path), tmp_path) as served:
        page.goto(served.access.url)
        press(page, "2")
    actions = [entry.action for entry in load_journals(tmp_path / "journals", 3)["anna"].order]
    assert actions == ["grade", "grade", "skip", "unsure", *["grade"] * (len(kept.order) - 4), "grade"]
    page.close()


def test_a_tab_that_is_out_of_date_says_that_nothing_was_saved(browser: Browser, tmp_path: Path) -> None:
    desk = open_desk(tmp_path)
    with serve_desk(desk, tmp_path) as served:
        old, new = browser.new_page(), browser.new_page()
        old.goto(served.access.url)
        new.goto(served.access.url)
        press(new, "3")
        now = new.text_content(".text")
        press(old, "1")
        old.get_by_role("status").get_by_text("You had graded that document 3 already").wait_for()
        assert old.text_content(".text") == now, "the pair that is to be judged now"
        press(old, "z")
        press(old, "1")
        assert list(desk.journal.assessment.grades.values()) == [1]
        assert not old.get_by_role("status").inner_text()
    old.keyboard.press("2")
    old.get_by_role("status").get_by_text("the server does not answer").wait_for()
    assert list(load_journals(tmp_path / "journals", 3)["anna"].grades.values()) == [1]
    old.close()
    new.close()


def test_a_restart_needs_its_new_address_and_another_pool_is_reported(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    with serve_desk(open_desk(tmp_path), tmp_path) as served:
        page.goto(served.access.url)
        shown = page.input_value("[name=document_id]")
    port = int(served.address.rpartition(":")[2])
    with serve_desk(open_desk(tmp_path), tmp_path, port) as served:
        page.keyboard.press("2")
        page.get_by_role("status").get_by_text("needs the address with the token").wait_for()
        page.goto(served.access.url)
        assert page.url == f"{served.address}/", "the token stays in no address"
        assert page.evaluate("document.cookie") == ""
        press(page, "2")
        now = page.text_content(".text")
        page.evaluate("document.querySelector('[name=document_id]').value = 'd99'")
        press(page, "2")
        page.get_by_role("status").get_by_text("not in the pool of this desk").wait_for()
        assert page.text_content(".text") == now
    grades = load_journals(tmp_path / "journals", 3)["anna"].grades
    assert {document: grade for (_, document), grade in grades.items()} == {shown: 2}
    page.close()


@pytest.mark.parametrize("width", [1400, 390])
def test_every_page_of_the_desk_is_used_by_keyboard_alone(
    browser: Browser, axe: str, tmp_path: Path, width: int
) -> None:
    desk, other = open_desk(tmp_path, overlap=1, goal=8), open_desk(tmp_path, assessor="ben", overlap=1)
    while (pair := other.view().pair) is not None:
        other.decide("grade", pair.ids, 1, "")
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme="dark")
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    with serve_desk(desk, tmp_path) as served:
        page.goto(served.access.url)
        check_focus(page)
        check_view(page, axe)
        page.goto(served.access.url)
        page.keyboard.press("n")
        page.keyboard.type("2 of them, 0 alike")
        page.keyboard.press("Enter")
        page.get_by_role("status").get_by_text("Note saved.").wait_for()
        check_view(page, axe)
        assert list(desk.journal.assessment.notes.values()) == ["2 of them, 0 alike"]
        assert not desk.journal.assessment.grades, "keys in a note grade nothing"
        page.reload()
        assert page.input_value("#note") == "2 of them, 0 alike"
        press(page, "3")
        press(page, "s")
        press(page, "u")
        while desk.view().pair is not None:
            press(page, "1")
        press_until(page, "Tab", "e.textContent.startsWith('judge ') && e.textContent.endsWith(' more')")
        press_until(page, "Tab", "e.textContent === 'Export'")
        press(page, "Enter")
        assert page.text_content("h1") == "Export the grades"
        check_focus(page)
        check_view(page, axe)
        press_until(page, "Tab", "e.id === 'format'")
        press_until(page, "ArrowDown", "e.value === 'quepid'")
        page.keyboard.press("Tab")
        press(page, "Enter")
        assert "grades are written" in str(page.text_content(".advice"))
        press_until(page, "Tab", "e.textContent.startsWith('Differences')")
        press(page, "Enter")
        while page.query_selector("#keys"):
            press(page, "2")
        assert page.text_content("h1") == "Agreement of the assessors"
        check_view(page, axe)
    assert not problems
    other.journal.close()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_the_keys_are_in_view_and_texts_have_contrast(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    texts = ["A long document about the ferry. " * 400] * 12
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]  # one of its values
    with serve_desk(open_desk(tmp_path, build_pool(texts=texts)), tmp_path) as served:
        page.goto(served.access.url)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.documentElement.scrollHeight") <= 844
        for button in page.query_selector_all("#keys button"):
            box = button.bounding_box()
            assert box is not None and box["y"] + box["height"] <= 844 and box["x"] + box["width"] <= width
        assert page.evaluate(LEAST_CONTRAST) >= 4.5
        top = page.evaluate("document.querySelector('#document').scrollTop")
        page.keyboard.press("PageDown")
        page.wait_for_function("top => document.querySelector('#document').scrollTop > top", arg=top)
    page.close()


LEAST_CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d");
  const rgb = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
                           return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = (color) => color.slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => { for (; element; element = element.parentElement) {
    const color = getComputedStyle(element).backgroundColor; if (rgb(color)[3] === 255) return rgb(color); }
    return [255, 255, 255, 255]; };
  return Math.min(...[...document.querySelectorAll("body *:not(:disabled)")]
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && !e.closest(":disabled"))
    .map((e) => [light(rgb(getComputedStyle(e).color)), light(ground(e))].sort((a, b) => b - a))
    .map(([bright, dim]) => (bright + 0.05) / (dim + 0.05)));
}"""
