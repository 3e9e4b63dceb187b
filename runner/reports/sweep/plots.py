"""Plots of a sweep: means and intervals, quality against time, effects of settings, and the search.

This module imports matplotlib; import it only to draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from runner.comparison.leaderboard import Leaderboard, LeaderboardRow
from runner.comparison.search import Search
from runner.reports.rendering import numbers
from runner.reports.rendering.charts import steps
from runner.reports.rendering.plots import (
    INK,
    MUTED,
    SERIES,
    label_apart,
    label_rows,
    legend,
    log_axis,
    marking,
    render_svg,
)
from runner.reports.sweep import tables


def intervals(board: Leaderboard, top: int = 25) -> str:
    """Draw the means of the best combinations with their intervals; grey: significantly different from the best."""
    rows = [row for row in board.rows if not math.isnan(row.mean)][:top]

    def draw(axes: Axes) -> None:
        axes.axvspan(rows[0].low, rows[0].high, color=SERIES[0], alpha=0.1, linewidth=0)
        for i, row in enumerate(rows):
            color = MUTED if row.differs else SERIES[0]
            axes.plot([row.low, row.high], [i, i], color=color, linewidth=1.6, solid_capstyle="round", gid=_tip(row))
            axes.plot([row.mean], [i], "o", color=color, markersize=5, gid=_tip(row))
        label_rows(axes, [f"{row.rank}. {numbers.gist(row.label, 30)}" for row in rows])
        axes.set_xlabel(f"{board.primary} with its {numbers.interval_title(board.confidence, board.units)}")

    return render_svg("intervals", draw, 0.8 + 0.23 * len(rows), _tips(board, rows))


def quality_and_latency(board: Leaderboard) -> str:
    """Draw the primary measure against the time per query (log), with the Pareto front."""
    rows = [r for r in board.rows if not (numbers.missing(r.means.get("median_ms")) or math.isnan(r.mean))]
    front = board.find_front()
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
        log_axis(axes, [row.means["median_ms"] for row in rows])
        label_apart(axes, [(row.means["median_ms"], row.mean, str(row.rank)) for row in reversed(front)])
        axes.set_xlabel("milliseconds per single query (median)")
        axes.set_ylabel(board.primary)
        if len(retrievers) > 1:
            legend(axes)

    return render_svg("latency", draw, 3.4, _tips(board, rows)) if rows else ""


def history(search: Search) -> str:
    """Draw the first objective of the trials in order, and the best so far."""
    places = [trial.number + 1 for trial in search.done]
    steps = search.list_improvements()

    def draw(axes: Axes) -> None:
        axes.plot(places, [trial.values[0] for trial in search.done], "o", color=MUTED, markersize=4, alpha=0.6)
        best = [*(value for _, value in steps), steps[-1][1]]
        axes.step(
            [*(number + 1 for number, _ in steps), places[-1]], best, where="post", color=SERIES[0], linewidth=1.6
        )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("trial")
        axes.set_ylabel(search.objectives[0].name)

    return render_svg("history", draw, 3.0)


def front(search: Search) -> str:
    """Draw the first two objectives of the trials, with the Pareto front where it was selected."""
    up, across, *others = search.objectives
    points = sorted((point.selected[1], point.selected[0], str(point.rank)) for point in search.front)
    seen = [trial.values[1] for trial in search.done]

    def draw(axes: Axes) -> None:
        axes.plot(seen, [trial.values[0] for trial in search.done], "o", color=MUTED, markersize=4, alpha=0.45)
        mark = marking(0) | ({"linestyle": "none"} if others else {})  # with more than two, the front is not a line
        axes.plot([x for x, _, _ in points], [y for _, y, _ in points], **mark)
        axes.margins(0.08, 0.1)
        if not across.larger and min(seen) > 0:
            log_axis(axes, seen)
        label_apart(axes, points)
        axes.set_xlabel(f"{across.name} ({'more' if across.larger else 'less'} is better)")
        axes.set_ylabel(up.name)

    return render_svg("front", draw, 3.4)


def differences(values: NDArray[np.float64], measure: str) -> str:
    """Draw the differences between two systems, query by query, in order of size."""

    def draw(axes: Axes) -> None:
        mean = steps(axes, values, measure)
        axes.annotate(
            f"mean {mean:+.4f}", (1, mean), (-2, 3), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="right",
        )  # fmt: skip
        axes.set_xlabel("queries, in order of the difference")

    return render_svg("differences", draw, 3.0)


def heatmap(board: Leaderboard, across: str, down: str) -> str:
    """Draw the mean of the primary measure for two swept numbers, the better the deeper."""
    cells: dict[tuple[float, float], list[float]] = {}
    for row in board.rows:
        x, y = (tables.as_number(row.swept.get(key)) for key in (across, down))
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

    return render_svg("settings", draw, 1.0 + 0.42 * len(ys))


def lines(board: Leaderboard, key: str) -> str:
    """Draw the mean of the primary measure against a swept number, a line for each retriever."""
    means_of: dict[str, dict[float, list[float]]] = {}
    for row in board.rows:
        x = tables.as_number(row.swept.get(key))
        if x is not None and not math.isnan(row.mean):
            means_of.setdefault(row.retriever, {}).setdefault(x, []).append(row.mean)

    def draw(axes: Axes) -> None:
        for i, (retriever, values) in enumerate(means_of.items()):
            xs = sorted(values)
            axes.plot(xs, [sum(values[x]) / len(values[x]) for x in xs], label=retriever, **marking(i))
        axes.set_xlabel(key)
        axes.set_ylabel(board.primary)
        if len(means_of) > 1:
            legend(axes)

    return render_svg("settings", draw, 3.2)


def _tip(row: LeaderboardRow) -> str:
    return f"tip-{row.rank}"


def _tips(board: Leaderboard, rows: Sequence[LeaderboardRow]) -> dict[str, str]:
    return {_tip(r): f"{r.rank}. {r.label}: {board.primary} {numbers.score4(r.mean)}" for r in rows}
