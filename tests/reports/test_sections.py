"""Every section of a report's list is in all of its formats: Markdown, page and, if it is printed, the terminal."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from runner.comparison.datasets import rank_systems
from runner.comparison.leaderboard import FailedCombination, Leaderboard, build_leaderboard
from runner.comparison.race import DroppedCombination, RaceRecord
from runner.reports import console, notebook
from runner.reports.rendering.markdown import escape, fold, markdown_table, render_sections
from runner.reports.rendering.sections import ReportSection
from runner.reports.rendering.tables import Column, Table
from runner.reports.sweep.markdown import sweep_markdown
from runner.reports.sweep.page import HARDEST, sweep_page
from runner.reports.sweep.sections import list_sections as list_sweep_sections
from runner.result import Result
from tests.comparison.test_datasets import boards
from tests.reports.factory import sweep
from tests.reports.reading import Page
from tests.reports.sweep.test_selection import search, selection

PRIMARY = "nDCG@10"


@dataclass(frozen=True)
class Formats:
    """A report in both formats with the sections of each, and titles that the page's template shows in its own form."""

    in_markdown: Sequence[ReportSection]
    markdown: str
    on_page: Sequence[ReportSection]
    page: str
    own: Sequence[str] = ()


def build_full_sweep() -> tuple[Leaderboard, list[Result]]:
    """Return a sweep whose report has all of its sections."""
    results = sweep(6)
    dropped = DroppedCombination("c", "k1=9", {"k1": "9"}, 12, "k1=1.2", 0.001, 0.2, 0.5)
    board = build_leaderboard(results, PRIMARY, [FailedCombination("x", "boom", "Traceback")])
    race = RaceRecord(PRIMARY, 0.05, 0.0, 10, 0, 30, ["c"], [dropped])
    systems = rank_systems(boards())
    return replace(board, search=search(), selection=selection("kfold"), race=race, systems=systems), results


def of_sweep() -> Formats:
    board, results = build_full_sweep()
    return Formats(
        list_sweep_sections(board, results),
        sweep_markdown(board, results),
        list_sweep_sections(board, results, HARDEST),
        sweep_page(board, results),
        ["Leaderboard", "1 failed"],
    )


REPORTS = {"sweep": of_sweep}


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_every_section_is_in_markdown_and_on_the_page(report: object) -> None:
    assert callable(report)
    formats: Formats = report()
    for section in formats.in_markdown:
        assert not section.is_empty, f"the report of this test lacks {section.title}"
        if section.markdown != "":
            (head, *_) = fold(section.title, []) if section.folded else [f"## {escape(section.title)}"]
            assert f"{head}\n" in formats.markdown
        if section.markdown is None:
            assert all(markdown_table(table) in formats.markdown for table in section.tables.values()), section.title
            assert all(escape(line) in formats.markdown for line in section.lines), section.title
    page = Page(formats.page)
    for section in formats.on_page:
        if section.place:
            assert f"<h2>{html.escape(section.title)}</h2>" in formats.page or section.figure, section.title
            for table in section.tables.values():
                assert [[column.title for column in table.columns], *table.texts()] in page.tables, section.title
            assert all(line in page.texts for line in section.lines), section.title
    assert [section.title for section in formats.on_page if not section.place] == list(formats.own)
    assert all(title in page.texts for title in formats.own)


def test_printed_sections_of_a_sweep_are_in_the_terminal_and_in_notebooks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    board, results = build_full_sweep()
    console.show_leaderboard(board, results)
    out = capsys.readouterr().out
    shown = notebook.render_leaderboard(board, results)
    printed = [section.title for section in list_sweep_sections(board, results) if section.printed]
    assert printed == ["Pareto front", "Dropped by the race", "1 failed"]
    assert all(f"\n{title}\n" in out and f"<em>{title}</em>" in shown for title in printed)


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
