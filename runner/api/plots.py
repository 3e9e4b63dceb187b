"""Figures of results for notebooks. Matplotlib draws them, and is loaded only then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from retrievers.extras import MissingPackageError, is_installed
from runner.comparison.leaderboard import Leaderboard
from runner.evaluation.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 25
"""The largest number of combinations in a figure, the best ones."""


def plot_leaderboards(boards: Sequence[Leaderboard]) -> Figure:
    """Return the means of the best combinations with their intervals, the best on top, one panel for each dataset.

    Those that do not differ significantly from the best are filled. Raises `MissingPackageError` without Matplotlib.
    """
    shown = [board.rows[:MOST] for board in boards]
    height = 1.2 + 0.28 * max(map(len, shown), default=1)
    figure, panels = _open_figure(max(len(boards), 1), height)
    for panel, board, rows in zip(panels, boards, shown, strict=False):
        for place, row in enumerate(rows):
            errors = [[row.mean - row.low], [row.high - row.mean]]
            filled = "none" if row.difference.significant else None
            panel.errorbar(row.mean, place, xerr=errors, fmt="o", color="C0", mfc=filled, capsize=2)
        panel.set_yticks(range(len(rows)), board.labels[: len(rows)])
        panel.invert_yaxis()
        panel.set_xlabel(f"{board.primary}, {board.statistics.confidence * 100:g}% intervals")
        panel.set_title(board.dataset.name if board.dataset else "")
    return figure


def plot_queries(result: Result) -> Figure:
    """Return how many queries have which value of the primary measure; raises `MissingPackageError` as above."""
    figure, (panel,) = _open_figure(1, 3.0)
    values = result.of(result.primary)
    values = values[~np.isnan(values)]
    panel.hist(values, bins=20, range=(min(0.0, values.min(initial=0.0)), max(1.0, values.max(initial=1.0))))
    panel.axvline(float(values.mean()) if len(values) else 0.0, color="C1", label=f"mean of {len(values):,} queries")
    panel.set_xlabel(result.primary)
    panel.set_ylabel("queries")
    panel.set_title(f"{result.name} on {result.dataset.name}")
    panel.legend()
    return figure


def _open_figure(panels: int, height: float) -> tuple[Figure, Sequence]:  # type: ignore[type-arg]  # of axes
    """Return a figure with panels side by side, which a notebook shows once: where it is the value of a cell."""
    if not is_installed("matplotlib"):
        raise MissingPackageError("plot: needs Matplotlib, which is not installed; run pip install matplotlib")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, panels, figsize=(6.4 * panels, height), layout="constrained", squeeze=False)
    pyplot.close(figure)
    return figure, list(axes[0])
