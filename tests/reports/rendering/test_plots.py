"""What plots are made of: axes whose labels can be read."""

from __future__ import annotations

from itertools import pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from runner.reports.rendering import plots


@pytest.mark.parametrize("reach", [2.0, 30.0, 299.0, 301.0, 1e4, 1e6])
def test_the_labels_of_a_logarithmic_axis_stand_apart(reach: float) -> None:
    """However far the slowest retriever is from the quickest."""
    values = [0.0625 * reach ** (i / 9) for i in range(10)]
    figure = Figure(figsize=(plots.WIDTH, 3.0), layout="constrained")
    canvas, axes = FigureCanvasAgg(figure), figure.subplots()
    axes.plot(values, values, "o")
    axes.margins(0.08)
    plots.log_axis(axes, values)
    canvas.draw()
    low, high = axes.get_xlim()
    boxes = [
        label.get_window_extent()
        for place, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
        if low <= place <= high
    ]
    assert len(boxes) >= 2 or reach < 10
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
