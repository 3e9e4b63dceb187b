"""A sweep as one self-contained HTML file; the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from runner.comparison.labels import format_setting
from runner.comparison.leaderboard import Leaderboard
from runner.comparison.search import Search
from runner.reports.evaluation import tables as result_tables
from runner.reports.evaluation.page import curves
from runner.reports.rendering.page import Figure, figure, render
from runner.reports.sweep import difficulty, selection, tables
from runner.result import Result


def sweep_page(board: Leaderboard, results: Sequence[Result]) -> str:
    """Return the page of a sweep; `results` are those that the leaderboard was built from, in the same order."""
    return render(
        "sweep.html.jinja",
        board=board,
        results=results,
        format_setting=format_setting,
        sweep_tables=tables,
        selection=selection,
        tables=result_tables,
        difficulty=difficulty,
        figures=list(_sweep_figures(board, results)),
    )


def _sweep_figures(board: Leaderboard, results: Sequence[Result]) -> Iterator[Figure]:
    if len(board.rows) < 2 or np.isnan(board.rows[0].mean):
        return
    from runner.reports.rendering import charts
    from runner.reports.sweep import plots

    if board.search is not None:
        yield from _search_figures(board.search)
    text = "Grey: significantly different from the best. The band is the interval of the best."
    yield figure("Uncertainty of the means", text, plots.intervals(board))
    if tables.pareto_table(board).rows:
        text = "No other combination is both faster and better than one on the line; numbers are ranks."
        yield figure("Quality against time", text, plots.quality_and_latency(board), tables.pareto_table(board))
    yield from _settings_figure(board)
    other = board.rival
    if other is not None:
        best = board.rows[0]
        values = results[best.position].of(board.primary) - results[other.position].of(board.primary)
        text = (
            f"{best.label} against {other.label}: better on {other.losses:,} queries, "
            f"equal on {other.ties:,}, worse on {other.wins:,}."
        )
        if not np.isnan(values).all():
            yield figure("Query by query", text, plots.differences(values, board.primary))
    few = {f"{row.rank}. {row.label}": results[row.position] for row in board.finalists}
    name = board.primary.rpartition("@")[0] or "R"
    families = {
        label: (result_tables.by_cutoff(result.measures).get(name, {}), result.means) for label, result in few.items()
    }
    series = curves(families)
    if series:
        text = f"{name} of {tables.FINALISTS_ARE}."
        yield figure("By cutoff", text, charts.curves(series, name))
    by_type = tables.finalists_by_type(board, results)
    if by_type.rows:
        types = [column.title for column in by_type.columns[3:]]
        bars = {f"{rank}. {label}": means for rank, label, _, *means in by_type.rows}
        text = f"{board.primary} of {tables.FINALISTS_ARE}."
        yield figure("By query type", text, charts.bars(types, bars), by_type)


def _search_figures(search: Search) -> Iterator[Figure]:
    from runner.reports.rendering import charts
    from runner.reports.sweep import plots

    if len(search.objectives) > 1 and search.front:
        text = (
            "No other combination is at least as good as one of these in all objectives and better in one. Grey: "
            "the other trials."
        )
        yield figure("Pareto front", text, plots.front(search), selection.front_table(search))
    if len(search.done) > 1:
        text = f"{search.objectives[0].name} of each trial in order; the line is the best so far."
        yield figure("Progress of the search", text, plots.history(search))
    shares = selection.importances_table(search)
    if shares.rows:
        objective = search.objectives[0].name
        groups = {group or "all": shares_of for group, shares_of in search.importances.get(objective, {}).items()}
        settings = list(dict.fromkeys(setting for shares_of in groups.values() for setting in shares_of))
        bars = {group: [shares_of.get(name) for name in settings] for group, shares_of in groups.items()}
        text = f"The share of the variance of {objective} over the trials that each setting explains (fANOVA)."
        yield figure("Importance of settings", text, charts.bars(settings, bars), shares)


def _settings_figure(board: Leaderboard) -> Iterator[Figure]:
    from runner.reports.sweep import plots

    keys = tables.numeric_settings(board)
    if len(keys) == 1:
        text = f"The mean {board.primary} over all other swept settings."
        yield figure("The swept setting", text, plots.lines(board, keys[0]))
    elif len(keys) == 2:
        text = f"The mean {board.primary} of each pair; the best is framed."
        svg = plots.heatmap(board, *keys)
        if svg:
            yield figure("The swept settings", text, svg)
