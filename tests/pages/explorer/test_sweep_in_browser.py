"""The page of a sweep in a browser: by mouse and by keyboard, wide and narrow, light and dark, with hostile data."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from retrievers.base import Corpus
from runner.comparison.leaderboard import FailedCombination, Leaderboard, build_leaderboard
from runner.evaluation.result import Result
from runner.statistics.significance import mean_interval
from runner.sweep.report.page import sweep_page
from runner.sweep.report.sections import iter_sections
from tests.pages.explorer.browsing import check_view, press_until
from tests.pages.factory import lose_gold, mixed, result, sweep
from tests.pages.reading import read_explorer_data
from tests.pages.test_sections import build_full_sweep

if TYPE_CHECKING:
    from playwright.sync_api import Page

PRIMARY = "nDCG@10"
Show = Callable[..., "Page"]

PAYLOADS = [
    "<script>window.hit = 1</script>",
    "<img src=x onerror=window.hit=1>",
    "</script><script>window.hit = 1</script>",
    "<svg onload=window.hit=1>",
    "<svg><script>window.hit=1</script></svg>",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    "<a href='javascript:window.hit=1'>x</a>",
    "\"><img src=x onerror='window.hit=1'>",
    "' autofocus onfocus='window.hit=1",
    "<details open ontoggle=window.hit=1>",
    "{{ constructor.constructor('window.hit=1')() }}",
    "${window.hit = 1}",
    "<!--<script>window.hit=1//-->",
    "<style>@import 'x'</style><body onload=window.hit=1>",
    "datum.x'] || (window.hit = 1) || ['",
]


@pytest.fixture(scope="module")
def of_sweep() -> tuple[Leaderboard, list[Result], str]:
    """Return the leaderboard, the results and the page of 25 combinations."""
    results = sweep(25)
    board = build_leaderboard(results, PRIMARY, [FailedCombination("x", "boom", "Traceback")])
    return board, results, sweep_page(board, results)


@pytest.fixture(scope="module")
def board(of_sweep: tuple[Leaderboard, list[Result], str]) -> Leaderboard:
    return of_sweep[0]


@pytest.fixture(scope="module")
def html(of_sweep: tuple[Leaderboard, list[Result], str]) -> str:
    return of_sweep[2]


FEW = sweep(6, queries=8, no_result=1)


@pytest.fixture(scope="module")
def small() -> str:
    """Return the page of few combinations and queries, since axe-core takes its time for each element."""
    return sweep_page(build_leaderboard(FEW, PRIMARY), FEW)


def read_labels(page: Page, table: str = "#board") -> list[str]:
    return page.locator(f"{table} .windowed button.open").all_inner_texts()


def draw_plots(page: Page) -> None:
    page.get_by_role("tab", name="Plots").click()
    page.wait_for_function(
        "[...document.querySelectorAll('#plots figure[data-plot]')].every(f => f.querySelector('.plot svg'))"
    )


@pytest.mark.parametrize(
    ("text", "keep"),
    [
        ("k1 > 0.9 and b = 0.5", lambda k1, b: k1 > 0.9 and b == 0.5),
        ("retriever.k1 = 0.8..1.6", lambda k1, b: 0.8 <= k1 <= 1.6),
        ("not (k1 < 1 or b >= .5)", lambda k1, b: not (k1 < 1 or b >= 0.5)),
        ("b=0 k1!=0.4", lambda k1, b: b == 0 and k1 != 0.4),
    ],
)
def test_a_filter_keeps_the_combinations_that_it_describes(
    show: Show, board: Leaderboard, html: str, text: str, keep: Callable[[float, float], bool]
) -> None:
    page = show(html)
    page.get_by_label("Filter combinations").fill(text)
    settings = [(float(row.swept["retriever.k1"]), float(row.swept["retriever.b"])) for row in board.rows]
    expected = [row.label for row, setting in zip(board.rows, settings, strict=True) if keep(*setting)]
    assert 0 < len(expected) < 25
    assert read_labels(page) == expected
    assert page.locator("#board output").inner_text() == f"{len(expected)} of 25"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k2 > 1", 'No column is named "k2". Columns: rank, combination'),
        ("k1 > high-ish", '"high-ish" is not a number, but k1 is.'),
        ("k1 >", '"k1 >" needs a value after it.'),
        ("(k1 > 1", "A closing parenthesis is missing."),
    ],
)
def test_an_unreadable_filter_says_why_and_keeps_the_rows(show: Show, html: str, text: str, message: str) -> None:
    page = show(html)
    page.get_by_label("Filter combinations").fill(text)
    assert message in page.get_by_role("alert").inner_text()
    assert len(read_labels(page)) == 25


def test_the_view_is_in_the_address_and_comes_back(show: Show, board: Leaderboard, html: str) -> None:
    page = show(html)
    page.get_by_label("Filter combinations").fill("b = 0.5")
    page.get_by_role("columnheader", name="to best").get_by_role("button").click()
    page.get_by_label("Group by").select_option(label="retriever.k1")
    page.get_by_role("button", name=f"Pin {board.rows[3].label}").click() if board.rows[3].label in read_labels(
        page
    ) else page.locator("#board button.pin").first.click()
    view = page.locator("#board tbody").inner_text()
    again = show(html, hash=page.evaluate("location.hash"))
    assert again.get_by_label("Filter combinations").input_value() == "b = 0.5"
    assert again.locator("#board tbody").inner_text() == view
    assert again.locator("#board tr.group").count() >= 5


def test_everything_on_the_leaderboard_can_be_done_by_keyboard(show: Show, board: Leaderboard, html: str) -> None:
    page = show(html)
    page.keyboard.press("/")
    page.keyboard.type("b = 0.75")
    page.get_by_role("columnheader", name=PRIMARY).get_by_role("button").focus()
    page.keyboard.press("Enter")
    ascending = [row.label for row in board.rows if row.swept["retriever.b"] == "0.75"][::-1]
    page.keyboard.press("Enter")
    assert read_labels(page) in (ascending, ascending[::-1])
    page.locator("#board button.open").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("p")
    second = page.locator("#board button.open:focus")
    assert second.count() == 1
    assert page.locator("#board tr.pinned").count() == 1
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()
    page.get_by_role("tab", name="Leaderboard").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="Plots").get_attribute("aria-selected") == "true"


def test_the_export_is_what_the_table_shows(show: Show, board: Leaderboard, html: str) -> None:
    page = show(html)
    page.get_by_label("Filter combinations").fill("b = 0.5")
    page.locator("summary", has_text="Export").click()
    texts = {}
    for title in ("CSV", "Markdown", "LaTeX"):
        with page.expect_download() as download:
            page.get_by_role("button", name=title).click()
        texts[title] = download.value.path().read_text(encoding="utf-8")
    rows = [row for row in board.rows if row.swept["retriever.b"] == "0.5"]
    exported = list(csv.DictReader(texts["CSV"].splitlines()))
    assert [float(row[PRIMARY]) for row in exported] == pytest.approx([row.mean for row in rows], abs=1e-6)
    assert texts["Markdown"].count("\n") == len(rows) + 2
    assert all(f"{row.mean:.4f}" in texts["LaTeX"] for row in rows)


def test_queries_of_two_systems_are_compared_as_python_compares_them(
    show: Show, of_sweep: tuple[Leaderboard, list[Result], str]
) -> None:
    board, results, html = of_sweep
    page = show(html)
    page.get_by_role("tab", name="Queries", exact=True).click()
    page.locator("#query-table .windowed button.open").first.wait_for()
    assert board.rival is not None
    gap = results[board.rows[0].position].of(PRIMARY) - results[board.rival.position].of(PRIMARY)
    note = page.locator("#query-table .about").first.inner_text()
    assert f"better than A on {np.sum(gap > 1e-4)}, equal on {np.sum(abs(gap) <= 1e-4)}" in note
    page.get_by_role("combobox", name="Order").select_option(label="largest gains of B")
    best = int(np.nanargmax(gap))
    assert read_labels(page, "#query-table")[0] == results[0].queries.texts[best]
    page.get_by_role("combobox", name="Order").select_option(label="hardest")
    hardest = int(np.nanargmin(np.mean([r.of(PRIMARY) for r in results], axis=0)))
    page.locator("#query-table button.open").first.click()
    assert results[0].queries.ids[hardest] in page.locator("#query-table .query").inner_text()


@pytest.mark.parametrize("width", [390, 1400])
def test_the_hits_of_the_best_and_of_pinned_combinations_are_read_by_keyboard(show: Show, axe: str, width: int) -> None:
    results = [replace(r, hits=result(seed=i, queries=8, no_result=1).hits) for i, r in enumerate(FEW)]
    board = build_leaderboard(FEW, PRIMARY)
    corpus = Corpus([f"d{i}" for i in range(300)], [f"The keeper lit lamp {i}. {PAYLOADS[i % 15]}" for i in range(300)])
    best = {row.rank: results[row.position] for row in board.rows[:5]}
    page = show(sweep_page(board, FEW, best=best, corpus=corpus), width=width, color_scheme="dark", hash="#tab=queries")
    press_until(page, "Tab", "e.matches('#query-table tbody button')")
    page.keyboard.press("Enter")
    systems = page.locator("#query-table .beside .system")
    assert systems.locator("h4").all_inner_texts() == [f"{row.rank}. {row.label}" for row in board.rows[:5]]
    assert systems.first.locator("ol > li").count() == 10
    assert "The keeper lit lamp" in systems.first.inner_text()
    check_view(page, axe)
    assert page.evaluate("window.hit") is None
    page = show(
        sweep_page(board, FEW, best=best, corpus=corpus),
        hash=f"#{page.evaluate('location.hash.slice(1)')}&pins=2,6&b=2",
    )
    shown = page.locator("#query-table .query")
    assert shown.locator(".system h4").first.inner_text().startswith("2. ")
    assert f"not those of 6. {board.rows[5].label}" in shown.inner_text()


def test_a_slice_is_the_mean_over_the_queries_of_a_type_with_its_interval(
    show: Show, of_sweep: tuple[Leaderboard, list[Result], str]
) -> None:
    _, results, html = of_sweep
    page = show(html)
    page.get_by_role("combobox", name="Queries").select_option(label="type: semantic")
    page.get_by_role("columnheader", name=f"{PRIMARY}, semantic").wait_for()
    best = max(results, key=lambda r: r.by_type["semantic"][PRIMARY])
    values = best.of(PRIMARY)[np.array(best.queries.types) == "semantic"]
    low, high = mean_interval(values[~np.isnan(values)])
    first = page.locator("#board tbody tr").first.inner_text()
    assert f"{best.by_type['semantic'][PRIMARY]:.4f}" in first
    assert f"[{low:.3f}, {high:.3f}]" in first


def test_a_brush_selects_rows_everywhere(show: Show, html: str) -> None:
    page = show(html)
    draw_plots(page)
    page.locator('figure[data-plot="tradeoff"]').scroll_into_view_if_needed()
    box = page.locator('figure[data-plot="tradeoff"] .plot svg.marks').bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 200, steps=4)
    page.mouse.up()
    page.wait_for_function("document.querySelector('#board output').textContent.includes('brushed')")
    page.get_by_role("tab", name="Leaderboard").click()
    assert 0 < len(read_labels(page)) < 25
    page.get_by_role("button", name="Clear brush").click()
    assert len(read_labels(page)) == 25


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_every_view_fits_and_has_no_serious_fault(show: Show, axe: str, small: str, width: int, scheme: str) -> None:
    page = show(small, width=width, color_scheme=scheme)
    for tab in page.get_by_role("tab").all_inner_texts():
        page.get_by_role("tab", name=tab, exact=True).click()
        if tab == "Plots":
            draw_plots(page)
        check_view(page, axe)


def test_the_tables_can_be_read_without_a_script(show: Show, board: Leaderboard, html: str) -> None:
    page = show(html, java_script_enabled=False)
    text = page.locator("main").inner_text()
    for shown in (board.rows[0].label, "Significance groups", "Hardest queries", "Effects of settings", "boom"):
        assert shown in text
    assert page.locator("#static-board tbody tr").count() == 25


def test_no_markup_in_data_is_ever_run(show: Show) -> None:
    results = [
        result(
            f"{payload}{i}", retriever=payload, swept={f"{payload}.k": payload, "k": i}, types=(payload, "b"),
            text=payload, seed=i, queries=9, no_result=1,
        )
        for i, payload in enumerate(PAYLOADS)
    ]  # fmt: skip
    page = show(sweep_page(build_leaderboard(results, PRIMARY), results))
    for tab in page.get_by_role("tab").all():
        tab.click()
    page.locator("#query-table, #board").first.wait_for(state="attached")
    page.get_by_role("tab", name="Leaderboard").click()
    page.locator("#board button.open").first.click()
    assert page.get_by_role("dialog").is_visible()
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    assert page.locator("main img, main iframe, dialog img").count() == 0


def test_retrievers_without_a_setting_have_none_on_the_page(show: Show) -> None:
    results = mixed()
    page = show(sweep_page(build_leaderboard(results, PRIMARY), results))
    draw_plots(page)
    page.get_by_role("tab", name="Leaderboard").click()
    page.get_by_label("Filter combinations").fill("encoder = minilm")
    assert read_labels(page) == ["retriever=dense, encoder=minilm"] or len(read_labels(page)) == 1


@pytest.mark.parametrize("width", [1400, 390])
def test_the_losses_by_step_are_drawn_for_the_best_and_the_pinned_combinations(show: Show, width: int) -> None:
    results = [lose_gold(one, i) for i, one in enumerate(FEW)]
    board = build_leaderboard(results, PRIMARY)
    page = show(sweep_page(board, results), width=width, hash="#tab=plots&pins=6")
    drawn = page.locator('figure[data-plot="losses"] path[aria-roledescription="bar"]')
    drawn.first.wait_for(state="attached")
    expected = []
    for row in [*board.finalists, board.rows[5]]:
        losses = results[row.position].losses
        assert losses is not None
        expected += [f"group: {step}; name: {row.rank}. {row.label}; value: {n}" for step, n in losses.counts.items()]
    labels = sorted(label.get_attribute("aria-label") or "" for label in drawn.all())
    assert len(labels) == len(expected)
    assert all(any(bar in label for label in labels) for bar in expected)


def test_the_script_hides_no_section_but_those_that_it_replaces(show: Show) -> None:
    board, results = build_full_sweep()
    page = show(sweep_page(board, results))
    seen = set()
    for tab in page.get_by_role("tab").all():
        tab.click()
        page.wait_for_timeout(100)
        seen |= set(page.locator("section:visible > h2, figure:visible > figcaption > strong").all_inner_texts())
    plots = {plot["id"]: plot["title"] for plot in read_explorer_data(sweep_page(board, results))["plots"]}
    for section in iter_sections(board, results):
        assert (plots.get(section.figure, section.title) in seen) != section.fallback, section.title
