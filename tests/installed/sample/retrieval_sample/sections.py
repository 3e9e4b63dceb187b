"""The mean length of the queries, as a section of reports."""

from collections.abc import Iterator, Sequence

from runner.comparison.leaderboard import Leaderboard
from runner.evaluation.result import Result
from runner.pages.sections import ReportSection


def iter_sections(result: Result) -> Iterator[ReportSection]:
    """Yield the section of an evaluation."""
    lengths = [len(text.split()) for text in result.queries.texts]
    yield ReportSection("Words of queries", [f"{sum(lengths) / len(lengths):.2f} words on average"], "summary")


def iter_sweep_sections(board: Leaderboard, results: Sequence[Result]) -> Iterator[ReportSection]:
    """Yield the section of a sweep."""
    yield ReportSection("Words of queries", [f"{len(results)} combinations for {board.queries} queries"], "queries")
