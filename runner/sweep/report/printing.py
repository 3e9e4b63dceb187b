"""Print the leaderboard of a sweep, its plan, and what to run next, at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from runner.comparison.labels import format_setting
from runner.comparison.leaderboard import Leaderboard
from runner.comparison.systems import SystemsByDataset
from runner.evaluation.result import Result
from runner.pages import console
from runner.pages.terminal import show_sections, show_table
from runner.sweep.report import plan as plan_tables
from runner.sweep.report import tables
from runner.sweep.report.sections import iter_sections
from runner.sweep.work import Plan, SearchPlan


def show_systems(systems: SystemsByDataset, primary: str, top: int = 20) -> None:
    """Print the best systems of a sweep on several datasets."""
    console.show_table(tables.systems_table(systems, top), f"Systems by dataset ({primary})")


def show_compare_command(board: Leaderboard, overrides: Sequence[str]) -> None:
    """Print the command that compares the best two combinations, once both have runs."""
    if command := tables.compare_command(board, overrides):
        console.line(f"compare the best two: {command}")


def show_leaderboard(board: Leaderboard, results: Sequence[Result] = (), top: int = 20) -> None:
    """Print the best combinations, which of them really differ, and the sections of the report that are printed."""
    out = console.open_output()
    if board.dataset is not None:
        out.print(Text(tables.board_heading(board), style="bold"))
    if board.shared:
        out.print(
            Text(
                "all with " + " ".join(f"{key}={format_setting(value)}" for key, value in board.shared.items()),
                style="dim",
            )
        )
    show_table(out, tables.leaderboard_table(board), bold=tables.alike(board), most=top)
    out.print(Text(f"\n{tables.verdict(board)}"))
    for notice in tables.notices(board):
        out.print(Text(notice))
    show_sections(out, iter_sections(board, results), top)


def show_plan(plan: Plan | SearchPlan) -> None:
    """Print what a sweep would do by stage, with its time and disk space, or the size of a search."""
    out = console.open_output()
    if isinstance(plan, SearchPlan):
        console.line(plan_tables.describe_search(plan))
        return
    out.print(Text(plan_tables.heading(plan), style="bold"))
    if which := plan_tables.to_do(plan):
        out.print(Text(which))
    show_table(out, plan_tables.stages_table(plan))
    show_table(out, plan_tables.calls_table(plan))
    out.print(Text("\n".join(["", *plan_tables.describe_power(plan), *plan_tables.closing(plan)])))
