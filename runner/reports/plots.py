"""Plots of results as SVG that takes its colours from the page it stands in, light or dark.

Text stays text. Imports matplotlib, so that whoever draws imports this, and no one else. Knows nothing of pages.
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
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from runner.reports import numbers, sweep_tables
from runner.reports.leaderboard import Leaderboard, Row
from runner.reports.selection import Search

INK, MUTED, LINE, GOOD, BAD = (f"#0000a{i}" for i in range(5))
SERIES = [f"#0000b{i}" for i in range(8)]
MARKERS = "osD^vPX*"
"""Stand-ins for the page's colours, which `_as_svg` puts in their place."""

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


def curves(series: Mapping[str, Mapping[int, float]], measure: str = "") -> str:
    """Draw measures against their cutoff, a line each."""

    def draw(axes: Axes) -> None:
        for i, (label, values) in enumerate(series.items()):
            axes.plot(list(values), list(values.values()), label=label, **marking(i))
        cutoffs = sorted({cutoff for values in series.values() for cutoff in values})
        _log_axis(axes, cutoffs)
        axes.set_xlabel("cutoff")
        axes.set_ylabel(measure)
        axes.set_ylim(0, 1.05 * max((value for values in series.values() for value in values.values()), default=1) or 1)
        legend(axes)

    return drawn("curves", draw, 3.0)


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

    return drawn("queries", draw, 2.9)


def intervals(board: Leaderboard, top: int = 25) -> str:
    """Draw the means of the best combinations with their intervals, those that differ from the best in grey."""
    rows = [row for row in board.rows if not math.isnan(row.mean)][:top]

    def draw(axes: Axes) -> None:
        axes.axvspan(rows[0].low, rows[0].high, color=SERIES[0], alpha=0.1, linewidth=0)
        for i, row in enumerate(rows):
            color = MUTED if row.differs else SERIES[0]
            axes.plot([row.low, row.high], [i, i], color=color, linewidth=1.6, solid_capstyle="round", gid=_tip(row))
            axes.plot([row.mean], [i], "o", color=color, markersize=5, gid=_tip(row))
        named_rows(axes, [f"{row.rank}. {_short(row.label)}" for row in rows])
        axes.set_xlabel(f"{board.primary} with its {numbers.interval_title(board.confidence)}")

    return drawn("intervals", draw, 0.8 + 0.23 * len(rows), _tips(board, rows))


def quality_and_latency(board: Leaderboard) -> str:
    """Draw the primary measure against the time of a query (log), with the front of those worth their time."""
    rows = [r for r in board.rows if not (numbers.missing(r.means.get("median_ms")) or math.isnan(r.mean))]
    front = sweep_tables.pareto(board)
    retrievers = list(dict.fromkeys(row.retriever for row in board.rows))

    def draw(axes: Axes) -> None:
        axes.plot([r.means["median_ms"] for r in front], [r.mean for r in front], color=MUTED, linewidth=1, zorder=1)
        seen: set[str] = set()
        for row in rows:
            i = retrievers.index(row.retriever)
            label = "" if row.retriever in seen else row.retriever
            seen.add(row.retriever)
            alpha = 1 if row in front else 0.45
            mark = marking(i) | {"linestyle": "none", "alpha": alpha, "gid": _tip(row), "label": label}
            axes.plot([row.means["median_ms"]], [row.mean], **mark)
        axes.margins(0.08, 0.1)
        _log_axis(axes, [row.means["median_ms"] for row in rows])
        _label_apart(axes, [(row.means["median_ms"], row.mean, str(row.rank)) for row in reversed(front)])
        axes.set_xlabel("milliseconds a query, asked alone (median)")
        axes.set_ylabel(board.primary)
        if len(retrievers) > 1:
            legend(axes)

    return drawn("latency", draw, 3.4, _tips(board, rows)) if rows else ""


def history(search: Search) -> str:
    """Draw the first objective of a search's trials in order, and the best so far."""
    places = [trial.number + 1 for trial in search.done]
    steps = search.best_so_far()

    def draw(axes: Axes) -> None:
        axes.plot(places, [trial.values[0] for trial in search.done], "o", color=MUTED, markersize=4, alpha=0.6)
        best = [*(value for _, value in steps), steps[-1][1]]
        axes.step(
            [*(number + 1 for number, _ in steps), places[-1]], best, where="post", color=SERIES[0], linewidth=1.6
        )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("trial")
        axes.set_ylabel(search.objectives[0].name)

    return drawn("history", draw, 3.0)


