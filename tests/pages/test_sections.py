"""Every section of a report's list is in all of its formats: Markdown, page and, if it is printed, the terminal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from runner.api import notebook
from runner.comparison.compare import Comparison, TableStatistics, compare_results
from runner.comparison.data_effect import DataEffect, measure_data_effect
from runner.comparison.gate import Check, Gate, check_gate
from runner.comparison.insights import find_failures, find_insights
from runner.comparison.leaderboard import FailedCombination, Leaderboard, build_leaderboard
from runner.comparison.race import DroppedCombination, RaceRecord
from runner.comparison.report.page import comparison_page
from runner.comparison.report.sections import comparison_markdown
from runner.comparison.report.sections import iter_sections as iter_comparison_sections
from runner.comparison.unjudged import SERVED
from runner.evaluation.grades import Grades
from runner.evaluation.report.page import LISTED, result_page
from runner.evaluation.report.printing import show_result
from runner.evaluation.report.sections import iter_sections as iter_result_sections
from runner.evaluation.report.sections import result_markdown
from runner.evaluation.result import Result
from runner.evaluation.verdicts import GradeVerdict
from runner.features.traces.report.page import render_page
from runner.features.traces.report.report import TraceReport
from runner.features.traces.report.sections import TASKS, render_markdown
from runner.features.traces.report.sections import iter_sections as iter_trace_sections
from runner.pages.markdown import render_sections
from runner.pages.sections import ReportSection
from runner.pages.tables import Column, Table
from runner.sweep.report.page import HARDEST, sweep_page
from runner.sweep.report.printing import show_leaderboard
from runner.sweep.report.sections import iter_sections as iter_sweep_sections
from runner.sweep.report.sections import sweep_markdown
from tests.comparison.test_datasets import groups, rank
from tests.features.traces.report.factory import finding, told_of
from tests.pages.factory import lose_gold, result, sweep
from tests.pages.reading import check_markdown, check_page
from tests.sweep.report.test_selection import search, selection

PRIMARY = "nDCG@10"


def build_full_sweep() -> tuple[Leaderboard, list[Result]]:
    """Return a sweep whose report has all of its sections."""
    under_load = {"index_recall_at_10": 0.97, "p99_ms_at_50": 40.0, "quality_at_50": 0.5}
    results = [lose_gold(replace(one, diagnostics=under_load), i) for i, one in enumerate(sweep(6))]
    dropped = DroppedCombination("c", "k1=9", {"k1": "9"}, 12, "k1=1.2", 0.001, 0.2, 0.5)
    board = build_leaderboard(results, PRIMARY, [FailedCombination("x", "boom", "Traceback")])
    race = RaceRecord(PRIMARY, 0.05, 0.0, 10, 0, 30, ["c"], [dropped])
    systems = rank(*groups())
    return replace(board, search=search(), selection=selection("kfold"), race=race, systems=systems), results


def build_full_evaluation() -> Result:
    """Return a result whose report has all of its sections."""
    found = result(errors={3: "timed out"}, retriever="dense")
    n = len(found.queries.ids)
    verdicts = [[GradeVerdict(9.0, "graded", "all is there", calls=1)] for _ in range(n)]
    diagnostics = {"queries.filter_up_to_1_percent": 12.0, "index_recall_at_10": 0.5}
    grades = Grades("judge", "hash", 5, (1.0, 0.8, 0.5), verdicts, np.ones(n), [False] * n)
    return lose_gold(replace(found, grades=grades, diagnostics=diagnostics), 0)


def build_full_comparison() -> tuple[Comparison, list[Check], DataEffect]:
    """Return a comparison whose report has all of its sections, with the effect of changed data."""
    recorded, again, candidate = result("a", seed=1), result("a", seed=5), result("b", seed=2, quality=0.7)
    again, candidate = lose_gold(again, 0), lose_gold(candidate, 1)
    comparison = compare_results([again, candidate], TableStatistics(permutations=50), sources=[SERVED, "candidate"])
    effect = measure_data_effect(recorded, again, [candidate], ["b"], comparison)
    return comparison, check_gate(Gate(floors={"mrr": 0.2}), comparison), effect


def build_full_traces() -> TraceReport:
    """Return a report of traces with all of its sections."""
    recalls = [0.1 * (i % 9) for i in range(12)]
    artifacts = finding("baseline", recalls) | finding("mcp", [recall + 0.1 for recall in recalls])
    for i, artifact in enumerate(artifacts.values()):
        artifact["outcome"] = artifact["outcome"] | {"reward": 0.1 * (i % 7)}
        artifact["provenance"]["benchmark"] = f"suite{i % 2}"
    artifacts["mcp/t0"]["coverage"]["degraded_reason"] = "cut short"
    return replace(told_of(artifacts), failures={"bad": "boom"})


def test_every_section_of_a_sweep_is_in_markdown_and_on_the_page() -> None:
    board, results = build_full_sweep()
    insight = find_failures(result(quality=0.2))
    check_markdown(iter_sweep_sections(board, results, insight), sweep_markdown(board, results, insight))
    sections = iter_sweep_sections(board, results, insight, HARDEST)
    check_page(sections, sweep_page(board, results, insight=insight), "Leaderboard", "1 failed")


def test_every_section_of_an_evaluation_is_in_markdown_and_on_the_page() -> None:
    found = build_full_evaluation()
    insight = find_insights(found)
    check_markdown(iter_result_sections(found, insight, 10), result_markdown(found, insight))
    check_page(iter_result_sections(found, insight, LISTED), result_page(found, insight), "Hardest queries")


def test_a_report_says_why_no_threshold_was_selected() -> None:
    found = result()
    insight = replace(find_insights(found), tunings=(), untunable="No threshold was selected, because of *x*.")
    sections = [s for s in iter_result_sections(found, insight, 10) if s.title == "Choosing a threshold"]
    assert sections[0].lines == [insight.untunable]
    check_markdown(sections, result_markdown(found, insight))
    check_page(sections, result_page(found, insight))


def test_every_section_of_a_comparison_is_in_markdown_and_on_the_page() -> None:
    comparison, checks, effect = build_full_comparison()
    sections = list(iter_comparison_sections(comparison, checks, effect, 5))
    check_markdown(sections, comparison_markdown(comparison, checks, 5, effect))
    own = [section.title for section in sections if not section.place]
    assert [title.partition(" (")[0] for title in own] == ["The largest gains", "The largest losses", own[-1]]
    assert own[-1] == f"All {len(comparison.table)} measures"
    check_page(sections, comparison_page(comparison, checks, effect), *own)


def test_every_section_of_a_report_of_traces_is_in_markdown_and_on_the_page() -> None:
    found = build_full_traces()
    sections = list(iter_trace_sections(found, TASKS))
    check_markdown(sections, render_markdown(found))
    check_page(sections, render_page(found), "Most interesting tasks")


def test_printed_sections_of_a_sweep_are_in_the_terminal_and_in_notebooks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    board, results = build_full_sweep()
    show_leaderboard(board, results)
    out = capsys.readouterr().out
    shown = notebook.render_leaderboard(board, results)
    printed = [section.title for section in iter_sweep_sections(board, results) if section.printed]
    assert printed == [
        "Pareto front",
        "Under load",
        "Cheapest settings with recall 0.95",
        "Dropped by the race",
        "1 failed",
    ]
    assert all(f"\n{title}\n" in out and f"<em>{title}</em>" in shown for title in printed)


def test_printed_sections_of_an_evaluation_are_in_the_terminal_and_in_notebooks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    found = build_full_evaluation()
    insight = find_insights(found)
    show_result(found, insight)
    out = capsys.readouterr().out
    shown = notebook.render_result(found)
    printed = [section.title for section in iter_result_sections(found, insight, 3) if section.printed]
    assert printed[-3:] == ["Queries that raised an error", "Missed queries and their causes", "Hardest queries"]
    assert all(f"\n{title}\n" in out for title in printed)
    assert [title for title in printed if f"<em>{title}</em>" in shown] == printed[:-2]


def test_a_section_is_a_table_tables_or_lines_and_an_empty_one_is_left_out() -> None:
    table, empty = Table([Column("a")], [["x_"]]), Table([Column("a")], [])
    sections = [
        ReportSection("T*", table, "", "a note."),
        ReportSection("No rows", empty, "", "a note."),
        ReportSection("Two", {"a < b": table, "none": empty}, ""),
        ReportSection("One line", ["it is *so*"], ""),
        ReportSection("Lines", ["a", "b"], ""),
        ReportSection("Folded & more", table, "", folded=True),
        ReportSection("Its own", empty, "", markdown="**x**"),
        ReportSection("Elsewhere", table, "", markdown=""),
    ]
    shown = "| a |\n| --- |\n| x\\_ |"
    assert list(render_sections(sections)) == [
        "## T\\*", "a note.", shown,
        "## Two", "### a < b", shown,
        "## One line", "it is \\*so\\*",
        "## Lines", "- a\n- b",
        "<details><summary>Folded &amp; more</summary>", shown, "</details>",
        "## Its own", "**x**",
    ]  # fmt: skip
