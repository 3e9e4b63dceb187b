"""A sweep as Markdown; everything from data is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from runner.comparison.labels import format_setting
from runner.comparison.leaderboard import Leaderboard
from runner.reports.rendering.markdown import escape, render_sections
from runner.reports.sweep import tables
from runner.reports.sweep.sections import list_sections
from runner.result import Result


def sweep_markdown(board: Leaderboard, results: Sequence[Result]) -> str:
    """Return the report of a sweep; `results` are those that the leaderboard was built from, in the same order."""
    settings = [f"- `{key}`: {escape(format_setting(value))}" for key, value in board.shared.items()]
    parts = [
        "# Retrieval sweep",
        escape(tables.board_heading(board)),
        *([f"**Best**: {escape(tables.describe_best(board))}"] if board.queries else []),
        escape(tables.verdict(board)),
        *map(escape, tables.notices(board)),
        *(["Shared settings:\n\n" + "\n".join(settings)] if settings else []),
        *render_sections(list_sections(board, results)),
    ]
    return "\n\n".join(parts) + "\n"
