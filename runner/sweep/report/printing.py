"""Print the leaderboard of a sweep, its plan, and what to run next, at a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.text import Text

from runner.comparison.labels import format_setting
from runner.comparison.leaderboard import Leaderboard
from runner.comparison.systems import SystemsByDataset
from runner.evaluation.result import Result
from runner.pages import console
from runner.pages.tables import Column, Table
from runner.pages.terminal import show_sections, show_table
from runner.sweep.report import plan as plan_tables
from runner.sweep.report import tables
from runner.sweep.report.board_columns import list_board_columns
from runner.sweep.report.recommendation import describe_recommendation
from runner.sweep.report.sections import iter_sections
from runner.sweep.work import Plan, SearchPlan

SHOWN = 10
"""How many combinations a terminal shows; the report has them all, and the lines below the table matter as well."""

WIDEST_LABEL = 44
"""The longest label that is not wrapped, in characters."""

LIKE_BEST = "="
"""Marks a combination that does not differ significantly from the best."""

IMPORTANCE = ("rank", "label", "mean", "differs", "interval", "run", "difference", "p")
"""The columns of a leaderboard that a terminal of any width shows first, most important first."""


def show_systems(systems: SystemsByDataset, primary: str, top: int = 20) -> None:
    """Print the best systems of a sweep on several datasets."""
    console.show_table(tables.systems_table(systems, top), f"Systems by dataset ({primary})")


def show_compare_command(board: Leaderboard, overrides: Sequence[str]) -> None:
    """Print the command that compares the best two combinations, once both have runs."""
    if command := tables.compare_command(board, overrides):
        console.line(f"compare the best two: {command}")


def show_leaderboard(board: Leaderboard, results: Sequence[Result] = (), top: int = SHOWN) -> None:
    """Print the best combinations, which of them really differ, and the sections of the report that are printed."""
    out = console.open_output()
    if board.dataset is not None:
        out.print(Text(tables.board_heading(board), style="bold"))
    if warning := tables.warn_holes_of_best(board):
        out.print(Text(f"warning: {warning}", style="yellow"))
    if board.shared:
        out.print(
            Text(
                "all with " + " ".join(f"{key}={format_setting(value)}" for key, value in board.shared.items()),
                style="dim",
            )
        )
    show_table(out, _build_table(board), bold=tables.alike(board), most=top, legend=_explain_mark(board))
    out.print(Text(f"\n{tables.verdict(board)}"))
    for notice in tables.notices(board):
        out.print(Text(notice))
    show_sections(out, iter_sections(board, results), top)


def show_recommendation(boards: Sequence[Leaderboard], overrides: Sequence[str] = ()) -> None:
    """Print what to judge and what to use on the data of each leaderboard, as the last words of a sweep."""
    out, several = console.open_output(), len(boards) > 1
    for board in boards:
        where = f"{board.dataset.name}: " if several and board.dataset else ""
        if judging := tables.describe_judging(board, not several, overrides):
            out.print(Text(f"\n{where}{judging}", style="yellow"), soft_wrap=True)
        if advice := describe_recommendation(board):
            out.print(Text(f"\n{where}{advice}", style="bold"))


def _build_table(board: Leaderboard) -> Table:
    """Return the leaderboard with one line for each combination if possible, and a mark for those like the best."""
    columns, labels = {of.id: of for of in list_board_columns(board) if of.shown}, board.labels
    label = columns["label"].column
    label = replace(label, least=min(max(map(len, [label.title, *labels])), WIDEST_LABEL))
    columns["label"] = replace(columns["label"], column=label, value=lambda row: labels[row.rank - 1])
    mark = Column("", lambda differs: LIKE_BEST if board.queries and not differs else "")
    columns["differs"] = replace(columns["differs"], column=mark)
    order = [*(of for of in IMPORTANCE if of in columns), *(of for of in columns if of not in IMPORTANCE)]
    own = [columns[of] for of in order]
    rest = tables.criteria_columns(board)
    shown = [replace(of.column, spare=max(0, place - 3)) for place, of in enumerate(own)]
    rows = [[*(of.value(row) for of in own), *(row.means[name] for name in rest)] for row in board.rows]
    return Table([*shown, *(replace(column, spare=column.spare + len(own)) for column in rest.values())], rows)


def _explain_mark(board: Leaderboard) -> str:
    return f"{LIKE_BEST} not significantly different from the best" if len(board.rows) > 1 and board.queries else ""


def show_plan(plan: Plan | SearchPlan) -> None:
    """Print what a sweep would do by stage, with its time and disk space, or the size of a search."""
    out = console.open_output()
    if isinstance(plan, SearchPlan):
        for line in (plan_tables.describe_search(plan), *plan_tables.describe_power(plan)):
            console.paragraph(line)
        return
    out.print(Text(plan_tables.heading(plan), style="bold"))
    if which := plan_tables.to_do(plan):
        out.print(Text(which))
    show_table(out, plan_tables.stages_table(plan))
    show_table(out, plan_tables.calls_table(plan))
    out.print(Text("\n".join(["", *plan_tables.describe_power(plan), *plan_tables.closing(plan)])))
