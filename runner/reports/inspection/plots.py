"""Plots of how a dataset is made, in the style of the other plots. Imports matplotlib, as they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from runner.reports.rendering.numbers import gist
from runner.reports.rendering.plots import INK, SERIES, label_rows, legend, render_svg

WIDE = 20
"""From how many times the shortest on the longest text needs a logarithmic axis."""

BINS = 24
"""How many bars a plot of lengths has at most."""


def lengths(words: NDArray[np.int64], what: str, color: int = 0) -> str:
    """Draw how many texts have how many words, on a logarithmic axis where they differ much; none counts as one."""
    counts = np.maximum(words, 1)
    least, most = int(counts.min()), int(counts.max())
    wide = most > WIDE * least

    def draw(axes: Axes) -> None:
        step = -(-(most + 1 - least) // BINS)
        edges = np.geomspace(least, most + 1, BINS + 1) if wide else np.arange(least, most + 1 + step, step)
        axes.hist(counts, bins=np.unique(edges.round()).tolist(), color=SERIES[color], rwidth=0.92)
        if wide:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
            axes.xaxis.set_minor_locator(NullLocator())
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        median = float(np.quantile(counts, 0.5, method="nearest"))  # a length that there is, as in the table
        axes.axvline(median, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            f"median {median:,.0f}", (median, 1), (4, -4), xycoords=("data", "axes fraction"),
            textcoords="offset points", va="top",
        )  # fmt: skip
        axes.margins(y=0.14)
        _label_axes(axes, "words", what)

    return render_svg(f"words-of-{what}", draw, 2.6)


def counts(values: NDArray[np.int64], of: str, most: int = 20) -> str:
    """Draw how many queries have which count, larger ones together at the end."""

    def draw(axes: Axes) -> None:
        together = np.bincount(np.minimum(values, most))
        axes.bar(np.arange(len(together)), together, color=SERIES[0], width=0.85)
        axes.set_xlim(-0.6, max(len(together), 2) - 0.4)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if len(together) > most:
            axes.annotate(
                f"{most} or more", (1, 0), (0, -30), xycoords="axes fraction", textcoords="offset points", ha="right"
            )
        _label_axes(axes, of, "queries")

    return render_svg("counts", draw, 2.6)


def overlaps(series: Mapping[str, NDArray[np.float64]]) -> str:
    """Draw how many queries share how much with their gold, and with documents by chance."""

    def draw(axes: Axes) -> None:
        known: Any = [values[~np.isnan(values)] for values in series.values()]
        axes.hist(known, bins=np.linspace(0, 1, 21).tolist(), color=SERIES[: len(known)], label=list(series))
        _label_axes(axes, "share of the query's words, by their IDF", "queries")
        legend(axes)

    return render_svg("overlaps", draw, 2.7)


def tally(names: Sequence[str], queries: Sequence[int]) -> str:
    """Draw the number of queries of each type."""

    def draw(axes: Axes) -> None:
        axes.barh(np.arange(len(names)), queries, 0.7, color=SERIES[0])
        label_rows(axes, [gist(name, 24) for name in names])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("queries")

    return render_svg("tally", draw, 0.7 + 0.26 * len(names))


def _label_axes(axes: Axes, across: str, up: str) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(axis="x", visible=False)
