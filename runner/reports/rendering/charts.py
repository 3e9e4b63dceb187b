"""Plots of plain values: bars by class.

Imports matplotlib, as the other plots do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from runner.reports.rendering.numbers import gist
from runner.reports.rendering.plots import (
    SERIES,
    label_rows,
    legend,
    render_svg,
)


def bars(classes: Sequence[str], series: Mapping[str, Sequence[float | None]], measure: str = "") -> str:
    """Draw values by class, a bar for each series."""

    def draw(axes: Axes) -> None:
        height = 0.8 / len(series)
        for i, (label, values) in enumerate(series.items()):
            places = np.arange(len(classes)) - 0.4 + height * (i + 0.5)
            lengths = [math.nan if value is None else value for value in values]
            axes.barh(places, lengths, height * 0.86, color=SERIES[i % len(SERIES)], label=label)
        label_rows(axes, [gist(text, 24) for text in classes])
        axes.set_xlabel(measure)
        legend(axes)

    return render_svg("types", draw, 0.7 + len(classes) * (0.12 + 0.14 * len(series)))
