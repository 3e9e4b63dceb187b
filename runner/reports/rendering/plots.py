"""What plots are made of: SVG that takes its colours from the page it stands in, light or dark.

Text stays text. Imports matplotlib, so that whoever draws imports this, and no one else. Knows nothing of pages, nor of
what is drawn.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from io import StringIO
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from runner.reports.rendering.numbers import gist

INK, MUTED, LINE, GOOD, BAD = (f"#0000a{i}" for i in range(5))
SERIES = [f"#0000b{i}" for i in range(8)]
"""Stand-ins for the page's colours, which `_as_svg` puts in their place."""

MARKERS = "osD^vPX*"
"""Those of matplotlib, one for each of the colours of series."""

_VARIABLES = {INK: "currentColor", MUTED: "var(--muted)", LINE: "var(--line)", GOOD: "var(--good)", BAD: "var(--bad)"}
_VARIABLES |= {color: f"var(--series-{i})" for i, color in enumerate(SERIES)}

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a query or a name may hold a dollar
    "text.color": INK,
    "font.size": 10,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": LINE,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
WIDTH = 5.0
"""Inches. At 72 points an inch the text can still be read when the plot is as narrow as a phone."""


def render_svg(name: str, draw: Callable[[Axes], None], height: float, tips: Mapping[str, str] | None = None) -> str:
    """Return what a function draws, as SVG; `tips` are what its parts, by their id, say under the pointer."""
    file = StringIO()
    style: Any = STYLE | {"svg.hashsalt": name}
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's browser has the fonts, not this machine
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure.subplots())
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _as_svg(name, file.getvalue(), tips or {})


def _as_svg(name: str, text: str, tips: Mapping[str, str]) -> str:
    """Return matplotlib's file as a part of a page: no header, colours and fonts of the page, ids of its own."""
    text = text[text.index("<svg") :]
    view = re.search(r'viewBox="[^"]*"', text)
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"<svg[^>]*>", f'<svg {view[0] if view else ""} role="img">', text, count=1)
    text = re.sub(r"font: (?:[a-z]+ )*([\d.]+px)[^;\"]*", r"font-size: \1", text)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    text = re.sub(r"#0000[ab][0-9]", lambda color: _VARIABLES.get(color[0], color[0]), text)
    text = re.sub(r'<g id="(tip-[^"]*)">', lambda g: f"<g><title>{escape(tips.get(g[1], ''))}</title>", text)
    text = re.sub(r'<g id="[^"]*">', "<g>", text)
    return re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", text)


def marking(i: int) -> dict[str, Any]:
    """Return the colour and the marker of a series: no two of eight differ by colour alone."""
    return {"color": SERIES[i % len(SERIES)], "marker": MARKERS[i % len(MARKERS)], "markersize": 5, "linewidth": 1.6}


def label_rows(axes: Axes, names: Sequence[str]) -> None:
    """Make the y-axis a list of names, the first on top."""
    axes.set_yticks(range(len(names)), names, color=INK)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)


def legend(axes: Axes) -> None:
    """Name the series above the plot, in two columns if there is room, and make the figure as much higher."""
    figure = axes.get_figure()
    handles, labels = axes.get_legend_handles_labels()
    columns = 2 if max(map(len, labels)) <= 28 else 1
    names = [gist(label, 56) for label in labels]
    if isinstance(figure, Figure):
        figure.legend(handles, names, loc="outside upper left", ncols=columns, handlelength=1.4)
        figure.set_figheight(figure.get_figheight() + 0.19 * math.ceil(len(labels) / columns))


def log_axis(axes: Axes, values: Sequence[float]) -> None:
    """Make the x-axis logarithmic, with ticks at the values if they are few, and plain numbers."""
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if len(set(values)) <= 8 and all(isinstance(value, int) for value in values):
        axes.set_xticks(sorted(set(values)))
    else:  # of more than two and a half decades, the labels of three ticks each would run into each other
        few = max(values) > 300 * min(values)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if few else (1.0, 2.0, 5.0)))


def label_apart(axes: Axes, points: Sequence[tuple[float, float, str]]) -> None:
    """Write labels beside points, but for those too near one that has its label already."""
    places: list[tuple[float, float]] = []
    for x, y, text in points:
        place = axes.transData.transform((x, y))
        if all(math.dist(place, other) > 16 for other in places):
            places.append((float(place[0]), float(place[1])))
            axes.annotate(text, (x, y), (-5, 5), textcoords="offset points", ha="right")
