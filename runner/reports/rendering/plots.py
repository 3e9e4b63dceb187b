"""What plots are made of: SVG that takes its colours from the page it stands in, light or dark.

Text stays text. Imports matplotlib, so that whoever draws imports this, and no one else. Knows nothing of pages, nor of
what is drawn.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.reports.rendering.numbers import gist

INK, MUTED, LINE = (f"#0000a{i}" for i in range(3))
SERIES = [f"#0000b{i}" for i in range(8)]
"""Stand-ins for the page's colours, which `_as_svg` puts in their place."""

_VARIABLES = {INK: "currentColor", MUTED: "var(--muted)", LINE: "var(--line)"}
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


def render_svg(name: str, draw: Callable[[Axes], None], height: float) -> str:
    """Return what a function draws, as SVG."""
    file = StringIO()
    style: Any = STYLE | {"svg.hashsalt": name}
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's browser has the fonts, not this machine
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure.subplots())
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _as_svg(name, file.getvalue())


def _as_svg(name: str, text: str) -> str:
    """Return matplotlib's file as a part of a page: no header, colours and fonts of the page, ids of its own."""
    text = text[text.index("<svg") :]
    view = re.search(r'viewBox="[^"]*"', text)
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"<svg[^>]*>", f'<svg {view[0] if view else ""} role="img">', text, count=1)
    text = re.sub(r"font: (?:[a-z]+ )*([\d.]+px)[^;\"]*", r"font-size: \1", text)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    text = re.sub(r"#0000[ab][0-9]", lambda color: _VARIABLES.get(color[0], color[0]), text)
    text = re.sub(r'<g id="[^"]*">', "<g>", text)
    return re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", text)


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
