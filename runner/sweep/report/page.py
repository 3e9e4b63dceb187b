"""A sweep as one self-contained HTML file; the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from retrievers.base import Corpus
from runner.comparison.insights import Insights
from runner.comparison.labels import format_setting
from runner.comparison.leaderboard import Leaderboard
from runner.comparison.search import Search
from runner.comparison.swept_settings import measure_effects
from runner.config.report import Texts
from runner.evaluation.report import tables as result_tables
from runner.evaluation.report.page import curves
from runner.evaluation.report.rankings import build_field_columns, build_rankings, describe_length, list_queries
from runner.evaluation.result import QueryTable, Result
from runner.pages.explorer import specs
from runner.pages.explorer.data import DataColumn
from runner.pages.explorer.figures import Plot
from runner.pages.explorer.page import render_explorer
from runner.pages.explorer.place import FILE, PagePlace
from runner.pages.numbers import interval_title
from runner.sweep.report import selection, tables
from runner.sweep.report import specs as sweep_specs
from runner.sweep.report.columns import build_columns
from runner.sweep.report.difficulty import hardest_note
from runner.sweep.report.recommendation import describe_recommendation
from runner.sweep.report.sections import iter_sections

TEMPLATE = Path(__file__).with_name("page.html.jinja")

STATIC_ROWS = 200
"""Most rows of the leaderboard that can be read without a script."""

HARDEST = 25
"""Most of the hardest queries that can be read without a script."""

SNIPPET = 600
"""Most characters of a document, unless the page contains full texts."""

INTERVALS = 25
"""Most combinations whose intervals are drawn."""


def sweep_page(
    board: Leaderboard,
    results: Sequence[Result],
    place: PagePlace = FILE,
    best: Mapping[int, Result] = MappingProxyType({}),
    corpus: Corpus | None = None,
    insight: Insights = Insights(),  # noqa: B008 (immutable)
    texts: Texts = "snippets",
) -> str:
    """Return the page of a sweep; `results` are those that the leaderboard was built from, in the same order.

    `best` are results with their rankings, by rank, whose hits are shown; `corpus` has the texts of the documents, and
    `insight` the misses of the first.
    """
    columns = build_columns(board, results)
    figures, query_figures = list(_list_plots(board, results, columns)), list(_list_query_plots(board))
    ranked = [results[row.position] for row in board.rows]
    scores = np.stack([result.of(board.primary) for result in ranked]) if ranked else np.empty((0, 0))
    return render_explorer(
        TEMPLATE,
        _build_data(board, ranked, columns, [*figures, *query_figures], place)
        | _build_hits(board, best, corpus, insight, texts),
        place,
        iter_sections(board, results, insight, HARDEST),
        scores,
        board=board,
        advice=describe_recommendation(board),
        format_setting=format_setting,
        sweep_tables=tables,
        queries_note=hardest_note(results, board.primary),
        figures=figures,
        query_figures=query_figures,
        limit=STATIC_ROWS,
    )


def _build_data(
    board: Leaderboard,
    ranked: Sequence[Result],
    columns: Sequence[DataColumn],
    plots: Sequence[Plot],
    place: PagePlace,
) -> dict[str, Any]:
    queries = ranked[0].queries if ranked else None
    overrides = [" ".join(f"{key}={format_setting(value)}" for key, value in row.swept.items()) for row in board.rows]
    rival = board.rival
    return {
        "kind": "sweep",
        "primary": board.primary,
        "columns": [column.to_dict() for column in columns],
        "plots": [plot.to_dict() for plot in plots],
        **list_queries(queries),
        "slices": {} if queries is None else _list_slices(queries),
        "losses": _list_losses(ranked),
        "finalists": [row.rank - 1 for row in board.finalists],
        "rival": 0 if rival is None else rival.rank - 1,
        "commands": overrides,
        "comparing": " ".join(tables.list_compare_overrides(board, place.overrides)),
        **place.describe_runs([result.config for result in ranked], [row.run for row in board.rows]),
        "noise": board.detectable,
    }


def _list_losses(ranked: Sequence[Result]) -> dict[str, Any]:
    """Return the steps that lose gold, and how much each of them loses in each result; null if it is not known."""
    counts = [None if result.losses is None else result.losses.counts for result in ranked]
    steps = list(dict.fromkeys(step for own in counts if own for step, lost in own.items() if lost))
    return {"steps": steps, "counts": [None if own is None else [own.get(step, 0) for step in steps] for own in counts]}


def _list_slices(queries: QueryTable) -> dict[str, list[str]]:
    """Return the groups of queries, by name: types, lengths and other fields, if there are two or more of each."""
    slices = {
        "type": list(queries.types),
        "length": [describe_length(text) for text in queries.texts],
        **{column.name: list(column.values) for column in build_field_columns(queries)},
    }
    return {name: values for name, values in slices.items() if len(set(values)) > 1}


def _build_hits(
    board: Leaderboard, best: Mapping[int, Result], corpus: Corpus | None, insight: Insights, texts: Texts
) -> dict[str, Any]:
    if not best:
        return {}
    labels = {row.rank: row.label for row in board.rows}
    names = [f"{rank}. {labels[rank]}" for rank in best]
    rankings = build_rankings(list(best.values()), names, corpus, [insight] if 1 in best else [], texts, SNIPPET)
    for system, rank in zip(rankings["systems"], best, strict=True):
        system["row"] = rank - 1
    return rankings


def _is_compared(board: Leaderboard) -> bool:
    return len(board.rows) > 1 and not np.isnan(board.rows[0].mean)


def _list_plots(board: Leaderboard, results: Sequence[Result], columns: Sequence[DataColumn]) -> Iterator[Plot]:
    if not _is_compared(board):
        return
    if board.search is not None:
        yield from _list_search_plots(board.search)
    costs = [column for column in columns if column.kind == "cost" and any(value > 0 for value in column.values)]
    if costs:
        front, ids = tables.pareto_table(board, costs[0].name), [column.id for column in costs]
        text = "No other combination is both cheaper and better than one on the line; numbers are ranks."
        if np.isfinite(board.detectable):
            text += f" The tests detect a difference of {board.detectable:.4f} with a power of 0.8."
        spec = sweep_specs.build_tradeoff(board.primary)
        yield Plot("tradeoff", "Quality against cost", text, spec, front if front.rows else None, {"cost": ids})
    text = "Grey: significantly different from the best."
    title = f"{board.primary} with its {interval_title(board.statistics.confidence, board.units)}"
    yield Plot("intervals", "Uncertainty of the means", text, sweep_specs.build_intervals(title, INTERVALS))
    yield from _list_setting_plots(board, columns)
    yield from _list_importance_plots(board, results)
    name = board.primary.rpartition("@")[0] or "R"
    few = {f"{row.rank}. {row.label}": results[row.position] for row in board.finalists}
    series = curves(
        {label: (result_tables.by_cutoff(of.measures).get(name, {}), of.means) for label, of in few.items()}
    )
    if series:
        yield Plot("cutoffs", "By cutoff", f"{name} of {tables.FINALISTS_ARE}.", specs.build_curves(series, name))
    lost = tables.losses_table(board, results)
    if lost.rows:
        text = f"{tables.LOSSES_ARE} The bars are the pinned combinations and {tables.FINALISTS_ARE}."
        yield Plot("losses", "Gold lost by step", text, sweep_specs.build_losses(), lost)
    by_type = tables.finalists_by_type(board, results)
    if by_type.rows:
        types = [column.title for column in by_type.columns[3:]]
        bars = {f"{rank}. {label}": means for rank, label, _, *means in by_type.rows}
        text = f"{board.primary} of {tables.FINALISTS_ARE}."
        spec = specs.build_bars(types, bars, board.primary)
        yield Plot("types", "By query type", text, spec, by_type)


def _list_setting_plots(board: Leaderboard, columns: Sequence[DataColumn]) -> Iterator[Plot]:
    axes = [column for column in columns if column.kind == "setting" and len(set(column.values)) > 1]
    by_effect = [effect.setting for effect in measure_effects(board)]
    axes.sort(key=lambda column: by_effect.index(column.name) if column.name in by_effect else len(by_effect))
    ids = [column.id for column in axes]
    if ids:
        text = f"The mean {board.primary} over all other swept settings, for the combinations shown."
        yield Plot("effect", "Effect of a setting", text, sweep_specs.build_effect(board.primary), choices={"x": ids})
    if len(ids) > 1:
        ids = [column.id for column in _order_for_pairs(axes)]
        text = f"The mean {board.primary} of each pair of values. Drag to select combinations."
        spec = sweep_specs.build_heat_map(board.primary)
        yield Plot("heat", "Two settings", text, spec, choices={"x": ids, "y": ids})
        text = "One line for each of the best combinations shown. Drag over an axis to select the lines that pass."
        yield Plot("parallel", "Parallel coordinates", text, sweep_specs.build_parallel(board.primary), wide=True)


def _order_for_pairs(axes: Sequence[DataColumn]) -> list[DataColumn]:
    """Return settings with that pair first of which the sweep has the most combinations of values."""

    def count(pair: tuple[DataColumn, DataColumn]) -> int:
        both = zip(pair[0].values, pair[1].values, strict=True)
        return len({values for values in both if not any(value is None or value != value for value in values)})

    first = max(combinations(sorted(axes, key=lambda column: column.format != "number"), 2), key=count)
    return [*first, *(column for column in axes if column not in first)]


def _list_importance_plots(board: Leaderboard, results: Sequence[Result]) -> Iterator[Plot]:
    if board.search is not None:  # a search has importances of its own
        return
    if shares := tables.list_shares(board, results):
        rows = [{"name": " x ".join(i.settings), "share": i.share, "low": i.low, "high": i.high} for i in shares]
        text, spec = tables.shares_note(board), sweep_specs.build_shares(rows, "share of the variance")
        yield Plot("importance", "Importance of settings", text, spec, tables.shares_table(shares))


def _list_query_plots(board: Leaderboard) -> Iterator[Plot]:
    if not _is_compared(board):
        return
    text = "B minus A for each query shown, the largest gain first."
    yield Plot("differences", "Query by query", text, sweep_specs.build_differences(board.primary), wide=True)
    text = "Queries in the order of the table, for the pinned and the best combinations."
    yield Plot("map", "Queries and combinations", text, sweep_specs.build_query_map(board.primary), wide=True)


def _list_search_plots(search: Search) -> Iterator[Plot]:
    if len(search.objectives) > 1 and search.front:
        text = (
            "No other combination is at least as good as one of these in all objectives and better in one. Grey: "
            "the other trials."
        )
        yield Plot("front", "Pareto front", text, _build_search_front(search), selection.front_table(search))
    first = search.objectives[0]
    if len(search.done) > 1:
        text = f"{first.name} of each trial in order; the line is the best so far."
        values = [(trial.number + 1, trial.values[0]) for trial in search.done]
        yield Plot(
            "history", "Progress of the search", text, sweep_specs.build_history(values, first.name, first.larger)
        )
    shares = selection.importances_table(search)
    if shares.rows:
        groups = {group or "all": of for group, of in search.importances.get(first.name, {}).items()}
        settings = list(dict.fromkeys(setting for of in groups.values() for setting in of))
        bars = {group: [of.get(name) for name in settings] for group, of in groups.items()}
        text = f"The share of the variance of {first.name} over the trials that each setting explains (fANOVA)."
        spec = specs.build_bars(settings, bars, "share of the variance")
        yield Plot("importance", "Importance of settings", text, spec, shares)


def _build_search_front(search: Search) -> specs.Spec:
    up, across = search.objectives[:2]
    trials: list[dict[str, Any]] = [
        {"name": trial.label, "x": trial.values[1], "y": trial.values[0]} for trial in search.done
    ]
    front = [
        {"name": point.label, "x": point.selected[1], "y": point.selected[0], "rank": point.rank}
        for point in search.front
    ]
    log = not across.larger and all(trial["x"] > 0 for trial in trials)
    title = f"{across.name} ({'more' if across.larger else 'less'} is better)"
    return sweep_specs.build_front([*trials, *front], title, up.name, log)
