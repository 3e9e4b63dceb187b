"""Renders a report about agents' runs as Markdown, for a pull request or a wiki; only the HTML page has timelines.

Everything that comes from data is escaped.
"""

from __future__ import annotations

from itertools import chain

from runner.agents.measures.association import CAVEAT as ASSOCIATION
from runner.agents.measures.differences import CAVEAT as COMPARISON
from runner.agents.measures.differences import TraceComparison
from runner.reports.rendering.markdown import escape, markdown_table, section
from runner.reports.rendering.tables import Table
from runner.reports.traces import comparisons, tables
from runner.reports.traces.report import TraceReport

TASKS = 30
"""The number of tasks that are listed."""


def render_markdown(report: TraceReport) -> str:
    """Return the Markdown of a report."""
    parts = [
        "# What agents retrieved",
        escape(tables.heading(report)),
        *(f"**{escape(verdict)}**" for verdict in comparisons.describe_decisions(report)),
        markdown_table(tables.configurations_table(report)),
        *(escape(note) for note in (tables.confidence_note(report), tables.rewards_note(report)) if note),
        *section(comparisons.comparisons_title(report), comparisons.comparisons_table(report), escape(COMPARISON)),
        *chain.from_iterable(map(_render_comparison, report.comparisons)),
        *section("Association with the outcome", comparisons.associations_table(report), escape(ASSOCIATION)),
        *section("Errors per task (mean)", tables.errors_table(report)),
        *section("By suite", tables.suites_table(report)),
        *section("By slice", tables.slices_table(report)),
        *section("Most interesting tasks", tables.tasks_table(report, TASKS)),
        *section("Unreadable data", tables.unreadable_table(report)),
        *section("Failed", tables.failures_table(report)),
        *_render_folded("All figures", tables.figures_table(report)),
    ]
    return "\n\n".join(parts) + "\n"


def _render_comparison(comparison: TraceComparison) -> list[str]:
    if not comparison["computable"]:
        return []
    table, note = comparisons.comparison_table(comparison), comparisons.comparison_note(comparison)
    return section(comparisons.comparison_title(comparison), table, escape(note))


def _render_folded(title: str, table: Table) -> list[str]:
    return [f"<details><summary>{title}</summary>", markdown_table(table), "</details>"] if table.rows else []
