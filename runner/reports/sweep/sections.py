"""The sections of the report of a sweep, in its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runner.comparison.leaderboard import Leaderboard
from runner.reports.evaluation.tables import fingerprints_table, settings_table
from runner.reports.rendering.numbers import score4
from runner.reports.rendering.sections import ReportSection
from runner.reports.sweep import difficulty, selection, tables
from runner.result import Result


def list_sections(board: Leaderboard, results: Sequence[Result], hardest: int = 15) -> list[ReportSection]:
    """Return the sections; `results` are those that the leaderboard was built from, in the same order."""
    primary = board.primary
    return [
        *_list_selection(board),
        ReportSection("Leaderboard", tables.leaderboard_table(board), ""),
        ReportSection(
            "Systems by dataset",
            tables.systems_table(board.systems),
            "leaderboard",
            f"{primary}; ranks are within a dataset.",
        ),
        ReportSection("Significance groups", tables.letters_table(board), "leaderboard", tables.letters_note(board)),
        ReportSection(f"{primary} by query type", tables.finalists_by_type(board, results), "plots", figure="types"),
        ReportSection(
            "Quality against time",
            tables.pareto_table(board),
            "plots",
            "No other combination is both faster and better than one of these.",
            figure="tradeoff",
        ),
        ReportSection(
            "Effects of settings",
            {
                f"{key}: range of the mean {score4(tables.reach(effect))}": effect
                for key, effect in tables.effects(board).items()
            },
            "plots",
            f"The mean {primary} over all other swept settings, with the largest range first.",
        ),
        ReportSection(
            "Hardest queries",
            difficulty.hardest_of_all(results, primary, hardest),
            "queries",
            difficulty.hardest_note(results, primary),
            fallback=True,
        ),
        ReportSection(
            "Queries with the largest differences between combinations",
            difficulty.divisive(results, primary, hardest),
            "queries",
            f"Ordered by the standard deviation of their {primary}.",
            fallback=True,
        ),
        ReportSection(
            "Dropped by the race", tables.drops_table(board), "leaderboard", tables.DROPPED_ARE, printed="table"
        ),
        ReportSection(f"{len(board.failures):,} failed", tables.failures_table(board), "", printed="errors"),
        *_list_provenance(results),
    ]


def _list_selection(board: Leaderboard) -> Iterator[ReportSection]:
    if (chosen := board.selection) is not None:
        yield ReportSection(selection.selection_heading(chosen), selection.selection_table(chosen), "selection")
        yield ReportSection("Winner without each fold", selection.folds_table(chosen), "selection")
    if (search := board.search) is not None:
        yield ReportSection("Pareto front", selection.front_table(search), "plots", figure="front", printed="table")
        yield ReportSection("Importance of settings", selection.importances_table(search), "plots", figure="importance")


def _list_provenance(results: Sequence[Result]) -> Iterator[ReportSection]:
    for result in results[:1]:
        yield ReportSection("Fingerprints", fingerprints_table(result), "environment", markdown="")
        yield ReportSection("Environment", settings_table(result.environment), "environment", markdown="")
