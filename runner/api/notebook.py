"""Results, leaderboards and comparisons as HTML for notebook cells: the tables of the console."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from runner.comparison.compare import Comparison
from runner.comparison.insights import Insights
from runner.comparison.leaderboard import Leaderboard
from runner.comparison.report import tables as comparison_tables
from runner.config.environment import hide_values
from runner.evaluation.report import tables as evaluation_tables
from runner.evaluation.report.sections import iter_sections as iter_result_sections
from runner.evaluation.result import Result
from runner.pages import numbers
from runner.pages.page import render
from runner.pages.sections import ReportSection
from runner.pages.tables import Table
from runner.sweep.report import tables as sweep_tables
from runner.sweep.report.sections import iter_sections

TEMPLATE = Path(__file__).with_name("notebook.html.jinja")

MOST_ROWS = 20
"""Most rows of a leaderboard."""

Part = tuple[str, Table, Collection[int]]
"""A table under its title, with the numbers of its bold rows."""


def render_result(result: Result) -> str:
    """Return a result as HTML: its measures, the sections that are printed and list no queries, and its cost."""
    mean, interval = numbers.score(result.means.get(result.primary)), result.intervals.get(result.primary)
    figure = f"{result.primary} {mean} {numbers.interval(interval)}"
    parts: list[Part] = [
        ("", evaluation_tables.measures_table(result), ()),
        ("", evaluation_tables.whole_table(result), ()),
        *_select_printed(iter_result_sections(result, Insights(), limit=0)),
    ]
    warnings = [f"warning: {warning}" for warning in evaluation_tables.warnings(result)]
    title = f"{result.name} on {evaluation_tables.heading(result)}: {figure}"
    return render_tables(
        title, parts, [evaluation_tables.outcomes_line(result), *warnings, evaluation_tables.cost(result)]
    )


def render_leaderboard(board: Leaderboard, results: Sequence[Result] = ()) -> str:
    """Return a leaderboard as HTML: its best rows, which of them really differ, and the sections that are printed."""
    table = sweep_tables.leaderboard_table(board)
    parts: list[Part] = [
        ("", Table(table.columns, table.rows[:MOST_ROWS]), sweep_tables.alike(board)),
        *_select_printed(iter_sections(board, results)),
    ]
    more = [f"and {len(board.rows) - MOST_ROWS:,} more"] if len(board.rows) > MOST_ROWS else []
    title = sweep_tables.board_heading(board) if board.dataset else "no combination finished"
    lines = [sweep_tables.verdict(board), *sweep_tables.notices(board), sweep_tables.describe_judging(board)]
    return render_tables(title, parts, [*more, *filter(None, lines)])


def render_comparison(comparison: Comparison) -> str:
    """Return a comparison as HTML: verdicts, means, and the differences to the first result."""
    few, (first, *others) = comparison.headline, comparison.labels
    parts: list[Part] = [("Measures", comparison_tables.measures_table(comparison, few), ())]
    for i, label in enumerate(others, 1):
        parts.append((f"{label} minus {first}", comparison_tables.differences_table(comparison, i, few), ()))
    texts = [*comparison_tables.verdicts(comparison), *comparison_tables.about(comparison)]
    return render_tables(comparison_tables.heading(comparison), parts, texts)


def render_page(page: str, height: int = 600) -> str:
    """Return a report as HTML: the page in a frame, so that its style stays its own."""
    return f'<iframe srcdoc="{escape(page)}" style="width: 100%; height: {height}px; border: 0"></iframe>'


def _select_printed(sections: Iterable[ReportSection]) -> Iterator[Part]:
    """Yield the tables that a terminal shows too."""
    for section in sections:
        yield from ((section.title, table, ()) for table in section.tables.values() if section.printed)


def render_tables(title: str, parts: Sequence[Part], texts: Sequence[str]) -> str:
    """Return tables under a title, and sentences below them, as HTML."""
    return hide_values(render(TEMPLATE, title=title, parts=parts, texts=list(filter(None, texts))))
