"""Plots of a comparison: how sure the differences are, and which queries they come from.

Imports matplotlib, so that whoever draws imports this, and no one else. Knows nothing of pages.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from runner.reports.comparison.compare import Comparison
from runner.reports.rendering.plots import BAD, GOOD, INK, MARKERS, MUTED, SERIES, drawn, legend, named_rows


def differences(comparison: Comparison, measures: Sequence[str]) -> str:
    """Draw the differences of the systems to the first, with their intervals; those that may be luck are hollow."""
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
        named_rows(axes, measures)
        axes.set_xlabel(f"difference to {comparison.labels[0]}")
        if len(others) > 1:
            legend(axes)

    return drawn("differences", draw, 0.8 + len(measures) * (0.12 + 0.16 * len(others)))


def queries(comparison: Comparison, i: int) -> str:
    """Draw the differences of a system to the first, query by query, in order of size."""
    scores = comparison.scores[comparison.primary]
    values = scores[i] - scores[0]
    ordered = np.sort(values[~np.isnan(values)])[::-1]
    places = np.arange(len(ordered) + 1)

    def draw(axes: Axes) -> None:
        for color, part in ((GOOD, np.maximum(ordered, 0)), (BAD, np.minimum(ordered, 0))):
            axes.fill_between(places, np.append(part, part[-1]), step="post", color=color, linewidth=0)
        axes.axhline(0, color=MUTED, linewidth=0.8)
        axes.axhline(float(ordered.mean()), color=INK, linewidth=1, linestyle=(0, (4, 3)))
        reach = max(float(np.abs(ordered).max()), 0.01) * 1.1
        axes.set_ylim(-reach, reach)
        axes.set_xlim(0, len(ordered))
        axes.set_xlabel("queries, in order of the difference; the dashed line is its mean")
        axes.set_ylabel(f"difference in {comparison.primary}")

    return drawn(f"queries-{i}", draw, 3.0)
