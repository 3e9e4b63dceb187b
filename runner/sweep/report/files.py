"""The report of a sweep as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retrievers.base import Corpus
from runner.comparison.leaderboard import Leaderboard
from runner.config.report import Texts
from runner.evaluation.result import Result
from runner.pages.explorer.place import FILE, PagePlace
from runner.sweep.report.page import sweep_page
from runner.sweep.report.sections import sweep_markdown


def sweep_files(
    board: Leaderboard,
    results: Sequence[Result],
    rankings: tuple[Mapping[int, Result], Corpus | None] = ({}, None),
    place: PagePlace = FILE,
    texts: Texts = "snippets",
) -> dict[str, str]:
    """Return the report in Markdown and HTML, and the leaderboard as CSV, by file name.

    `rankings` are the best results with their rankings, by rank, and the documents that these name.
    """
    return {
        "report.md": sweep_markdown(board, results),
        "report.html": sweep_page(board, results, place, *rankings, texts=texts),
        "leaderboard.csv": board.to_csv(),
    }
