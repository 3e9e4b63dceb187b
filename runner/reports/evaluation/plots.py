"""Plots of what thresholds do, in the style of the other plots. Imports matplotlib, as they do."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from runner.analysis.thresholds import Curve, ThresholdOutcome
from runner.reports.rendering.plots import MUTED, legend, marking, render_svg


def tradeoff(curve: Curve, points: Mapping[str, ThresholdOutcome], k: int) -> str:
    """Draw how many no-result queries get nothing against the recall that is left, threshold by threshold."""

    def draw(axes: Axes) -> None:
        axes.step(curve.recall, curve.tn_rate, where="post", color=MUTED, linewidth=1.4, zorder=1)
        for i, (label, outcome) in enumerate(points.items()):
            hollow = {} if i % 2 else {"markerfacecolor": "none"}
            mark = marking(i // 2) | {"linestyle": "none", "markersize": 8, "label": label, **hollow}
            axes.plot([outcome.recall], [outcome.tn_rate], **mark)
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.03, 1.03)
        axes.set_xlabel(f"R@{k} of the queries that have an answer")
        axes.set_ylabel("TN rate")
        legend(axes)

    return render_svg("thresholds", draw, 3.2)
