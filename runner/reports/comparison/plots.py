"""Plots of a comparison: differences with their intervals, overall and by query.

This module imports matplotlib; import it only to draw.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from runner.comparison.compare import Comparison
from runner.reports.rendering.charts import steps
from runner.reports.rendering.numbers import gist
from runner.reports.rendering.plots import MARKERS, MUTED, SERIES, label_rows, legend, render_svg


def differences(comparison: Comparison, measures: Sequence[str]) -> str:
    """Draw the differences of the systems to the first, with intervals; hollow marks are not significant."""
    others = comparison.labels[1:]

    def draw(axes: Axes) -> None:
        axes.axvline(0, color=MUTED, linewidth=0.8)
        for i, label in enumerate(others):
            color, marker = SERIES[i % len(SERIES)], MARKERS[i % len(MARKERS)]
            for place, measure in enumerate(measures):
                versus = comparison.table[measure][i + 1]
                y = place + (i + 0.5) / len(others) * 0.7 - 0.35
                axes.plot([versus.low, versus.high], [y, y], color=color, linewidth=1.6)
                face = color if versus.significant else "none"
                axes.plot(
                    [versus.difference], [y], marker, color=color, markerfacecolor=face, markersize=5,
                    label=label if place == 0 else "", linestyle="none",
                )  # fmt: skip
        label_rows(axes, measures)
        axes.set_xlabel(f"difference to {gist(comparison.labels[0], 40)}")
        if len(others) > 1:
            legend(axes)

    return render_svg("differences", draw, 0.8 + len(measures) * (0.12 + 0.16 * len(others)))


def queries(comparison: Comparison, i: int) -> str:
    """Draw the differences of a system to the first, query by query, in order of size."""
    scores = comparison.scores[comparison.primary]

    def draw(axes: Axes) -> None:
        steps(axes, scores[i] - scores[0], comparison.primary)
        axes.set_xlabel("queries, in order of the difference; the dashed line is its mean")

    return render_svg(f"queries-{i}", draw, 3.0)
