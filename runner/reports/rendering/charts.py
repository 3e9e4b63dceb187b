"""Plots of plain values: curves by cutoff, how values lie, bars by class, steps by query.

Imports matplotlib, as the other plots do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from runner.reports.rendering.numbers import gist
from runner.reports.rendering.plots import (
    BAD,
    GOOD,
    INK,
    MUTED,
    SERIES,
    label_rows,
    legend,
    log_axis,
    marking,
    render_svg,
)


def curves(series: Mapping[str, Mapping[int, float]], measure: str = "") -> str:
    """Draw measures against their cutoff, a line each."""

    def draw(axes: Axes) -> None:
        for i, (label, values) in enumerate(series.items()):
            axes.plot(list(values), list(values.values()), label=label, **marking(i))
        cutoffs = sorted({cutoff for values in series.values() for cutoff in values})
        log_axis(axes, cutoffs)
        axes.set_xlabel("cutoff")
        axes.set_ylabel(measure)
        axes.set_ylim(0, 1.05 * max((value for values in series.values() for value in values.values()), default=1) or 1)
        legend(axes)

    return render_svg("curves", draw, 3.0)


def histogram(values: NDArray[np.float64], measure: str) -> str:
    """Draw how many queries have which value of a measure."""

    def draw(axes: Axes) -> None:
        counted = values[~np.isnan(values)]
        axes.hist(
            counted,
            bins=np.linspace(min(0, counted.min()), max(1, counted.max()), 21).tolist(),
            color=SERIES[0],
            rwidth=0.92,
        )
        axes.axvline(counted.mean(), color=INK, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            f"mean {counted.mean():.3f}", (counted.mean(), 1), (4, -4), xycoords=("data", "axes fraction"),
            textcoords="offset points", va="top",
        )  # fmt: skip
        axes.margins(y=0.14)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(measure)
        axes.set_ylabel("queries")
        axes.grid(axis="x", visible=False)

    return render_svg("queries", draw, 2.9)


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


def steps(axes: Axes, differences: NDArray[np.float64], measure: str) -> float:
    """Draw the differences between two systems, query by query (NaN is left out), in order of size; return the mean."""
    ordered = np.sort(differences[~np.isnan(differences)])[::-1]
    places, mean = np.arange(len(ordered) + 1), float(ordered.mean())
    for color, part in ((GOOD, np.maximum(ordered, 0)), (BAD, np.minimum(ordered, 0))):
        axes.fill_between(places, np.append(part, part[-1]), step="post", color=color, linewidth=0)
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.axhline(mean, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    reach = max(float(np.abs(ordered).max()), 0.01) * 1.1
    axes.set_ylim(-reach, reach)
    axes.set_xlim(0, len(ordered))
    axes.set_ylabel(f"difference in {measure}")
    return mean
