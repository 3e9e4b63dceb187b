"""The pages of an evaluation and of a comparison in a browser: queries, their hits side by side, and hostile texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import t

from retrievers.base import Corpus
from runner.comparison.compare import TableStatistics, compare_results
from runner.comparison.insights import find_insights
from runner.comparison.report.page import comparison_page
from runner.evaluation.report.page import result_page
from runner.pages.explorer.page import STATIC
from tests.pages.explorer.browsing import check_view
from tests.pages.explorer.test_sweep_in_browser import PAYLOADS, read_labels
from tests.pages.factory import result

if TYPE_CHECKING:
    from playwright.sync_api import Page

PRIMARY = "nDCG@10"
Show = Callable[..., "Page"]

HOSTILE = [f"{PAYLOADS[i % len(PAYLOADS)]} {i}" for i in range(300)]
CORPUS = Corpus(
    [f"d{i}" for i in range(300)],
    [f"Nothing to see here, which is sad. {'Dark. ' * 70}The keeper lit a lamp. {payload}" for payload in HOSTILE],
    HOSTILE,
)
ONE = result(queries=18, no_result=2, text=f"which lamp burns {PAYLOADS[0]}")
OTHER = result(
    "hybrid", retriever="hybrid", seed=2, quality=0.7, queries=18, no_result=2, text=f"which lamp burns {PAYLOADS[0]}"
)


@pytest.fixture(scope="module")
def of_result() -> str:
    """Return the page of one result, with texts."""
    return result_page(ONE, find_insights(ONE), CORPUS)


@pytest.fixture(scope="module")
def of_comparison() -> str:
    """Return the page of a comparison, with texts."""
    return comparison_page(compare_results([ONE, OTHER], TableStatistics(permutations=200)), corpus=CORPUS)


def open_query(page: Page, query: str) -> None:
    page.get_by_role("tab", name="Queries", exact=True).click()
    row = page.locator("#board tr", has=page.locator(f"td:text-is('{query}')"))
    row.locator("button.open").click()


def test_a_query_shows_its_hits_with_texts_grades_and_its_gold(show: Show, of_result: str) -> None:
    assert ONE.hits is not None
    page = show(of_result)
    values = ONE.of(PRIMARY)
    hardest = int(np.nanargmin(values))
    open_query(page, ONE.queries.ids[hardest])
    system = page.locator("#query .beside .system")
    assert system.locator("ol > li").count() == 10
    first = system.locator("ol > li").first
    assert ONE.hits.ids(hardest, 1)[0] in first.inner_text()
    assert f"{PRIMARY} {values[hardest]:.3f}" in system.inner_text()
    assert first.locator("mark", has_text="lamp").count() >= 1, "words of the query are marked"
    assert not first.locator("mark", has_text="which").count(), "question words are not marked"
    gold = page.locator("#query").get_by_text("gold", exact=True)
    graded = page.locator("#query .grade.good")
    assert gold.count() + graded.count() >= 1
    first.locator("summary", has_text="Whole text").click()
    assert "Nothing to see here" in first.locator("details").inner_text()


def test_a_row_opens_its_query_wherever_it_is_clicked(show: Show, of_result: str) -> None:
    page = show(of_result)
    page.get_by_role("tab", name="Queries", exact=True).click()
    row = page.locator("#board tbody tr[aria-rowindex]").nth(2)
    text = row.locator("button.open").inner_text()
    row.locator("td").last.click()
    assert text in page.locator("#query").inner_text()


def test_markdown_is_shown_as_text(show: Show, of_result: str) -> None:
    page, source = show(of_result), (STATIC / "markdown.js").read_text(encoding="utf-8")
    cases = {
        "---\ntitle: A\n---\n# Ferry #\nleaves": "Ferry\nleaves",
        "## Ferry {#ferry}\nA **bold** and *slanted* `word`.": "Ferry\nA bold and slanted word.",
        "See [the page](a_(b).md) and ![a map](map.png), [this][1].": "See the page and a map, this.",
        '{{< note title="x" >}}Mind the gap.{{< /note >}}{% raw %}<!-- no -->': "Mind the gap.",
        "2 * 3 * 4, snake_case, a_b_c and * item": "2 * 3 * 4, snake_case, a_b_c and * item",
        "Run\n```sh\n# **not** bold\n```\n**then**": "Run\n# **not** bold\nthen",
    }
    shown = page.evaluate(f"texts => {{ {source}; return texts.map(showMarkdown); }}", list(cases))
    assert shown == list(cases.values())
    texts = [
        "---\ntitle: A\n",
        "# Ferry\n\nIt leaves.",
        "See [this](a.md).",
        "Run:\n\n```sh\nls\n```\n",
        "# a",
        "x[0](1)",
    ]
    names = ["a"] * len(texts) + ["guide/a.md#2"]
    pairs = list(zip(names, [*texts, "A"], strict=True))
    is_markdown = page.evaluate(f"pairs => {{ {source}; return pairs.map(pair => isMarkdown(...pair)); }}", pairs)
    assert is_markdown == [True] * 4 + [False] * 2 + [True]


def test_the_hits_of_two_systems_stand_side_by_side(show: Show, of_comparison: str) -> None:
    page = show(of_comparison)
    gap = OTHER.of(PRIMARY) - ONE.of(PRIMARY)
    page.get_by_role("tab", name="Queries", exact=True).click()
    first = page.locator("#board tbody tr").first.inner_text()
    assert f"{np.nanmin(gap):+.4f}" in first, "the largest loss comes first"
    open_query(page, ONE.queries.ids[int(np.nanargmin(gap))])
    names = page.locator("#query .system h4").all_inner_texts()
    assert names[:2] == ["bm25", "hybrid"]
    boxes = [box.bounding_box() for box in page.locator("#query .beside .system").all()]
    assert boxes[0] is not None and boxes[1] is not None
    assert boxes[0]["y"] == boxes[1]["y"]


@pytest.mark.parametrize(
    ("kind", "width", "scheme"),
    [("of_result", 390, "light"), ("of_comparison", 1400, "dark")],
)
def test_every_view_fits_runs_no_markup_and_has_no_serious_fault(
    show: Show, axe: str, kind: str, width: int, scheme: str, request: pytest.FixtureRequest
) -> None:
    page = show(request.getfixturevalue(kind), width=width, color_scheme=scheme)
    for tab in page.get_by_role("tab").all_inner_texts():
        page.get_by_role("tab", name=tab, exact=True).click()
        if tab == "Queries":
            page.locator("#board button.open").first.click()
            assert page.locator("#query-title").is_visible()
        check_view(page, axe)
    assert page.evaluate("window.hit") is None
    assert page.locator("main img, main iframe").count() == 0


def test_the_queries_of_a_type_and_of_a_length_have_a_mean_with_an_interval(show: Show, of_result: str) -> None:
    page = show(of_result)
    page.get_by_role("tab", name="Queries", exact=True).click()
    page.get_by_label("Group by").select_option(label="type")
    of_type = np.array(ONE.queries.types) == "precise"
    values = ONE.of(PRIMARY)[of_type]
    values = values[~np.isnan(values)]
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    shown = f"{PRIMARY} {values.mean():.3f} [{values.mean() - half:.3f}, {values.mean() + half:.3f}]"
    assert shown in page.locator("#board tr.group").first.inner_text()
    page.get_by_label("Group by").select_option(label="length")
    assert "words" in page.locator("#board tr.group").first.inner_text()


def test_plots_draw_all_rows_in_full_colour_until_some_are_selected(show: Show, of_result: str) -> None:
    page = show(of_result)
    page.wait_for_selector('figure[data-plot="histogram"] .plot svg path[aria-roledescription="bar"]')
    shades = page.evaluate(
        '[...document.querySelectorAll(\'figure[data-plot="histogram"] path[aria-roledescription="bar"]\')]'
        ".map(bar => bar.getAttribute('opacity'))"
    )
    assert set(shades) == {"0.9"}


def test_a_page_works_inside_another_that_gives_it_no_address(show: Show, of_result: str) -> None:
    """As MLflow shows artifacts."""
    page = show("<!doctype html><html class=live><iframe sandbox=allow-scripts width=900 height=800></iframe></html>")
    page.evaluate("html => { document.querySelector('iframe').srcdoc = html }", of_result)
    frame = page.frame_locator("iframe")
    frame.get_by_role("tab", name="Queries", exact=True).click()
    frame.get_by_label("Filter queries").fill("type = wide")
    wide = sum(kind == "wide" for kind in ONE.queries.types)
    assert frame.locator("#board output").inner_text() == f"{wide} of {len(ONE.queries.ids)}"


def test_a_row_opens_though_the_table_scrolls_while_the_button_is_down(show: Show, of_result: str) -> None:
    page = show(of_result)
    page.get_by_role("tab", name="Queries", exact=True).click()
    page.locator("#board button.open").nth(2).hover()
    page.mouse.down()
    page.evaluate("document.querySelector('#board .scroll').dispatchEvent(new Event('scroll'))")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))")
    page.mouse.up()
    assert page.locator("#query-title").is_visible()


def test_a_filter_and_a_query_are_in_the_address(show: Show, of_result: str) -> None:
    page = show(of_result)
    page.get_by_role("tab", name="Queries", exact=True).click()
    page.get_by_label("Filter queries").fill(f"{PRIMARY} < 0.3 and type = wide")
    values, types = ONE.of(PRIMARY), ONE.queries.types
    assert len(read_labels(page)) == sum(v < 0.3 and t == "wide" for v, t in zip(values, types, strict=True))
    page.locator("#board button.open").first.click()
    again = show(of_result, hash=page.evaluate("location.hash"))
    assert again.locator("#query-title").is_visible()
    assert read_labels(again) == read_labels(page)
