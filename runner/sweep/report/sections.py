"""The sections of the report of a sweep in their order, and the report as Markdown; everything from data is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runner.comparison.insights import Insights
from runner.comparison.labels import format_setting
from runner.comparison.leaderboard import Leaderboard
from runner.comparison.swept_settings import measure_effects
from runner.evaluation.report.insights import classes_table, failures_note
from runner.evaluation.report.tables import fingerprints_table, settings_table
from runner.evaluation.result import Result
from runner.pages.markdown import escape, render_sections
from runner.pages.numbers import score4
from runner.pages.sections import ReportSection, iter_added
from runner.sweep.report import difficulty, selection, tables
from runner.sweep.report.recommendation import describe_recommendation


def sweep_markdown(
    board: Leaderboard,
    results: Sequence[Result],
    insight: Insights = Insights(),  # noqa: B008 (immutable)
) -> str:
    """Return the report of a sweep; `results` are those that the leaderboard was built from, in the same order.

    `insight` has the missed queries of the best.
    """
    settings = [f"- `{key}`: {escape(format_setting(value))}" for key, value in board.shared.items()]
    parts = [
        "# Retrieval sweep",
        escape(tables.board_heading(board)),
        *([f"**Best**: {escape(tables.describe_best(board))}"] if board.queries else []),
        *([f"**{escape(advice)}**"] if (advice := describe_recommendation(board)) else []),
        escape(tables.verdict(board)),
        *map(escape, tables.notices(board)),
        *([escape(judging)] if (judging := tables.describe_judging(board)) else []),
        *(["Shared settings:\n\n" + "\n".join(settings)] if settings else []),
        *render_sections(iter_sections(board, results, insight)),
    ]
    return "\n\n".join(parts) + "\n"


def iter_sections(
    board: Leaderboard,
    results: Sequence[Result],
    insight: Insights = Insights(),  # noqa: B008 (immutable)
    hardest: int = 15,
) -> Iterator[ReportSection]:
    """Yield the sections; `results` are those that the leaderboard was built from, in the same order.

    `insight` has the missed queries of the best.
    """
    if (chosen := board.selection) is not None:
        yield ReportSection(selection.selection_heading(chosen), selection.selection_table(chosen), "selection")
        yield ReportSection("Winner without each fold", selection.folds_table(chosen), "selection")
    if (search := board.search) is not None:
        yield ReportSection("Pareto front", selection.front_table(search), "plots", figure="front", printed="table")
        yield ReportSection("Importance of settings", selection.importances_table(search), "plots", figure="importance")
    yield ReportSection("Leaderboard", tables.leaderboard_table(board), "")
    note = f"{board.primary}; ranks are within a dataset."
    yield ReportSection("Systems by dataset", tables.systems_table(board.systems), "leaderboard", note)
    yield ReportSection("Significance groups", tables.letters_table(board), "leaderboard", tables.letters_note(board))
    by_type = tables.finalists_by_type(board, results)
    yield ReportSection(f"{board.primary} by query type", by_type, "plots", figure="types")
    note = "No other combination is both faster and better than one of these."
    yield ReportSection("Quality against time", tables.pareto_table(board), "plots", note, figure="tradeoff")
    lost = tables.losses_table(board, results)
    yield ReportSection("Gold lost by step", lost, "plots", tables.LOSSES_ARE, figure="losses")
    if insight.failures:
        note = f"{board.rows[0].label}, the best: {failures_note(insight)}"
        yield ReportSection("Missed queries and their causes", classes_table(insight), "queries", note)
    by_setting = {
        f"{effect.setting}: range of the mean {score4(effect.reach)}": tables.effect_table(effect)
        for effect in measure_effects(board)
    }
    note = f"The mean {board.primary} over all other swept settings, with the largest range first."
    yield ReportSection("Effects of settings", by_setting, "plots", note)
    if board.search is None:
        shares = tables.shares_table(tables.list_shares(board, results))
        yield ReportSection("Importance of settings", shares, "plots", tables.shares_note(board), figure="importance")
    hard, note = (
        difficulty.hardest_of_all(results, board.primary, hardest),
        difficulty.hardest_note(results, board.primary),
    )
    yield ReportSection("Hardest queries", hard, "queries", note, fallback=True)
    title = "Queries with the largest differences between combinations"
    note = f"Ordered by the standard deviation of their {board.primary}."
    divisive = difficulty.divisive(results, board.primary, hardest)
    yield ReportSection(title, divisive, "queries", note, fallback=True)
    dropped = tables.drops_table(board)
    yield from iter_added("sweep", board, results)
    yield ReportSection("Dropped by the race", dropped, "leaderboard", tables.DROPPED_ARE, printed="table")
    yield ReportSection(f"{len(board.failures):,} failed", tables.failures_table(board), "", printed="errors")
    for result in results[:1]:
        yield ReportSection("Fingerprints", fingerprints_table(result), "environment", markdown="")
        yield ReportSection("Environment", settings_table(result.environment), "environment", markdown="")