def front(search: Search) -> str:
    """Draw the first two objectives of a search's trials, with the Pareto front as it was selected."""
    up, across, *others = search.objectives
    points = sorted((point.selected[1], point.selected[0], str(point.rank)) for point in search.front)
    seen = [trial.values[1] for trial in search.done]

    def draw(axes: Axes) -> None:
        axes.plot(seen, [trial.values[0] for trial in search.done], "o", color=MUTED, markersize=4, alpha=0.45)
        mark = marking(0) | ({"linestyle": "none"} if others else {})  # of more than two, what is seen is no line
        axes.plot([x for x, _, _ in points], [y for _, y, _ in points], **mark)
        axes.margins(0.08, 0.1)
        if not across.larger and min(seen) > 0:
            _log_axis(axes, seen)
        _label_apart(axes, points)
        axes.set_xlabel(f"{across.name} ({'more' if across.larger else 'less'} is better)")
        axes.set_ylabel(up.name)

    return drawn("front", draw, 3.4)


def bars(classes: Sequence[str], series: Mapping[str, Sequence[float | None]], measure: str = "") -> str:
    """Draw values by class, a bar for each series."""

    def draw(axes: Axes) -> None:
        height = 0.8 / len(series)
        for i, (label, values) in enumerate(series.items()):
            places = np.arange(len(classes)) - 0.4 + height * (i + 0.5)
            lengths = [math.nan if value is None else value for value in values]
            axes.barh(places, lengths, height * 0.86, color=SERIES[i % len(SERIES)], label=label)
        named_rows(axes, [_short(text, 24) for text in classes])
        axes.set_xlabel(measure)
        legend(axes)

    return drawn("types", draw, 0.7 + len(classes) * (0.12 + 0.14 * len(series)))


def differences(values: NDArray[np.float64], measure: str) -> str:
    """Draw the differences between two systems, query by query, in order of size."""
    ordered = np.sort(values[~np.isnan(values)])[::-1]
    places = np.arange(len(ordered) + 1)

    def draw(axes: Axes) -> None:
        for color, part in ((GOOD, np.maximum(ordered, 0)), (BAD, np.minimum(ordered, 0))):
            axes.fill_between(places, np.append(part, part[-1]), step="post", color=color, linewidth=0)
        axes.axhline(0, color=MUTED, linewidth=0.8)
        mean = float(ordered.mean())
        axes.axhline(mean, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            f"mean {mean:+.4f}", (1, mean), (-2, 3), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="right",
        )  # fmt: skip
        reach = max(float(np.abs(ordered).max()), 0.01) * 1.1
        axes.set_ylim(-reach, reach)
        axes.set_xlim(0, len(ordered))
        axes.set_xlabel("queries, in order of the difference")
        axes.set_ylabel(f"difference in {measure}")

    return drawn("differences", draw, 3.0)


def heatmap(board: Leaderboard, across: str, down: str) -> str:
    """Draw the mean of the primary measure for two swept numbers, the better the deeper."""
    cells: dict[tuple[float, float], list[float]] = {}
    for row in board.rows:
        x, y = (sweep_tables.as_number(row.swept.get(key)) for key in (across, down))
        if x is not None and y is not None and not math.isnan(row.mean):
            cells.setdefault((x, y), []).append(row.mean)
    means = {place: sum(values) / len(values) for place, values in cells.items()}
    if not means:
        return ""
    xs, ys = sorted({x for x, _ in means}), sorted({y for _, y in means})
    low, high = min(means.values()), max(means.values())

    def draw(axes: Axes) -> None:
        for (x, y), mean in means.items():
            i, j = xs.index(x), ys.index(y)
            depth = (mean - low) / (high - low) if high > low else 0.5
            axes.add_patch(Rectangle((i - 0.48, j - 0.46), 0.96, 0.92, color=SERIES[0], alpha=0.04 + 0.5 * depth, lw=0))
            if len(xs) <= 8:
                axes.annotate(f"{mean:.3f}", (i, j), ha="center", va="center")
            if mean == high:
                axes.add_patch(Rectangle((i - 0.48, j - 0.46), 0.96, 0.92, fill=False, edgecolor=INK, linewidth=1.4))
        axes.set_xlim(-0.5, len(xs) - 0.5)
        axes.set_ylim(-0.5, len(ys) - 0.5)
        axes.set_xticks(range(len(xs)), [f"{x:g}" for x in xs])
        axes.set_yticks(range(len(ys)), [f"{y:g}" for y in ys])
        axes.set_xlabel(across)
        axes.set_ylabel(down)
        axes.grid(visible=False)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)

    return drawn("settings", draw, 1.0 + 0.42 * len(ys))


