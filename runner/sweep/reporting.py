"""The reports of a sweep, rendered by functions that the command supplies: a sweep does not know how they look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from runner.analysis.failures import Lexicon
from runner.comparison.leaderboard import Leaderboard
from runner.comparison.selection import WinnerSelection
from runner.result import Result

EvaluationReport = Callable[[Result, Lexicon | None], dict[str, str]]
"""Returns the files of the report of one evaluation, by name."""


@dataclass(frozen=True)
class ReportWriter:
    """Functions that return the files of reports by name, and the tags of a selection.

    `sweep` takes a leaderboard and the results that it was built from; `golden` takes results, the time of the report,
    and whether they were evaluated in parallel, and raises `NotComparable`.
    """

    evaluation: EvaluationReport
    sweep: Callable[[Leaderboard, Sequence[Result]], dict[str, str]]
    golden: Callable[[Sequence[Result], datetime, bool], dict[str, str]]
    tags: Callable[[WinnerSelection], dict[str, str]]
