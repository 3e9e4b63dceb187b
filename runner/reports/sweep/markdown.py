"""A sweep as Markdown, for a pull request or a wiki.

Whatever comes from data is escaped. Knows nothing of plots.
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.reports.comparison.labels import told
from runner.reports.rendering import numbers
from runner.reports.rendering.markdown import escape, markdown_table, section
from runner.reports.sweep import difficulty, selection, tables
from runner.reports.sweep.leaderboard import Leaderboard
from runner.result import Result


def sweep_markdown(board: Leaderboard, results: Sequence[Result], hardest: int = 15) -> str:
    """Return the report of a sweep; `results` are those that the leaderboard was made from, in the same order."""
    settings = [f"- `{key}`: {escape(told(value))}" for key, value in board.shared.items()]
    parts = [
        "# Retrieval sweep",
        escape(tables.board_heading(board)),
        *([f"**Best**: {escape(tables.best(board))}"] if board.queries else []),
        escape(tables.verdict(board)),
        *(escape(notice) for notice in tables.notices(board)),
        *_selection(board),
        *(["The same everywhere:\n\n" + "\n".join(settings)] if settings else []),
        *section("Leaderboard", tables.leaderboard_table(board)),
        *section("Systems by dataset", board.systems, f"{escape(board.primary)}; ranks are within a dataset."),
        *section("Which can be told apart", tables.letters_table(board), escape(tables.letters_note(board))),
        *section(f"{board.primary} by query type", tables.finalists_by_type(board, results)),
        *section("Worth their time", tables.pareto_table(board), "None is both quicker and better than one of these."),
        *_effects(board),
        *section(
            "Hardest queries",
            difficulty.hardest_of_all(results, board.primary, hardest),
            escape(difficulty.hardest_note(results, board.primary)),
        ),
        *section(
            "Queries that combinations disagree on",
            difficulty.divisive(results, board.primary, hardest),
            f"By the spread, the standard deviation of their {escape(board.primary)}.",
        ),
        *section("Failures", tables.failures_table(board)),
    ]
    return "\n\n".join(parts) + "\n"


def _selection(board: Leaderboard) -> list[str]:
    parts = []
    if board.selection is not None:
        parts += section("What the choice is worth", selection.selection_table(board.selection))
        parts += section("Chosen without each fold", selection.folds_table(board.selection))
    if board.search is not None:
        parts += section("Pareto front", selection.front_table(board.search))
        parts += section("How much each setting mattered", selection.importances_table(board.search))
    return parts


def _effects(board: Leaderboard) -> list[str]:
    found = tables.effects(board)
    if not found:
        return []
    parts = [
        "## What each setting does",
        f"The mean {escape(board.primary)} over all else that was swept, what matters most first.",
    ]
    for key, effect in found.items():
        parts += [
            f"### {escape(key)}: moves the mean by {numbers.score4(tables.reach(effect))}",
            markdown_table(effect),
        ]
    return parts
