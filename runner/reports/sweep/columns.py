"""The leaderboard of a sweep as columns of data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runner.comparison.criteria import COSTS
from runner.comparison.labels import format_setting
from runner.comparison.leaderboard import Leaderboard
from runner.reports.comparison.significance import p_title
from runner.reports.explorer.data import DataColumn
from runner.reports.rendering.numbers import interval, interval_title
from runner.reports.sweep.tables import as_number, shorten_run
from runner.result import Result


def build_columns(board: Leaderboard, results: Sequence[Result]) -> list[DataColumn]:
    """Return the columns: the leaderboard's, then swept settings, costs and the means of all other measures."""
    return [
        *_leaderboard_columns(board),
        *_criteria_columns(board),
        *_setting_columns(board),
        *_measure_columns(board, results),
    ]


def setting_keys(board: Leaderboard) -> list[str]:
    """Return the swept settings that differ between combinations."""
    return [key for key in dict.fromkeys(key for row in board.rows for key in row.swept) if key not in board.shared]


def _leaderboard_columns(board: Leaderboard) -> Iterator[DataColumn]:
    rows, test = board.rows, f"{board.test} test, {board.correction} correction"
    yield DataColumn(
        "rank", "rank", "#", [row.rank for row in rows], "integer", definition="Rank by the primary measure"
    )
    yield DataColumn("label", "combination", "combination", [row.label for row in rows])
    yield DataColumn(
        "mean", board.primary, board.primary, [row.mean for row in rows], "score4", "measure",
        definition="Mean over queries",
    )  # fmt: skip
    title = interval_title(board.confidence, board.units)
    bounds = [interval((row.low, row.high)) for row in rows]
    yield DataColumn("interval", "interval", title, bounds, definition="Confidence interval of the mean")
    yield DataColumn("low", "low", "low", [row.low for row in rows], "score4", shown=False)
    yield DataColumn("high", "high", "high", [row.high for row in rows], "score4", shown=False)
    yield DataColumn(
        "difference", "to_best", "to best", [row.difference for row in rows], "signed",
        definition="Difference of the mean to the best",
    )  # fmt: skip
    p = p_title(board.correction)
    yield DataColumn("p", "p", p, [row.p for row in rows], "p", definition=f"P-value against the best ({test})")
    yield DataColumn(
        "differs", "differs", "differs", [row.differs for row in rows], "flag",
        definition=f"Significantly different from the best (p < {board.alpha:g}, {test})",
    )  # fmt: skip
    record = [f"{row.wins}/{row.ties}/{row.losses}" if row.rank > 1 else "" for row in rows]
    yield DataColumn("record", "W/T/L", "W/T/L", record, definition="Queries better, equal and worse than the best")
    yield DataColumn(
        "effect", "effect", "effect size", [row.effect for row in rows], "signed", shown=False,
        definition="Hedges' g against the best",
    )  # fmt: skip
    if board.letters:
        letters = [board.letters.get(row.rank, "") for row in rows]
        definition = "Two finalists without a common letter differ significantly"
        yield DataColumn("letters", "letters", "letters", letters, shown=False, definition=definition)
    if board.logged:
        yield DataColumn(
            "run", "run", "run", [shorten_run(row.run) for row in rows], definition="Id of the tracked run"
        )


def _criteria_columns(board: Leaderboard) -> Iterator[DataColumn]:
    for i, criterion in enumerate(board.criteria):
        cost, direction = criterion.name in COSTS, "" if criterion.larger else "Less is better"
        yield DataColumn(
            f"c{i}",
            criterion.name,
            criterion.title,
            [row.means[criterion.name] for row in board.rows],
            criterion.format,
            "cost" if cost else "measure" if criterion.larger else "",
            shown=criterion.priority is not None,
            definition=". ".join(filter(None, (criterion.definition, direction))),
        )


def _setting_columns(board: Leaderboard) -> Iterator[DataColumn]:
    keys = setting_keys(board)
    if "retriever" not in keys:
        several = len({row.retriever for row in board.rows}) > 1
        yield DataColumn(
            "retriever", "retriever", "retriever", [row.retriever for row in board.rows],
            kind="setting" if several else "", shown=False,
        )  # fmt: skip
    for i, key in enumerate(keys):
        present = [row.swept[key] for row in board.rows if key in row.swept]
        numeric = None not in map(as_number, present)
        show = as_number if numeric else format_setting
        values = [show(row.swept[key]) if key in row.swept else None for row in board.rows]
        of = "retriever" if key == "retriever" else f"s{i}"
        yield DataColumn(of, key, key, values, "number" if numeric else "text", "setting", shown=False)


def _measure_columns(board: Leaderboard, results: Sequence[Result]) -> Iterator[DataColumn]:
    taken = {board.primary, *(criterion.measure for criterion in board.criteria)}
    measures = dict.fromkeys(measure for result in results for measure in result.measures)
    for i, measure in enumerate(name for name in measures if name not in taken):
        means = [results[row.position].means.get(measure) for row in board.rows]
        yield DataColumn(f"m{i}", measure, measure, means, "score4", "measure", shown=False)
