"""The report of traces as one self-contained HTML file; the same input gives the same bytes."""

from __future__ import annotations

from runner.agents.measures import association, differences
from runner.reports.rendering.page import render
from runner.reports.traces import comparisons, tables, timeline
from runner.reports.traces.report import TraceReport

OPEN = 4
"""The number of timelines that are open at first."""


def render_page(report: TraceReport) -> str:
    """Return the HTML page of a report."""
    return render(
        "traces.html.jinja",
        report=report,
        tables=tables,
        comparisons=comparisons,
        caveats={"comparison": differences.CAVEAT, "associations": association.CAVEAT},
        size=timeline,
        opened=OPEN,
    )
