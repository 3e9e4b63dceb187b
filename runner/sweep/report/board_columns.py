"""The columns that every leaderboard has, from which its tables and the columns of its page derive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from runner.comparison.leaderboard import Leaderboard, LeaderboardRow
from runner.comparison.report.significance import p_title
from runner.pages.explorer.data import Format
from runner.pages.numbers import format_signed, interval, interval_title, number, p_value, score4
from runner.pages.tables import Column

SHORT_ID = 8
"""How many characters of a run id are shown; the program accepts them in place of the whole id."""


@dataclass(frozen=True)
class BoardColumn:
    """A column of a leaderboard: the `value` of a row, and how tables show it.

    The other fields are those of `DataColumn`; tables have only columns that are `shown`.
    """

    id: str
    name: str
    column: Column
    value: Callable[[LeaderboardRow], Any]
    format: Format = "text"
    kind: Literal["", "measure"] = ""
    shown: bool = True
    definition: str = ""


def list_board_columns(board: Leaderboard) -> list[BoardColumn]:
    """Return the columns of a leaderboard besides its criteria and the swept settings."""
    test = f"{board.statistics.test} test, {board.statistics.correction} correction"
    columns = [
        BoardColumn(
            "rank", "rank", Column("#", number, numeric=True), lambda row: row.rank, "integer",
            definition="Rank by the primary measure",
        ),
        BoardColumn("label", "combination", Column("combination", least=28), lambda row: row.label),
        BoardColumn(
            "mean", board.primary, Column(board.primary, score4, numeric=True), lambda row: row.mean, "score4",
            "measure", definition="Mean over queries",
        ),
        BoardColumn(
            "run", "run", Column("run", shorten_run, spare=1), lambda row: row.run, definition="Id of the tracked run"
        ),
        BoardColumn(
            "interval", "interval",
            Column(interval_title(board.statistics.confidence, board.units), interval, numeric=True, spare=4),
            lambda row: (row.low, row.high), definition="Confidence interval of the mean",
        ),
        BoardColumn("low", "low", Column("low", score4), lambda row: row.low, "score4", shown=False),
        BoardColumn("high", "high", Column("high", score4), lambda row: row.high, "score4", shown=False),
        BoardColumn(
            "difference", "to_best", Column("to best", format_signed, numeric=True, spare=2),
            lambda row: row.difference.mean, "signed", definition="Difference of the mean to the best",
        ),
        BoardColumn(
            "p", "p", Column(p_title(board.statistics.correction), p_value, numeric=True, spare=3),
            lambda row: row.difference.corrected, "p",
            definition=f"P-value against the best ({test})",
        ),
        BoardColumn(
            "differs", "differs", Column("differs", lambda value: "yes" if value else "", spare=3),
            lambda row: row.difference.significant, "flag",
            definition=f"Significantly different from the best (p < {board.statistics.alpha:g}, {test})",
        ),
        BoardColumn(
            "record", "W/T/L", Column("W/T/L", numeric=True, spare=11),
            _count_won,
            definition="Queries better, equal and worse than the best",
        ),
        BoardColumn(
            "effect", "effect", Column("effect size", format_signed), lambda row: row.difference.effect, "signed",
            shown=False, definition="Hedges' g against the best",
        ),
        BoardColumn(
            "letters", "letters", Column("letters"), lambda row: board.letters.get(row.rank, ""), shown=False,
            definition="Two finalists without a common letter differ significantly",
        ),
    ]  # fmt: skip
    empty = {"run": not board.logged, "letters": not board.letters}
    return [column for column in columns if not empty.get(column.id)]


def _count_won(row: LeaderboardRow) -> str:
    own = row.difference
    return f"{own.wins}/{own.ties}/{own.losses}" if row.rank > 1 and own.queries else ""


def shorten_run(run: str) -> str:
    """Return the beginning of a run id."""
    return run[:SHORT_ID]
