"""Prints results, leaderboards, notes and errors for people at a terminal, or a result as JSON.

Results go to standard output, notes and errors to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import orjson
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from runner.comparison.insights import Insights
from runner.comparison.labels import format_setting
from runner.comparison.leaderboard import Leaderboard
from runner.comparison.systems import SystemsByDataset
from runner.config.environment import hide_values
from runner.evaluation.report import tables
from runner.evaluation.report.grades import missing_line
from runner.evaluation.report.sections import iter_sections as iter_result_sections
from runner.evaluation.result import Result
from runner.pages import numbers
from runner.pages.control import escape_json
from runner.pages.sections import ReportSection
from runner.pages.tables import Table
from runner.pages.terminal import open_console
from runner.pages.terminal import show_sections as print_sections
from runner.pages.terminal import show_table as print_table
from runner.sweep.report import plan as plan_tables
from runner.sweep.report import tables as sweep_tables
from runner.sweep.report.sections import iter_sections
from runner.sweep.work import Plan, SearchPlan

_silent = ContextVar("silent", default=False)


@contextmanager
def silence() -> Iterator[None]:
    """Print no results in the block, for callers that get them as values; progress and notes are still shown."""
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


class _JsonOutput:
    """What a command reports as JSON: its documents (several for several jobs of Hydra), or its last error."""

    def __init__(self) -> None:
        self.documents: list[str] = []
        self.error = ""

    def to_text(self) -> str:
        if len(self.documents) > 1:
            return f"[{','.join(self.documents)}]"
        return self.documents[0] if self.documents else _to_json({"error": self.error}) if self.error else ""


_json_output: _JsonOutput | None = None
"""Where documents go under `--json`; None without it."""


@contextmanager
def document_only() -> Iterator[None]:
    """Print the document of the block on standard output, and nothing else there; the error if it gives none."""
    global _json_output
    output = _json_output = _JsonOutput()
    try:
        yield
    finally:
        _json_output = None
    if text := output.to_text():  # events of a trace are written as they are read
        sys.stdout.write(escape_json(hide_values(text)) + "\n")


def document(build: Callable[[], str | Mapping[str, Any]]) -> None:
    """Add a document to the JSON output; `build` is called only under `--json`."""
    if _json_output is not None:
        content = build()
        _json_output.documents.append(content.strip() if isinstance(content, str) else _to_json(content))


def _to_json(content: Mapping[str, Any]) -> str:
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(content, default=str, option=options).decode()


def _open_output() -> Console:
    return open_console(quiet=_silent.get() or _json_output is not None)


def line(text: str) -> None:
    """Print a line."""
    _open_output().print(hide_values(text), soft_wrap=True, markup=False, highlight=False, emoji=False)


def announce(text: str) -> None:
    """Print where a server can be reached: a line, under `--json` on standard error."""
    if _json_output is None:
        line(text)
    else:
        note(text)


def paragraph(text: str, indent: int = 0) -> None:
    """Print text, wrapped between words at the width of the terminal."""
    _open_output().print(Padding(Text(hide_values(text)), (0, 0, 0, indent), expand=False))


def note(text: str) -> None:
    """Print a note as one line to standard error."""
    open_console(stderr=True).print(Text(" ".join(hide_values(text).split())), soft_wrap=True)


def note_unfinished(result: Result) -> None:
    """Print what a result lacks and how to complete it."""
    note(missing_line(result))


def error(text: str) -> None:
    """Print an error as one line to standard error; under `--json` it is the output of a command that has no other."""
    if _json_output is not None:
        _json_output.error = " ".join(text.split())
    message = Text.assemble(("error: ", "bold red"), " ".join(hide_values(text).split()))
    open_console(stderr=True).print(message, soft_wrap=True)


def show_result(result: Result, hardest: int = 3) -> None:
    """Print an evaluation: its measures, its query types, what went wrong, and what it cost."""
    out = _open_output()
    low_high = numbers.interval(result.intervals.get(result.primary))
    out.print(Text.assemble((result.name, "bold"), "  on ", tables.heading(result)))
    for warning in tables.warnings(result):
        out.print(Text(f"warning: {warning}", style="yellow"))
    if address := tables.describe_addresses(result):
        out.print(Text(f"answered by {address}"))
    if index := tables.describe_index(result):
        out.print(Text(f"index: {index}"))
    mean = numbers.score(result.means.get(result.primary))
    out.print(Text.assemble((f"{result.primary} {mean}", "bold"), f"  {low_high}  ({tables.intervals_of(result)})"))
    print_table(out, tables.measures_table(result))
    whole = [f"{m} {numbers.score(result.means.get(m))}" for m in tables.whole_measures(result)]
    lines = [", ".join(whole), tables.describe_judged(result), tables.outcomes_line(result)]
    out.print(Text("\n".join(["", *filter(None, lines)])))
    print_sections(out, iter_result_sections(result, Insights(), hardest))
    out.print(Text(f"\n{tables.cost(result)}", style="dim"))


def show_table(table: Table, title: str = "") -> None:
    """Print a table, if it has rows."""
    print_table(_open_output(), table, title)


def show_sections(sections: Iterable[ReportSection]) -> None:
    """Print the sections of a report that are for a terminal."""
    print_sections(_open_output(), sections)


def show_systems(systems: SystemsByDataset, primary: str, top: int = 20) -> None:
    """Print the best systems of a sweep on several datasets."""
    show_table(sweep_tables.systems_table(systems, top), f"Systems by dataset ({primary})")


def show_compare_command(board: Leaderboard, overrides: Sequence[str]) -> None:
    """Print the command that compares the best two combinations, once both have runs."""
    if command := sweep_tables.compare_command(board, overrides):
        line(f"compare the best two: {command}")


def show_leaderboard(board: Leaderboard, results: Sequence[Result] = (), top: int = 20) -> None:
    """Print the best combinations, which of them really differ, and the sections of the report that are printed."""
    out = _open_output()
    if board.dataset is not None:
        out.print(Text(sweep_tables.board_heading(board), style="bold"))
    if board.shared:
        out.print(
            Text(
                "all with " + " ".join(f"{key}={format_setting(value)}" for key, value in board.shared.items()),
                style="dim",
            )
        )
    print_table(out, sweep_tables.leaderboard_table(board), bold=sweep_tables.alike(board), most=top)
    out.print(Text(f"\n{sweep_tables.verdict(board)}"))
    for notice in sweep_tables.notices(board):
        out.print(Text(notice))
    print_sections(out, iter_sections(board, results), top)


def show_plan(plan: Plan | SearchPlan) -> None:
    """Print what a sweep would do by stage, with its time and disk space, or the size of a search."""
    out = _open_output()
    if isinstance(plan, SearchPlan):
        line(plan_tables.describe_search(plan))
        return
    out.print(Text(plan_tables.heading(plan), style="bold"))
    if which := plan_tables.to_do(plan):
        out.print(Text(which))
    print_table(out, plan_tables.stages_table(plan))
    print_table(out, plan_tables.calls_table(plan))
    out.print(Text("\n".join(["", *plan_tables.closing(plan)])))
