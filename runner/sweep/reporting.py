"""Builds the reports of a sweep, which are rendered by functions that the command supplies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from runner.comparison.comparability import NotComparable
from runner.comparison.leaderboard import Leaderboard
from runner.comparison.selection import WinnerSelection
from runner.evaluation.failures import Lexicon
from runner.evaluation.result import Result
from runner.pages import console
from runner.sweep.boards import BestRankings, Board

EvaluationReport = Callable[[Result, Lexicon | None], dict[str, str]]
"""Returns the files of the report of one evaluation, by name."""


@dataclass(frozen=True)
class ReportWriter:
    """Functions that return the files of reports by name, and the tags of a selection.

    `sweep` takes a leaderboard, the results that it was built from, and the rankings of the best ones; `golden` takes
    results, the time of the report, whether they were evaluated in parallel, and the results that they were chosen
    from, and raises `NotComparable`.
    """

    evaluation: EvaluationReport
    sweep: Callable[[Leaderboard, Sequence[Result], BestRankings], dict[str, str]]
    golden: Callable[[Sequence[Result], datetime, bool, Sequence[Result]], dict[str, str]]
    tags: Callable[[WinnerSelection], dict[str, str]]


def build_reports(boards: Sequence[Board], parallel: bool, writer: ReportWriter) -> dict[str, str]:
    """Return the report files of a sweep by name; with several datasets, one set for each."""
    files = {}
    for board in boards:
        d = board.leaderboard.dataset
        which = f"-{d.name}-{d.split}-{d.fingerprint[:6]}" if d and len(boards) > 1 else ""
        results = list(board.results.values())
        of_board = writer.sweep(board.leaderboard, results, board.best_rankings)
        shown = [results[i] for i in sorted(row.position for row in board.leaderboard.finalists)]
        if shown and all(result.hits for result in shown):
            try:
                of_board |= writer.golden(shown, datetime.now(UTC), parallel, results)
            except NotComparable as error:  # the other reports do not depend on it
                console.note(f"the golden report could not be written: {error}")
        for name, text in of_board.items():
            stem, _, ending = name.rpartition(".")
            files[f"{stem}{which}.{ending}"] = text
    return files


Selections = Sequence[tuple[str, WinnerSelection]]
"""Pairs of the fingerprint of a dataset and the selection made on it."""


def build_selection_files(selections: Selections) -> dict[str, str]:
    """Return the records of selections as files."""
    return {f"selection{_suffix(*made, selections)}.json": made[1].to_json() for made in selections}


def build_tags(selections: Selections, writer: ReportWriter) -> dict[str, str]:
    """Return the tags of selections."""
    return {
        f"{key}{_suffix(*made, selections)}": value
        for made in selections
        for key, value in writer.tags(made[1]).items()
    }


def _suffix(fingerprint: str, selection: WinnerSelection, selections: Selections) -> str:
    return f"-{selection.dataset}-{fingerprint[:6]}" if len(selections) > 1 else ""
