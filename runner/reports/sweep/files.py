"""The report of a sweep as files."""

from __future__ import annotations

from collections.abc import Sequence

from runner.comparison.leaderboard import Leaderboard
from runner.reports.explorer.place import FILE, PagePlace
from runner.reports.sweep.markdown import sweep_markdown
from runner.reports.sweep.page import sweep_page
from runner.result import Result


def sweep_files(board: Leaderboard, results: Sequence[Result], place: PagePlace = FILE) -> dict[str, str]:
    """Return the report in Markdown and HTML, and the leaderboard as CSV, by file name."""
    return {
        "report.md": sweep_markdown(board, results),
        "report.html": sweep_page(board, results, place),
        "leaderboard.csv": board.to_csv(),
    }
