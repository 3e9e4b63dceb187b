"""A sweep as Markdown; everything from data is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from runner.comparison.labels import format_setting
from runner.comparison.leaderboard import Leaderboard
from runner.reports.rendering import numbers
from runner.reports.rendering.markdown import escape, markdown_table, section
from runner.reports.sweep import difficulty, selection, tables
from runner.result import Result


def sweep_markdown(board: Leaderboard, results: Sequence[Result], hardest: int = 15) -> str:
    """Return the report of a sweep; `results` are those that the leaderboard was built from, in the same order."""
    settings = [f"- `{key}`: {escape(format_setting(value))}" for key, value in board.shared.items()]
    parts = [
        "# Retrieval sweep",
        escape(tables.board_heading(board)),
        *([f"**Best**: {escape(tables.describe_best(board))}"] if board.queries else []),
        escape(tables.verdict(board)),
        *(escape(notice) for notice in tables.notices(board)),
        *_selection(board),
        *(["Shared settings:\n\n" + "\n".join(settings)] if settings else []),
        *section("Leaderboard", tables.leaderboard_table(board)),
        *section(
            "Systems by dataset",
            tables.systems_table(board.systems),
            f"{escape(board.primary)}; ranks are within a dataset.",
        ),
        *section("Significance groups", tables.letters_table(board), escape(tables.letters_note(board))),
        *section(f"{board.primary} by query type", tables.finalists_by_type(board, results)),
        *section(
            "Quality against time",
            tables.pareto_table(board),
            "No other combination is both faster and better than one of these.",
        ),
        *_effects(board),
        *section(
            "Hardest queries",
            difficulty.hardest_of_all(results, board.primary, hardest),
            escape(difficulty.hardest_note(results, board.primary)),
        ),
        *section(
            "Queries with the largest differences between combinations",
            difficulty.divisive(results, board.primary, hardest),
            f"Ordered by the standard deviation of their {escape(board.primary)}.",
        ),
        *section("Dropped by the race", tables.drops_table(board), tables.DROPPED_ARE),
        *section("Failures", tables.failures_table(board)),
    ]
    return "\n\n".join(parts) + "\n"


def _selection(board: Leaderboard) -> list[str]:
    parts = []
    if board.selection is not None:
        parts += section(selection.selection_heading(board.selection), selection.selection_table(board.selection))
        parts += section("Winner without each fold", selection.folds_table(board.selection))
    if board.search is not None:
        parts += section("Pareto front", selection.front_table(board.search))
        parts += section("Importance of settings", selection.importances_table(board.search))
    return parts


def _effects(board: Leaderboard) -> list[str]:
    effects = tables.effects(board)
    if not effects:
        return []
    parts = [
        "## Effects of settings",
        f"The mean {escape(board.primary)} over all other swept settings, with the largest range first.",
    ]
    for key, effect in effects.items():
        parts += [
            f"### {escape(key)}: range of the mean {numbers.score4(tables.reach(effect))}",
            markdown_table(effect),
        ]
    return parts
