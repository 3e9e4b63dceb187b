"""The report of a sweep as files."""

from __future__ import annotations

from collections.abc import Sequence

from runner.comparison.leaderboard import Leaderboard
from runner.config.report import Texts
from runner.evaluation.result import Result
from runner.pages.explorer.place import FILE, PagePlace
from runner.sweep.boards import BestRankings
from runner.sweep.report.page import sweep_page
from runner.sweep.report.sections import sweep_markdown


def sweep_files(
    board: Leaderboard,
    results: Sequence[Result],
    best: BestRankings = BestRankings(),  # noqa: B008 (immutable)
    place: PagePlace = FILE,
    texts: Texts = "snippets",
) -> dict[str, str]:
    """Return the report in Markdown and HTML, and the leaderboard as CSV, by file name."""
    return {
        "report.md": sweep_markdown(board, results, best.insight),
        "report.html": sweep_page(board, results, place, *best, texts=texts),
        "leaderboard.csv": board.to_csv(),
    }
