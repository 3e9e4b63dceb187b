"""Load tests in a sweep: figures of each combination at each rate, and what the report of the sweep says about them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from runner.comparison.leaderboard import Leaderboard, LeaderboardRow
from runner.config.objects import ConfigError, build_settings
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.evaluation.report.tables import BANDS
from runner.evaluation.result import Result
from runner.features.load.load_test import run_load_test
from runner.features.load.report import draw_quality
from runner.features.load.settings import LoadSettings
from runner.pages import console
from runner.pages.explorer.figures import Plot
from runner.pages.numbers import milliseconds, number, percent, score, score4
from runner.pages.sections import ReportSection
from runner.pages.tables import Column, Table
from runner.statistics.selection import find_front

ENOUGH = 0.95
"""The recall of the exact ranking that an approximate index should keep."""

FIGURES = ("quality", "p50_ms", "p95_ms", "p99_ms", "failed", "timed_out")
"""The figures of a combination at a rate that the report shows."""

_P99 = re.compile(r"p99_ms_at_(.+)")
_RECALL = re.compile(r"index_recall_at_10(?:\.(.+))?")

Row = tuple[LeaderboardRow, Mapping[str, float]]
"""A combination and its figures."""

TestedRow = tuple[str, LeaderboardRow, Mapping[str, float], bool]
"""A rate, a combination, its `FIGURES` at this rate, and whether it is on their front of quality and p99."""


def measure_under_load(experiment: Experiment, bench: Bench) -> Mapping[str, float]:
    """Return the figures of a load test of a combination, each with its rate in its name."""
    if experiment.config.get("sweep", {}).get("backend", "sequential") != "sequential":
        raise ConfigError(
            "sweep.backend: combinations that are load-tested at the same time disturb each other; remove it"
        )
    own = build_settings(LoadSettings, experiment.features["load"], "load")
    result = run_load_test(experiment, bench, own, lambda text: console.note(f"{experiment.name}: {text}"))
    if result.stopped == "interrupted":
        raise KeyboardInterrupt
    return {name: value for name, value in result.list_figures().items() if not math.isnan(value)}


def iter_sweep_sections(board: Leaderboard, results: Sequence[Result]) -> Iterator[ReportSection]:
    """Yield combinations by rate with their Pareto front, and the cheapest settings of an approximate index."""
    rows = [(row, results[row.position].diagnostics) for row in board.rows]
    rates = sorted({match[1] for _, figures in rows for name in figures if (match := _P99.fullmatch(name))}, key=float)
    tested = [one for rate in rates for one in list_tested(rows, rate)]
    marks = [
        {"name": f"{row.rank}. {row.label}", "rate": f"{rate}/s", "label": row.rank, "x": figures["p99_ms"],
         "y": figures["quality"], "front": is_best}
        for rate, row, figures, is_best in tested
    ]  # fmt: skip
    text = "No other combination is both faster and better at a rate than those on its line; numbers are ranks."
    plot = Plot("load", f"{board.primary} under load against p99", text, draw_quality(marks, board.primary))
    note = f"{board.primary} under load is the mean over requests, with 0 for failed and late ones."
    table = build_rates_table(tested, board.primary)
    yield ReportSection("Under load", table, "leaderboard", note, printed="table", plot=plot if marks else None)
    cost = f"p99_ms_at_{rates[-1]}" if rates else "median_ms"
    title = f"p99 ms at {rates[-1]} requests/s" if rates else "query ms"
    note = f"The fastest combination whose index returns at least {ENOUGH:.0%} of the ten exact hits, by selectivity."
    table = build_recall_table(rows, cost, title)
    yield ReportSection(f"Cheapest settings with recall {ENOUGH:g}", table, "leaderboard", note, printed="table")


def list_tested(rows: Sequence[Row], rate: str) -> Iterator[TestedRow]:
    """Yield the combinations that were tested at a rate."""
    tested = [
        (row, {name: figures.get(f"{name}_at_{rate}", math.nan) for name in FIGURES})
        for row, figures in rows
        if f"p99_ms_at_{rate}" in figures
    ]
    points = np.array([(figures["p99_ms"], figures["quality"]) for _, figures in tested]).reshape(-1, 2)
    for (row, figures), is_best in zip(tested, find_front(points, [False, True]).tolist(), strict=True):
        yield rate, row, figures, is_best


def build_rates_table(tested: Sequence[TestedRow], primary: str) -> Table:
    """Return the combinations at each rate, those on the Pareto front of the rate marked."""
    columns = [
        Column("requests/s", numeric=True), Column("#", number, numeric=True), Column("combination", least=28),
        Column(f"{primary} under load", score4, numeric=True),
        *(Column(f"{name} ms", milliseconds, numeric=True) for name in ("p50", "p95", "p99")),
        *(Column(name, percent, numeric=True, spare=1) for name in ("failed", "late")), Column("front", spare=2),
    ]  # fmt: skip
    rows = [[rate, row.rank, row.label, *of.values(), "yes" if best else ""] for rate, row, of, best in tested]
    return Table(columns, rows)


def build_recall_table(rows: Sequence[Row], cost: str, title: str) -> Table:
    """Return, for the queries without filters or of each band of selectivity, the cheapest combination that suffices.

    Empty without an approximate index.
    """
    bands = {match[1] or "": name for _, of in rows for name in of if (match := _RECALL.fullmatch(name))}
    if len(bands) > 1:
        del bands[""]  # the mean over all bands
    columns = [
        Column("queries whose filter passes"),
        Column("cheapest combination", least=28),
        Column("recall", score, numeric=True),
        Column(title, milliseconds, numeric=True),
        Column("combinations below", number, numeric=True),
    ]
    content: list[list[object]] = []
    for band, name in bands.items():
        indexed = [(row, of[name], of.get(cost, row.means.get(cost, math.nan))) for row, of in rows if name in of]
        enough = [(price, row.rank, row.label, recall) for row, recall, price in indexed if recall >= ENOUGH]
        below = len(indexed) - len(enough)
        price, _, label, recall = min(enough, default=(math.nan, 0, "none", math.nan))
        content.append([BANDS.get(band, "all"), label, recall, price, below])
    return Table(columns, content)