def lines(board: Leaderboard, key: str) -> str:
    """Draw the mean of the primary measure against a swept number, a line for each retriever."""
    found: dict[str, dict[float, list[float]]] = {}
    for row in board.rows:
        x = sweep_tables.as_number(row.swept.get(key))
        if x is not None and not math.isnan(row.mean):
            found.setdefault(row.retriever, {}).setdefault(x, []).append(row.mean)

    def draw(axes: Axes) -> None:
        for i, (retriever, values) in enumerate(found.items()):
            xs = sorted(values)
            axes.plot(xs, [sum(values[x]) / len(values[x]) for x in xs], label=retriever, **marking(i))
        axes.set_xlabel(key)
        axes.set_ylabel(board.primary)
        if len(found) > 1:
            legend(axes)

    return drawn("settings", draw, 3.2)


def drawn(name: str, draw: Callable[[Axes], None], height: float, tips: Mapping[str, str] | None = None) -> str:
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
    text = re.sub(r"<svg[^>]*>", f'<svg {view[0] if view else ""} role="img" aria-label="{name}">', text, count=1)
    text = re.sub(r"font: (?:[a-z]+ )*([\d.]+px)[^;\"]*", r"font-size: \1", text)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    text = re.sub(r"#0000[ab][0-9]", lambda color: _VARIABLES.get(color[0], color[0]), text)
    text = re.sub(r'<g id="(tip-[^"]*)">', lambda g: f"<g><title>{escape(tips.get(g[1], ''))}</title>", text)
    text = re.sub(r'<g id="[^"]*">', "<g>", text)
    return re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", text)


def _tip(row: Row) -> str:
    return f"tip-{row.rank}"


def _tips(board: Leaderboard, rows: Sequence[Row]) -> dict[str, str]:
    return {_tip(r): f"{r.rank}. {r.label}: {board.primary} {numbers.score4(r.mean)}" for r in rows}


def marking(i: int) -> dict[str, Any]:
    """Return the colour and the marker of a series: no two of eight differ by colour alone."""
    return {"color": SERIES[i % len(SERIES)], "marker": MARKERS[i % len(MARKERS)], "markersize": 5, "linewidth": 1.6}


def named_rows(axes: Axes, names: Sequence[str]) -> None:
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
    names = [_short(label, 56) for label in labels]
    if isinstance(figure, Figure):
        figure.legend(handles, names, loc="outside upper left", ncols=columns, handlelength=1.4)
        figure.set_figheight(figure.get_figheight() + 0.19 * math.ceil(len(labels) / columns))


def _log_axis(axes: Axes, values: Sequence[float]) -> None:
    """Make the x-axis logarithmic, with ticks at the values if they are few, and plain numbers."""
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if len(set(values)) <= 8 and all(isinstance(value, int) for value in values):
        axes.set_xticks(sorted(set(values)))
    else:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))


def _label_apart(axes: Axes, points: Sequence[tuple[float, float, str]]) -> None:
    """Write labels beside points, but for those too near one that has its label already."""
    places: list[tuple[float, float]] = []
    for x, y, text in points:
        place = axes.transData.transform((x, y))
        if all(math.dist(place, other) > 16 for other in places):
            places.append((float(place[0]), float(place[1])))
            axes.annotate(text, (x, y), (-5, 5), textcoords="offset points", ha="right")


def _short(label: str, size: int = 30) -> str:
    return numbers.gist(label, size)
