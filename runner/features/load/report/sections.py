"""The sections of the report of a load test in their order, and the report as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from runner.features.load.load_test import LoadResult
from runner.features.load.report import tables
from runner.pages.markdown import escape, render_sections
from runner.pages.sections import ReportSection


def iter_sections(result: LoadResult) -> Iterator[ReportSection]:
    """Yield the sections."""
    yield ReportSection("Rates", tables.rates_table(result), "report")
    yield ReportSection("Errors", tables.errors_table(result), "report", printed="table")
    yield ReportSection("Requests and generator", tables.requests_table(result), "report")
    yield ReportSection("Method", list(tables.describe_load(result))[1:], "report")


def load_markdown(result: LoadResult) -> str:
    """Return the report."""
    parts = [
        f"# {escape(tables.heading(result))}",
        f"**{escape(tables.verdict(result))}**",
        *render_sections(iter_sections(result)),
    ]
    return "\n\n".join(parts) + "\n"
