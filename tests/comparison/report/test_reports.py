"""A comparison as tables, Markdown, JSON and a page: the same figures everywhere, and data is never markup."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

from runner.comparison.compare import Comparison, TableStatistics, compare_results
from runner.comparison.gate import Check, Gate, check_gate
from runner.comparison.report import gate_rules, tables
from runner.comparison.report.json import comparison_json
from runner.comparison.report.page import comparison_page
from runner.comparison.report.sections import comparison_markdown
from runner.evaluation.result import Result
from runner.pages import console
from tests.pages.factory import result
from tests.pages.reading import EVIL, Page, read_explorer_data

QUICK = TableStatistics(permutations=200)
GATE = Gate(floors={"mrr": 0.2, "tn_rate": 0.9}, drops={"primary": 0.01}, max_errors=0)


def of(*results: Result) -> tuple[Comparison, list[Check]]:
    comparison = compare_results(results, QUICK, sources=[f"run {result.name}" for result in results])
    return comparison, check_gate(GATE, comparison)


@pytest.fixture(scope="module")
def two() -> tuple[Comparison, list[Check]]:
    return of(result("a", seed=1), result("b", seed=2, quality=0.8))


@pytest.fixture(scope="module")
def three() -> tuple[Comparison, list[Check]]:
    return of(*(result(name, retriever=name, seed=i, quality=0.5 + i / 10) for i, name in enumerate("abc")))


def test_the_verdict_says_how_much_how_surely_for_whom_and_at_what_price(two: tuple[Comparison, list[Check]]) -> None:
    comparison, _ = two
    (verdict,) = tables.verdicts(comparison)
    versus = comparison.table["nDCG@10"][1]
    own = versus.difference
    assert verdict.startswith(f"b is better than a in nDCG@10: {own.mean:+.4f} (+{versus.relative:.1%}; 95%")
    assert f"better on {own.wins}, equal on {own.ties}, worse on {own.losses} of 30 queries" in verdict
    assert verdict.endswith("1.50 ms per query against 1.50 ms (medians).")


def test_the_highest_mean_is_named_without_calling_it_a_winner(three: tuple[Comparison, list[Check]]) -> None:
    comparison, _ = three
    table = tables.measures_table(comparison, ["nDCG@10"])
    means = table.rows[0][1:4]
    assert [column.title for column in table.columns] == ["measure", "a", "b", "c", "highest"]
    assert table.rows[0][4] == "abc"[means.index(max(means))]


def test_a_difference_that_may_be_luck_is_said_to_be_so() -> None:
    comparison, _ = of(result("a", seed=1), result("b", seed=3))
    (verdict,) = tables.verdicts(comparison)
    assert re.match(r"b is not significantly (better|worse) than a in nDCG@10: [+-]0", verdict)
    assert re.search(r"; about [\d,]+ queries would be needed to detect a difference of this size;", verdict)


def test_differences_on_three_queries_are_counted_in_place_of_an_interval() -> None:
    a = result("a")
    scores = a.scores.copy()
    place = list(a.measures).index(a.primary)
    some = np.flatnonzero(~np.isnan(scores[place]))[:3]
    scores[place, some] += [0.25, 0.25, -0.125]
    comparison, _ = of(a, replace(a, name="b", scores=scores))
    n = int(np.count_nonzero(~np.isnan(scores[place])))
    assert f"no interval: 3 of {n} queries differ), p" in tables.verdicts(comparison)[0]
    assert tables.primary_table(comparison).texts()[0][3] == f"3 of {n} differ"
    assert comparison_markdown(comparison, []).count(f"3 of {n} differ") >= 1


def test_a_difference_of_nothing_in_the_mean_is_neither_better_nor_worse() -> None:
    a = result("a")
    scores = a.scores.copy()
    scores[:, :2] = scores[:, 1::-1]
    comparison, _ = of(a, replace(result("b"), scores=scores))
    (verdict,) = tables.verdicts(comparison)
    assert verdict.startswith("b equals a in mean nDCG@10: better on 1, equal on 28, worse on 1 of 30")


def test_identical_results_are_distinguished_from_equally_good_ones() -> None:
    a, *_ = results = [result("a")] * 2
    assert tables.verdicts(compare_results(results, QUICK, sources=["run 1", "baseline main"])) == [
        "a (2) and a are the same result (run 1 and baseline main); choose another candidate."
    ]
    assert "the same result (run a);" in tables.verdicts(of(*results)[0])[0]
    again = replace(a, timings=replace(a.timings, wall_s=2.0))
    (verdict,) = tables.verdicts(of(a, again)[0])
    assert verdict.startswith("a (2) equals a in nDCG@10 on every query;")


def test_one_slow_query_is_not_what_a_query_is_said_to_take() -> None:
    fast = result("a")
    slow_once = replace(fast, timings=replace(fast.timings, each_ms=[220.0, 0.09, None, 0.09]))
    (verdict,) = tables.verdicts(of(fast, slow_once)[0])
    assert verdict.endswith("0.09 ms per query against 1.50 ms (medians).")


def test_the_number_of_queries_needed_is_omitted_if_unknown() -> None:
    errors = dict.fromkeys(range(1, 30), "down")
    comparison, _ = of(result("a", seed=1), result("b", seed=2, errors=errors))
    (verdict,) = tables.verdicts(comparison)
    assert "not significantly" in verdict
    assert "would be needed" not in verdict


def test_undecided_rules_are_counted_in_the_verdict() -> None:
    drop = Check("b", "drop", "RR", "rare", 1, 0, 0.05, p=0.25, verdict="undecided")
    floor = Check("b", "floor", "RR", "", 1, 0, 0.05, verdict="fail")
    assert gate_rules.gate_verdict([drop]) == "gate undecided: 1 of 1 rules undecided, no rule violated"
    assert gate_rules.gate_verdict([drop, floor]) == "gate failed: 1 of 2 rules violated, 1 undecided"
    assert gate_rules.list_reasons([drop, floor]) == [floor, drop]
    for more, expected in (
        (math.nan, "it is unknown how many more queries would decide it"),
        (math.inf, "no number of such queries would decide it"),
        (1234.5, "about 1,235 more queries would decide it, 412 of them on which the systems differ"),
    ):
        described = gate_rules.describe_check(replace(drop, more=more, differing=more / 3, queries=30))
        assert f"not significant (p = 0.250 with 30 queries); {expected}" in described


def test_errors_are_counted_and_measures_are_measured() -> None:
    errors = Check("b", "errors", "errors", "", 0, 3, 1, verdict="fail")
    drop = Check("b", "drop", "RR", "", 1.0, 0.0, 0.05, p=0.25, verdict="undecided")
    shown = gate_rules.gate_table([drop, errors]).texts()
    assert [row[5:8] for row in shown] == [["0", "3", "1"], ["1.0000", "0.0000", "0.05"]]
    assert [row[0] for row in shown] == ["fail", "undecided"]


def test_what_has_a_column_for_each_result_has_the_full_width_of_the_page(two: tuple[Comparison, list[Check]]) -> None:
    """As have differences and rules: a label may be long."""
    html = comparison_page(*two)
    columns, end = html.index('<div class="grid">'), html.index("</div>\n<section>\n<h2>Queries without gold</h2>")
    assert html.index("<h2>Differences</h2>") < html.index("<h2>Measures</h2>") < columns
    assert columns < html.index("<h2>Time</h2>") < end
    assert end < html.index("<h2>By query type</h2>") < html.index("<h2>Agreement</h2>") < html.index("<h2>Rules</h2>")


def test_a_plot_names_the_baseline_as_far_as_there_is_room() -> None:
    html = comparison_page(*of(*(result(name, retriever=name, seed=i) for i, name in enumerate(("a" * 80, "b")))))
    (plot,) = (plot for plot in read_explorer_data(html)["plots"] if plot["id"] == "differences")
    assert f"'difference to {'a' * 39}\N{HORIZONTAL ELLIPSIS}'" in str(plot["spec"])


def test_markdown_has_the_verdict_the_gate_and_every_measure(two: tuple[Comparison, list[Check]]) -> None:
    comparison, checks = two
    text = comparison_markdown(comparison, checks)
    assert text.startswith("# b against a\n")
    assert "gate failed: 1 of 4 rules violated" in text
    cost = "(answerable queries rejected 0.0%)"
    assert f"- b: tn_rate is 0.5000 {cost}, below 0.9" in text.replace("\\", "")
    assert "| a | none | 2 of 4 | 50.0% |" in text.partition("## Queries without gold")[2]
    for measure, (first, other) in comparison.table.items():
        assert f"| {measure} | {first.mean:.4f} | {other.mean:.4f} |" in text
    assert text.count("<details>") == text.count("</details>") == 4
    assert len(text) < 65536  # what a comment may have


def test_markdown_passes_where_the_rules_hold() -> None:
    comparison, _ = of(result("a"), result("b", quality=0.9))
    text = comparison_markdown(comparison, check_gate(Gate(floors={"mrr": 0}), comparison))
    assert "gate passed: 1 of 1 rules hold" in text


def test_a_gain_shows_its_query_its_difference_and_its_hits(two: tuple[Comparison, list[Check]]) -> None:
    comparison, checks = two
    gain = tables.gains(comparison, 1)[0]
    text = comparison_markdown(comparison, checks, queries=1)
    line = next(line for line in text.splitlines() if line.startswith(f"- **{gain.after.id}**"))
    assert gain.after.text in line
    assert f"(+{gain.difference:.4f})" in line
    assert gain.after.retrieved[0][0] in text.partition(line)[2].partition("after: ")[2].partition("\n")[0]


def test_json_has_every_figure_and_the_violations(three: tuple[Comparison, list[Check]]) -> None:
    comparison, checks = three
    content = json.loads(comparison_json(comparison, checks))
    assert [system["label"] for system in content["systems"]] == ["a", "b", "c"]
    assert content["measures"]["RR"]["systems"]["c"]["mean"] == comparison.table["RR"][2].mean
    assert content["measures"]["RR"]["systems"]["a"]["p"] is None
    assert {of["measure"] for of in content["by_type"]} == set(comparison.table)
    assert len(content["queries"]["b"]) == len(comparison.list_changes(1))
    assert content["gate"]["passed"] is False
    assert len(content["gate"]["violations"]) == sum(check.verdict == "fail" for check in checks)


def test_the_page_shows_the_same_figures(three: tuple[Comparison, list[Check]]) -> None:
    comparison, checks = three
    page = Page(comparison_page(comparison, checks))
    shown = next(table for table in page.tables if len(table) == len(comparison.table) + 1)
    assert [row[0] for row in shown[1:]] == list(comparison.table)
    assert shown[1][1:4] == [f"{versus.mean:.4f}" for versus in comparison.table["nDCG@10"]]
    plots = read_explorer_data(comparison_page(comparison, checks))["plots"]
    assert [plot["id"] for plot in plots] == ["differences", "types", "queries-1", "queries-2"]
    assert max(Counter(page.ids).values()) == 1


def test_the_page_loads_nothing_and_is_the_same_again(three: tuple[Comparison, list[Check]]) -> None:
    html = comparison_page(*three)
    assert html == comparison_page(*three)
    assert Page(html).loaded == []
    assert "prefers-color-scheme: dark" in html


def test_every_control_of_the_page_is_alive(three: tuple[Comparison, list[Check]]) -> None:
    html = comparison_page(*three)
    page = Page(html)
    assert set(re.findall(r'data-filter="([^"]*)"', html)) == {"measures"} <= set(page.ids)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)


def test_data_is_never_markup() -> None:
    comparison, checks = of(
        result(EVIL, text=EVIL, types=(EVIL, "b")), result("b", text=EVIL, types=(EVIL, "b"), seed=2)
    )
    page = Page(comparison_page(comparison, checks))
    assert page.scripts == 1
    assert page.tags["img"] == 0
    text = comparison_markdown(comparison, checks)
    assert "<script>" not in text.replace("\\<script>", "")


@pytest.mark.parametrize(
    "results",
    [
        [result("a"), result("a")],
        [result("a", types=(), no_result=0, mean_ms=None), result("b", types=(), no_result=0, mean_ms=None, seed=3)],
        [result("a", hits=False), result("b", hits=False, seed=2)],
        [result("a", queries=1, no_result=0), result("b", queries=1, no_result=0, seed=2)],
        [result("a"), result("b", errors=dict.fromkeys(range(30), "down"))],
        [result(n, types=("类型", "タイプ"), seed=i) for i, n in enumerate("ab")],
        [result(str(i), retriever=f"r{i}", seed=i) for i in range(10)],
    ],
    ids=["the same", "bare", "no rankings", "one query", "all failed", "other scripts", "ten"],
)
def test_whatever_there_is_makes_all_reports(results: list[Result]) -> None:
    comparison, checks = of(*results)
    Page(comparison_page(comparison, checks))
    assert comparison_markdown(comparison, checks).startswith("# ")
    assert json.loads(comparison_json(comparison, checks))["systems"]


@pytest.mark.parametrize("columns", [50, 80, 160])
def test_no_table_is_wider_than_the_terminal(
    three: tuple[Comparison, list[Check]],
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    comparison, checks = three
    for table in (
        tables.measures_table(comparison), tables.differences_table(comparison, 1), tables.types_table(comparison),
        tables.times_table(comparison), tables.agreement_table(comparison), gate_rules.gate_table(checks),
        tables.changes_table(comparison.list_changes(1), "nDCG@10"), tables.systems_table(comparison),
    ):  # fmt: skip
        assert table.rows
        console.show_table(table)
    assert max(map(cell_len, capsys.readouterr().out.splitlines())) <= columns


def test_unknown_times_are_omitted() -> None:
    comparison, _ = of(result("a", mean_ms=None), replace(result("b", mean_ms=None), primary="nDCG@10"))
    assert tables.times_table(comparison).rows == []
