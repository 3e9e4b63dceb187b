"""The page of a sweep: one file, nothing from elsewhere, data stays data, and plots for whatever there is."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from runner.comparison.leaderboard import FailedCombination, Leaderboard, build_leaderboard
from runner.metrics.statistics import Statistics
from runner.reports.sweep.page import sweep_page
from runner.result import Result
from tests.reports.factory import mixed, result, sweep
from tests.reports.reading import EVIL, Page

PRIMARY = "nDCG@10"


def swept(results: list[Result], failures: tuple[FailedCombination, ...] = ()) -> tuple[Leaderboard, str]:
    board = build_leaderboard(results, PRIMARY, failures)
    return board, sweep_page(board, results)


@pytest.fixture(scope="module")
def of_mixed() -> str:
    """Return the page of a sweep over three retrievers."""
    return swept(mixed())[1]


def test_a_sweep_shows_its_leaderboard_and_plots() -> None:
    board, html = swept(sweep(25))
    page = Page(html)
    shown = page.table("#", "combination")
    assert [row[:3] for row in shown] == [[str(r.rank), r.label, f"{r.mean:.4f}"] for r in board.rows]
    assert [row[3] for row in page.table("#", "combination", PRIMARY, "letters")] == list(board.letters.values())
    titles = re.findall(r"<figcaption><strong>(.*?)</strong>", html)
    assert titles == [
        "Uncertainty of the means",
        "Quality against time",
        "The swept settings",
        "Query by query",
        "By cutoff",
        "By query type",
    ]
    assert page.tags["svg"] == len(titles)
    bold = re.findall(r'<tr class="alike">\s*<td class="n" data-v="(\d+)"', html)
    assert bold == [str(row.rank) for row in board.rows if not row.differs]


def test_the_confidence_is_that_of_the_leaderboard() -> None:
    results = sweep(3)
    html = sweep_page(build_leaderboard(results, PRIMARY, statistics=Statistics(confidence=0.8)), results)
    assert html.count("80% interval") == 2  # the table's and the plot's
    assert "95% interval" not in html


def test_none_leads_where_no_query_has_gold() -> None:
    html = swept([result(name, queries=0) for name in "ab"])[1]
    assert "No query has gold" in html
    assert "leads" not in html


def test_one_numeric_setting_is_drawn_as_a_line() -> None:
    results = [result(f"k{k}", swept={"retriever.k1": str(k)}, seed=k) for k in range(1, 5)]
    assert "<strong>The swept setting</strong>" in swept(results)[1]


def test_the_page_loads_nothing(of_mixed: str) -> None:
    assert Page(of_mixed).loaded == []


def test_ids_are_unique_and_references_lead_somewhere(of_mixed: str) -> None:
    page = Page(of_mixed)
    assert max(Counter(page.ids).values()) == 1
    inside = {link[1:] for link in page.links if link.startswith("#")}
    assert inside | set(re.findall(r"url\(#([^)]*)\)", of_mixed)) <= set(page.ids)


def test_data_is_never_markup() -> None:
    results = [
        result(f"{EVIL}{i}", retriever=EVIL, swept={f"{EVIL}.k": f"{EVIL}{i}"}, types=(EVIL, "b"), text=EVIL, seed=i)
        for i in range(3)
    ]
    page = Page(swept(results, (FailedCombination(EVIL, EVIL, EVIL),))[1])
    assert page.tags["script"] == 1
    assert page.tags["img"] == 0
    assert any(EVIL in text for text in page.texts)


def test_colours_are_the_pages_own_so_that_the_dark_has_its_own(of_mixed: str) -> None:
    plots = "".join(re.findall(r"<svg.*?</svg>", of_mixed, re.DOTALL))
    assert "var(--series-0)" in plots
    assert "currentColor" in plots
    assert not re.findall(r"#[0-9a-f]{6}\b", plots)
    assert "font-family" not in plots
    assert "prefers-color-scheme: dark" in of_mixed


def test_the_same_input_gives_the_same_bytes(of_mixed: str) -> None:
    assert swept(mixed())[1] == of_mixed


def test_a_page_says_nothing_of_when_or_by_which_version_it_was_drawn(of_mixed: str) -> None:
    assert "Matplotlib" not in of_mixed
    assert "dc:date" not in of_mixed


@pytest.mark.parametrize(
    "results",
    [
        [],
        [result()],
        [result(queries=2, no_result=0, errors={0: "x", 1: "x"})],
        [result("a"), result("b", queries=30, errors=dict.fromkeys(range(30), "down"))],
        [result(n, queries=2, no_result=0, errors={0: "x", 1: "x"}) for n in "ab"],
        [result(str(n), errors=dict.fromkeys(range(15 * n, 15 * n + 15), "x")) for n in (0, 1)],
        [result(n, mean_ms=None, types=(), no_result=0) for n in "ab"],
        [result(n, queries=1, no_result=0) for n in "ab"],
        [result(n, types=("类型", "タイプ"), swept={"名": n}) for n in "ab"],
        [result(str(i), retriever=f"r{i}", swept={"retriever": f"r{i}"}, seed=i) for i in range(12)],
    ],
    ids=[
        "none", "one", "one without a mean", "two, one without a mean", "two without a mean", "no query in common",
        "no types, no times", "one query", "other scripts", "many retrievers",
    ],
)  # fmt: skip
def test_whatever_there_is_makes_a_page(results: list[Result]) -> None:
    page = Page(swept(results, (FailedCombination("x", "boom", "Traceback"),))[1])
    assert "boom (1)" in page.texts


def test_the_primary_measure_needs_no_cutoff() -> None:
    results = [result(n, primary="RR", seed=i) for i, n in enumerate("abc")]
    assert "R of the best few" in sweep_page(build_leaderboard(results, "RR"), results)
