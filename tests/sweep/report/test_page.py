"""The page of a sweep: one file that loads nothing, readable without its script, with plots for whatever there is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from retrievers.base import Corpus
from runner.comparison.criteria import COSTS
from runner.comparison.leaderboard import FailedCombination, Leaderboard, build_leaderboard
from runner.evaluation.result import Result
from runner.pages.markdown import escape
from runner.statistics.settings import Statistics
from runner.sweep.report.page import sweep_page
from runner.sweep.report.recommendation import describe_recommendation
from runner.sweep.report.sections import sweep_markdown
from tests.pages.factory import mixed, result, sweep
from tests.pages.reading import EVIL, Page, read_explorer_data, read_explorer_scores

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
        "Quality against cost",
        "Uncertainty of the means",
        "Effect of a setting",
        "Two settings",
        "Parallel coordinates",
        "Importance of settings",
        "By cutoff",
        "By query type",
        "Query by query",
        "Queries and combinations",
    ]
    data = read_explorer_data(html)
    assert [plot["title"] for plot in data["plots"]] == titles
    assert re.findall(r'<figure data-plot="(.*?)"', html) == [plot["id"] for plot in data["plots"]]
    bold = re.findall(r'<tr class="alike">\s*<td class="n">(\d+)<', html)
    assert bold == [str(row.rank) for row in board.rows if not row.difference.significant]


def test_the_script_has_all_combinations_and_the_page_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runner.sweep.report.page.STATIC_ROWS", 10)
    board, html = swept(sweep(25))
    assert len(Page(html).table("#", "combination")) == 10
    assert "The first 10 of 25 combinations" in html
    columns = {column["id"]: column for column in read_explorer_data(html)["columns"]}
    assert columns["label"]["values"] == [row.label for row in board.rows]
    assert columns["mean"]["values"] == pytest.approx([row.mean for row in board.rows], abs=1e-6)
    assert {c["name"] for c in columns.values() if c["kind"] == "setting"} == {"retriever.k1", "retriever.b"}
    assert {"nDCG@1", "P@10", "AP"} <= {column["name"] for column in columns.values()}, "other measures can be chosen"


def test_the_script_has_the_score_of_each_query_and_system() -> None:
    results = sweep(6)
    board, html = swept(results)
    exact = np.stack([results[row.position].of(PRIMARY) for row in board.rows])
    np.testing.assert_allclose(read_explorer_scores(html), exact, atol=1e-5)


def test_the_confidence_is_that_of_the_leaderboard() -> None:
    results = sweep(3)
    html = sweep_page(build_leaderboard(results, PRIMARY, statistics=Statistics(confidence=0.8)), results)
    assert "80% interval" in html
    assert "80% interval" in str(read_explorer_data(html)["plots"])
    assert "95% interval" not in html


def test_page_and_markdown_recommend_what_the_terminal_does() -> None:
    results = sweep(4)
    board = build_leaderboard(results, PRIMARY)
    advice = describe_recommendation(board)
    assert any(label in advice for label in board.labels)
    html = sweep_page(board, results)
    assert advice in next(text for text in Page(html).texts if text.startswith(advice[:20]))
    assert "leads" not in html.partition('class="verdict"')[2].partition("</p>")[0]
    assert f"**{escape(advice)}**" in sweep_markdown(board, results)


def test_none_leads_where_no_query_has_gold() -> None:
    html = swept([result(name, queries=0) for name in "ab"])[1]
    assert "No query has gold" in html
    assert "leads" not in html


def test_one_setting_has_a_plot_of_its_effect_and_no_map() -> None:
    results = [result(f"k{k}", swept={"retriever.k1": str(k)}, seed=k) for k in range(1, 5)]
    plots = {plot["id"]: plot for plot in read_explorer_data(swept(results)[1])["plots"]}
    assert plots["effect"]["choices"] == {"x": ["s0"]}
    assert not {"heat", "parallel"} & set(plots)


def test_size_and_money_are_costs_to_choose_and_money_only_if_any_was_spent() -> None:
    def with_costs(money: Sequence[float]) -> list[Result]:
        results = [result(f"k{k}", swept={"retriever.k1": str(k)}, seed=k) for k in range(len(money))]
        return [
            replace(r, timings=replace(r.timings, index_bytes=5_000_000 + k, money=money[k]))
            for k, r in enumerate(results)
        ]

    data = read_explorer_data(swept(with_costs([0.0, 0.5, 0.25]))[1])
    titles = {column["id"]: column["title"] for column in data["columns"]}
    (plot,) = (plot for plot in data["plots"] if plot["id"] == "tradeoff")
    chosen = [titles[id] for id in plot["choices"]["cost"]]
    assert chosen == [cost.title for cost in COSTS.values()]
    (column,) = (column for column in data["columns"] if column["title"] == "API cost")
    assert sorted(column["values"]) == [0.0, 0.25, 0.5]
    free = read_explorer_data(swept(with_costs([0.0, 0.0]))[1])
    assert "API cost" not in [column["title"] for column in free["columns"]]


def test_the_front_in_the_table_is_that_of_the_cost_that_the_plot_shows_first() -> None:
    results = [result(n, swept={"retriever.k1": n}, seed=i, mean_ms=None) for i, n in enumerate("12")]
    results = [replace(r, timings=replace(r.timings, index_s=1.0 + i)) for i, r in enumerate(results)]
    html = swept(results)[1]
    data = read_explorer_data(html)
    (plot,) = (plot for plot in data["plots"] if plot["id"] == "tradeoff")
    (first,) = (column for column in data["columns"] if column["id"] == plot["choices"]["cost"][0])
    assert first["title"] == "index s"
    (shown,) = (table for table in Page(html).tables if table[0][3:] == ["index s", "query ms", "p95 ms"])
    assert len(shown) > 1


def test_the_hits_of_the_best_are_those_of_their_rankings() -> None:
    results = [result(f"k{k}", swept={"retriever.k1": str(k)}, seed=k) for k in range(3)]
    board = build_leaderboard(results, PRIMARY)
    best = {row.rank: results[row.position] for row in board.rows[:2]}
    corpus = Corpus([f"d{i}" for i in range(300)], [f"text {i} {'x' * 700}" for i in range(300)])
    data = read_explorer_data(sweep_page(board, results, best=best, corpus=corpus))
    documents = data["documents"]
    for system, (rank, of) in zip(data["systems"], best.items(), strict=True):
        assert of.hits is not None
        assert (system["row"], system["name"].partition(".")[0]) == (rank - 1, str(rank))
        assert [documents["ids"][number] for number in system["hits"][0]] == of.hits.ids(0, 10)
    assert {len(text) for text in documents["texts"]} == {600}
    assert "systems" not in read_explorer_data(sweep_page(board, results))


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
    assert page.scripts == 1
    assert page.tags["img"] == 0
    assert any(EVIL in text for text in page.texts)


def test_colours_are_the_pages_own_so_that_the_dark_has_its_own(of_mixed: str) -> None:
    plots = str([plot["spec"] for plot in read_explorer_data(of_mixed)["plots"]])
    assert {"'$muted'", "'$series-0'"} <= set(re.findall(r"'\$[a-z0-9-]+'", plots))
    assert not re.findall(r"#[0-9a-fA-F]{6}\b", plots)
    assert "prefers-color-scheme: dark" in of_mixed


def test_the_same_input_gives_the_same_bytes(of_mixed: str) -> None:
    assert swept(mixed())[1] == of_mixed


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
