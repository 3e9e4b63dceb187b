"""The sections of a report about agents' runs in their order, and the report as Markdown; data is escaped."""

from __future__ import annotations

from collections.abc import Iterator

from runner.features.traces.measures import association
from runner.features.traces.report import tables
from runner.features.traces.report.report import TraceReport
from runner.pages.markdown import escape, render_sections
from runner.pages.sections import ReportSection

TASKS = 30
"""The number of tasks that are listed."""


def render_markdown(report: TraceReport) -> str:
    """Return the Markdown of a report."""
    parts = [
        "# What agents retrieved",
        escape(tables.heading(report)),
        *render_sections(iter_sections(report, TASKS)),
    ]
    return "\n\n".join(parts) + "\n"


def iter_sections(report: TraceReport, tasks: int) -> Iterator[ReportSection]:
    """Yield the sections; that of single tasks has at most so many."""
    notes = filter(None, (tables.means_note(report), tables.confidence_note(report), tables.rewards_note(report)))
    yield ReportSection("By configuration", tables.configurations_table(report), "configurations", " ".join(notes))
    table = tables.associations_table(report)
    yield ReportSection("Association with the outcome", table, "associations", association.CAVEAT)
    yield ReportSection("Errors per task (mean)", tables.errors_table(report), "slices")
    yield ReportSection("By suite", tables.suites_table(report), "slices")
    yield ReportSection("By slice", tables.slices_table(report), "slices")
    yield ReportSection("Most interesting tasks", tables.tasks_table(report, tasks), "")
    yield ReportSection("Unreadable data", tables.unreadable_table(report), "slices")
    yield ReportSection("Failed", tables.failures_table(report), "summary", "Run the same command to try them again.")
    yield ReportSection("All figures", tables.figures_table(report), "figures", folded=True)
