"""The leaderboard of a sweep as columns of data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runner.comparison.criteria import COSTS
from runner.comparison.leaderboard import Leaderboard
from runner.comparison.swept_settings import list_settings
from runner.evaluation.result import Result
from runner.pages.explorer.data import DataColumn
from runner.sweep.report.board_columns import list_board_columns


def build_columns(board: Leaderboard, results: Sequence[Result]) -> list[DataColumn]:
    """Return the columns: the leaderboard's, then swept settings, costs and the means of all other measures."""
    return [
        *_leaderboard_columns(board),
        *_criteria_columns(board),
        *_setting_columns(board),
        *_measure_columns(board, results),
    ]


def _leaderboard_columns(board: Leaderboard) -> Iterator[DataColumn]:
    for of in sorted(list_board_columns(board), key=lambda of: of.id == "run"):  # the run comes last
        values = [of.value(row) for row in board.rows]
        shown = [of.column.show(value) for value in values] if of.format == "text" else values
        yield DataColumn(of.id, of.name, of.column.title, shown, of.format, of.kind, of.shown, of.definition)


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
    settings = list_settings(board)
    if all(setting.name != "retriever" for setting in settings):
        yield DataColumn("retriever", "retriever", "retriever", [row.retriever for row in board.rows], shown=False)
    swept = {key for row in board.rows for key in row.swept if key not in board.shared}
    keys = [setting.name for setting in settings if setting.name in swept]
    for setting in settings:
        name, values = setting.name, setting.values
        of = "retriever" if name == "retriever" else f"s{keys.index(name)}"
        yield DataColumn(of, name, name, values, "number" if setting.are_numbers else "text", "setting", shown=False)


def _measure_columns(board: Leaderboard, results: Sequence[Result]) -> Iterator[DataColumn]:
    taken = {board.primary, *(criterion.measure for criterion in board.criteria)}
    measures = dict.fromkeys(measure for result in results for measure in result.measures)
    for i, measure in enumerate(name for name in measures if name not in taken):
        means = [results[row.position].means.get(measure) for row in board.rows]
        yield DataColumn(f"m{i}", measure, measure, means, "score4", "measure", shown=False)
