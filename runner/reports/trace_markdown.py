"""A report of agents' runs as Markdown, for a pull request or a wiki; timelines are in the HTML page alone.

Whatever comes from data is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.agents.measures.association import CAVEAT as ASSOCIATION_ONLY
from runner.agents.measures.differences import CAVEAT as COMPARISON_ONLY
from runner.reports import trace_comparisons as compared
from runner.reports import trace_tables as told
from runner.reports.markdown import escaped, markdown_table
from runner.reports.tables import Table
from runner.reports.trace_report import TraceReport

TASKS = 30
"""How many tasks are listed."""


def trace_markdown(report: TraceReport) -> str:
    """Return the Markdown of a report."""
    parts = [
        "# What agents retrieved",
        escaped(told.heading(report)),
        *(f"**{escaped(verdict)}**" for verdict in compared.verdicts(report)),
        markdown_table(told.configurations_table(report)),
        *([escaped(note)] if (note := told.rewards_note(report)) else []),
        *_section(compared.comparisons_title(report), compared.comparisons_table(report), COMPARISON_ONLY),
        *(part for each in report.comparisons if each["computable"] for part in _comparison(each)),
        *_section("Together with the outcome", compared.associations_table(report), ASSOCIATION_ONLY),
        *_section("Errors, in the mean", told.errors_table(report)),
        *_section("By suite", told.suites_table(report)),
        *_section("By slice", told.slices_table(report)),
        *_section("Tasks worth a look", told.tasks_table(report, TASKS)),
        *_section("What could not be read", told.degraded_table(report)),
        *_section("Failed", told.failures_table(report)),
        *_folded("Every figure", told.figures_table(report)),
    ]
    return "\n\n".join(parts) + "\n"


def _comparison(comparison: Mapping[str, Any]) -> list[str]:
    table, note = compared.comparison_table(comparison), compared.comparison_note(comparison)
    return _section(compared.comparison_title(comparison), table, note)


def _section(title: str, table: Table, note: str = "") -> list[str]:
    return [f"## {escaped(title)}", *([escaped(note)] if note else []), markdown_table(table)] if table.rows else []


def _folded(title: str, table: Table) -> list[str]:
    return [f"<details><summary>{title}</summary>", markdown_table(table), "</details>"] if table.rows else []
