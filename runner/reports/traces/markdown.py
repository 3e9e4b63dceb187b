"""A report of agents' runs as Markdown, for a pull request or a wiki; timelines are in the HTML page alone.

Whatever comes from data is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.agents.measures.association import CAVEAT as ASSOCIATION_ONLY
from runner.agents.measures.differences import CAVEAT as COMPARISON_ONLY
from runner.reports.rendering.markdown import escape, markdown_table, section
from runner.reports.rendering.tables import Table
from runner.reports.traces import comparisons as compared
from runner.reports.traces import tables as told
from runner.reports.traces.report import TraceReport

TASKS = 30
"""How many tasks are listed."""


def trace_markdown(report: TraceReport) -> str:
    """Return the Markdown of a report."""
    parts = [
        "# What agents retrieved",
        escape(told.heading(report)),
        *(f"**{escape(verdict)}**" for verdict in compared.verdicts(report)),
        markdown_table(told.configurations_table(report)),
        *(escape(note) for note in (told.confidence_note(report), told.rewards_note(report)) if note),
        *section(compared.comparisons_title(report), compared.comparisons_table(report), escape(COMPARISON_ONLY)),
        *(part for each in report.comparisons if each["computable"] for part in _comparison(each)),
        *section("Together with the outcome", compared.associations_table(report), escape(ASSOCIATION_ONLY)),
        *section("Errors, in the mean", told.errors_table(report)),
        *section("By suite", told.suites_table(report)),
        *section("By slice", told.slices_table(report)),
        *section("Tasks worth a look", told.tasks_table(report, TASKS)),
        *section("What could not be read", told.degraded_table(report)),
        *section("Failed", told.failures_table(report)),
        *_folded("Every figure", told.figures_table(report)),
    ]
    return "\n\n".join(parts) + "\n"


def _comparison(comparison: Mapping[str, Any]) -> list[str]:
    table, note = compared.comparison_table(comparison), compared.comparison_note(comparison)
    return section(compared.comparison_title(comparison), table, escape(note))


def _folded(title: str, table: Table) -> list[str]:
    return [f"<details><summary>{title}</summary>", markdown_table(table), "</details>"] if table.rows else []
