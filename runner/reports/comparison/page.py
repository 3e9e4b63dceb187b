"""A comparison as one self-contained HTML file; the same input gives the same bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from runner.comparison.compare import Comparison
from runner.comparison.data_effect import DataEffect
from runner.comparison.gate import Check
from runner.reports.comparison import data, tables
from runner.reports.rendering.page import Figure, figure, render

QUERIES = 100
"""Most gains, and most losses, of each system on the page."""

MOST_TYPES = 8
"""Most query types in a plot."""


def comparison_page(comparison: Comparison, checks: Sequence[Check] = (), effect: DataEffect | None = None) -> str:
    """Return the page of a comparison."""
    return render(
        "comparison.html.jinja",
        comparison=comparison,
        checks=checks,
        comparison_tables=tables,
        effect=effect,
        data=data,
        few=comparison.headline,
        figures=list(_figures(comparison)),
        limit=QUERIES,
    )


def _figures(comparison: Comparison) -> Iterator[Figure]:
    primary = comparison.primary
    if math.isnan(comparison.table[primary][-1].difference):
        return
    from runner.reports.comparison import plots
    from runner.reports.rendering import charts

    first = comparison.labels[0]
    text = f"Mean differences to {first}, with intervals. Hollow markers are not significant."
    measures = comparison.headline
    yield figure("Differences", text, plots.differences(comparison, measures))
    by_type = tables.by_type(comparison, [primary])
    if 1 < len(by_type) <= MOST_TYPES:
        types = [f"{of['type']} ({of['queries']})" for of in by_type]
        bars = {label: [of["means"][i] for of in by_type] for i, label in enumerate(comparison.labels)}
        yield figure("By query type", f"{primary} of the queries of each type.", charts.bars(types, bars, primary))
    for i, label in enumerate(comparison.labels[1:], 1):
        v = comparison.table[primary][i]
        text = f"{label} against {first}: better on {v.wins:,}, equal on {v.ties:,}, worse on {v.losses:,}."
        yield figure("Query by query", text, plots.queries(comparison, i))
