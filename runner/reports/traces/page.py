"""A report of agents' runs as one HTML file: tables, and the way of an agent through the files of a task.

Nothing in it is from elsewhere; the same input gives the same bytes. Knows nothing of how the numbers were made.
"""

from __future__ import annotations

from runner.agents.measures import association, differences
from runner.reports.rendering.page import render
from runner.reports.traces import comparisons, tables, timeline
from runner.reports.traces.report import TraceReport

OPEN = 4
"""How many timelines are open from the start."""


def trace_page(report: TraceReport) -> str:
    """Return the page of a report."""
    return render(
        "traces.html.jinja",
        report=report,
        told=tables,
        compared=comparisons,
        caveats={"comparison": differences.CAVEAT, "associations": association.CAVEAT},
        size=timeline,
        opened=OPEN,
    )
