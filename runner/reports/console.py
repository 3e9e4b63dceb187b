"""The only room that prints: results, leaderboards and progress for people at a terminal.

Standard output has what was asked for, standard error what happens meanwhile. Knows nothing of files.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

import orjson
from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table as Grid
from rich.text import Text

from runner.comparison.labels import format_setting
from runner.comparison.leaderboard import Leaderboard
from runner.comparison.systems import SystemsByDataset
from runner.config.environment import hide_values
from runner.plan import Plan, SearchPlan
from runner.reports import plan as plan_tables
from runner.reports.evaluation import tables
from runner.reports.evaluation.grades import missing_line
from runner.reports.rendering import notebook, numbers
from runner.reports.rendering.tables import Table
from runner.reports.sweep import selection
from runner.reports.sweep import tables as sweep_tables
from runner.result import Result

PLAIN_WIDTH = 120
"""How wide the output is where there is no terminal to ask."""

EVERY_S = 10.0
"""How often a plain line says what goes on where there is no terminal."""

RECENT = 20
"""How many combinations the estimate of what remains looks back on."""

ENOUGH = 0.2
"""Which share of them is enough for it where they are fewer: a few may be unlike the rest."""


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
        sys.stdout.write(hide_values(text) + "\n")


def document(build: Callable[[], str | Mapping[str, Any]]) -> None:
    """Take what a command reports as JSON, which is built only under `--json`."""
    if _json_output is not None:
        content = build()
        _json_output.documents.append(content.strip() if isinstance(content, str) else _to_json(content))


def _to_json(content: Mapping[str, Any]) -> str:
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(content, default=str, option=options).decode()


def line(text: str) -> None:
    """Print a line."""
    _console().print(hide_values(text), soft_wrap=True, markup=False, highlight=False, emoji=False)


def paragraph(text: str, indent: int = 0) -> None:
    """Print text whose lines are as long as there is room for, broken between words."""
    _console().print(Padding(Text(hide_values(text)), (0, 0, 0, indent), expand=False))


def note(text: str) -> None:
    """Print what the user should know meanwhile, as one line, to standard error."""
    _console(stderr=True).print(Text(" ".join(hide_values(text).split())), soft_wrap=True)


def note_unfinished(result: Result) -> None:
    """Print what a result lacks and how to complete it."""
    note(missing_line(result))


def error(text: str) -> None:
    """Print what went wrong, as one line, to standard error; it is the document of a command that has no other."""
    if _json_output is not None:
        _json_output.error = " ".join(text.split())
    message = Text.assemble(("error: ", "bold red"), " ".join(hide_values(text).split()))
    _console(stderr=True).print(message, soft_wrap=True)


def show_result(result: Result, hardest: int = 3) -> None:
    """Print an evaluation: its measures, its query types, what went wrong, and what it cost."""
    out = _console()
    low_high = numbers.interval(result.intervals.get(result.primary))
    out.print(Text.assemble((result.name, "bold"), "  on ", tables.heading(result)))
    if address := tables.describe_addresses(result):
        out.print(Text(f"answered by {address}"))
    if index := tables.describe_index(result):
        out.print(Text(f"index: {index}"))
    mean = numbers.score(result.means.get(result.primary))
    out.print(Text.assemble((f"{result.primary} {mean}", "bold"), f"  {low_high}  ({tables.intervals_of(result)})"))
    _show(out, tables.measures_table(result))
    whole = [f"{m} {numbers.score(result.means.get(m))}" for m in tables.whole_measures(result)]
    out.print(Text("\n".join(["", *([", ".join(whole)] if whole else []), tables.outcomes_line(result)])))
    for warning in tables.warnings(result):
        out.print(Text(f"warning: {warning}", style="yellow"))
    _show(out, tables.types_table(result), "By query type")
    _show(out, tables.abstention_table(result), tables.no_result_title(result))
    _show(out, tables.hardest_table(result, hardest), "Hardest queries")
    _show_groups(out, tables.errors_table(result), "Queries that raised an error")
    out.print(Text(f"\n{tables.cost(result)}", style="dim"))


def show_table(table: Table, title: str = "") -> None:
    """Print a table, if it has rows."""
    _show(_console(), table, title)


def show_systems(systems: SystemsByDataset, primary: str, top: int = 20) -> None:
    """Print the best systems of a sweep on several datasets."""
    show_table(sweep_tables.systems_table(systems, top), f"Systems by dataset ({primary})")


def show_compare_command(board: Leaderboard, overrides: Sequence[str]) -> None:
    """Print the command that compares the best two combinations, once both have runs."""
    if command := sweep_tables.compare_command(board, overrides):
        line(f"compare the best two: {command}")


def show_leaderboard(board: Leaderboard, top: int = 20) -> None:
    """Print the best combinations, which of them really differ, and the failures."""
    out = _console()
    if board.dataset is not None:
        out.print(Text(sweep_tables.board_heading(board), style="bold"))
    if board.shared:
        out.print(
            Text(
                "all with " + " ".join(f"{key}={format_setting(value)}" for key, value in board.shared.items()),
                style="dim",
            )
        )
    table = sweep_tables.leaderboard_table(board)
    _show(out, Table(table.columns, table.rows[:top]), bold=sweep_tables.alike(board))
    if len(board.rows) > top:
        out.print(Text(f"and {len(board.rows) - top:,} more", style="dim"))
    out.print(Text(f"\n{sweep_tables.verdict(board)}"))
    for notice in sweep_tables.notices(board):
        out.print(Text(notice))
    if board.search is not None and len(board.search.objectives) > 1:
        _show(out, selection.front_table(board.search), "Pareto front")
    _show_groups(out, sweep_tables.failures_table(board), f"{len(board.failures):,} failed")


def show_plan(plan: Plan | SearchPlan) -> None:
    """Print what a sweep would do by stage, with its time and disk space, or the size of a search."""
    out = _console()
    if isinstance(plan, SearchPlan):
        line(plan_tables.describe_search(plan))
        return
    out.print(Text(plan_tables.heading(plan), style="bold"))
    if which := plan_tables.to_do(plan):
        out.print(Text(which))
    _show(out, plan_tables.stages_table(plan))
    _show(out, plan_tables.calls_table(plan))
    out.print(Text("\n".join(["", *plan_tables.closing(plan)])))


class Progress:
    """Shows how far a sweep, or other work on many like things, is, and what is logged meanwhile, on standard error.

    Live on a terminal, elsewhere a plain line every ten seconds. It is a context manager; `advance` and `note` are
    called inside. `before` is how many combinations were already finished it began, `best` which of them leads. `what`
    is what is counted, where it is not combinations.
    """

    def __init__(
        self,
        total: int,
        before: int = 0,
        best: str = "",
        clock: Callable[[], float] = time.monotonic,
        what: str = "",
    ) -> None:
        self._what = f" {what}" if what else ""
        self._total, self._before, self._clock, self._start = total, before, clock, clock()
        self._done = self._failed = 0
        self._best, self._stage = best, ""
        self._finished = deque[float](maxlen=RECENT + 1)
        self._screen = _Screen(self._draw, self._plain, clock, lambda: (self._done, self._total))
        self._notes = _Notes(self.note, self._screen.say)

    def __enter__(self) -> Self:
        """Begin to show and to listen."""
        self._notes.start()
        self._screen.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        """Leave one line that says how it ended."""
        self._screen.stop()
        self._notes.stop()
        ending = "done" if self._done == self._total else "stopped after"
        took = _roughly(self._clock() - self._start)
        before = [f"{self._before:,} were already finished"] if self._before else []
        self._screen.say("; ".join([f"{ending} {self._counts()} in {took}", *before, *self._leader()]))

    def advance(self, failed: bool = False, best: str | None = None) -> None:
        """Count one more; `best` says which leads now, where that changed."""
        self._done += 1
        self._failed += failed
        self._best = self._best if best is None else best
        self._stage = ""
        self._finished.append(self._clock())
        if self._done < self._total:
            self._screen.now_and_then()

    def no_more(self) -> None:
        """Take what is done for all there is, where fewer were to be found than were asked for."""
        self._total = self._done

    def note(self, text: str) -> None:
        """Say what is being done now."""
        self._stage = text
        self._screen.now_and_then()

    def remaining(self) -> float | None:
        """Return the seconds that are left at the pace of the last combinations, None before enough of them are done.

        What the first took is not part of a pace: it does what the others share.
        """
        if len(self._finished) < 2 or self._done < min(RECENT, ENOUGH * self._total):
            return None
        return (self._finished[-1] - self._finished[0]) / (len(self._finished) - 1) * (self._total - self._done)

    def _counts(self) -> str:
        failed = f", {self._failed:,} failed" if self._failed else ""
        return f"{self._done:,} of {self._total:,}{self._what}{failed}"

    def _so_far(self) -> str:
        left = self.remaining()
        about = f", about {_roughly(left)} left" if left else ""
        return f"{self._counts()}, {_roughly(self._clock() - self._start)} elapsed{about}"

    def _leader(self) -> list[str]:
        return [f"best: {self._best}"] if self._best else []

    def _plain(self) -> str:
        return "; ".join([self._so_far(), *self._leader(), *([self._stage] if self._stage else [])])

    def _draw(self) -> RenderableType:
        bar = Grid.grid(padding=(0, 1))
        bar.add_row(self._screen.spinner, ProgressBar(self._total, self._done, width=24), self._so_far())
        return Group(bar, *map(_indent, self._leader()), *([_indent(self._stage)] if self._stage else []))


class Working:
    """Shows that a piece of work goes on, and what is logged of it, on standard error.

    Live on a terminal, elsewhere a plain line every ten seconds. It is a context manager and leaves nothing behind.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock, self._start, self._stage = name, clock, clock(), ""
        self._screen = _Screen(self._draw, self._plain, clock)
        self._notes = _Notes(self.note, self._screen.say)

    def __enter__(self) -> Self:
        """Begin to show and to listen."""
        self._notes.start()
        self._screen.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        """Show and listen no more."""
        self._screen.stop()
        self._notes.stop()

    def note(self, text: str) -> None:
        """Say what is being done now."""
        self._stage = text
        self._screen.now_and_then()

    def _plain(self) -> str:
        passed = f"{self._name}, {_roughly(self._clock() - self._start)} elapsed"
        return ": ".join([passed, *([self._stage] if self._stage else [])])

    def _draw(self) -> RenderableType:
        first = Grid.grid(padding=(0, 1))
        first.add_row(self._screen.spinner, f"{self._name}, {_roughly(self._clock() - self._start)}")
        return Group(first, *([_indent(self._stage)] if self._stage else []))


class _Screen:
    """Draws on a terminal or in a notebook while it is started; elsewhere says a plain line now and then.

    `count` returns how much of the work is done, and how much there is.
    """

    def __init__(
        self,
        draw: Callable[[], RenderableType],
        plain: Callable[[], str],
        clock: Callable[[], float],
        count: Callable[[], tuple[int, int]] = lambda: (0, 0),
    ) -> None:
        self._draw, self._plain, self._clock, self._spoken = draw, plain, clock, clock()
        self._console, self._count = _console(stderr=True), count
        self._live: Live | None = None
        self._bar: notebook.ProgressBar | None = None
        self._ticking = threading.Thread(target=self._tick, daemon=True)
        self._turn, self._stopped = threading.Lock(), threading.Event()
        self.spinner = Spinner("dots")

    def start(self) -> None:
        """Begin to draw."""
        self._bar = notebook.open_bar(self._plain(), *self._count())
        is_terminal = self._console.is_terminal and not self._console.is_dumb_terminal
        if self._bar is None and is_terminal:  # Jupyter sets FORCE_COLOR, which makes its streams look like one
            self._live = Live(
                get_renderable=self._draw,
                console=self._console,
                transient=True,
                refresh_per_second=5,
                redirect_stdout=sys.stdout.isatty(),
            )
            self._live.start()
        else:
            self._ticking.start()

    def stop(self) -> None:
        """Take away what was drawn."""
        if self._live is not None:
            self._live.stop()
        else:
            self._stopped.set()
            self._ticking.join()
        if self._bar is not None:
            self._bar.close()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._console.print(Text(text), soft_wrap=True)

    def now_and_then(self) -> None:
        """Say the plain line, or draw the bar of a notebook, if there is no terminal and it is time again."""
        with self._turn:
            now, every = self._clock(), EVERY_S if self._bar is None else notebook.EVERY_S
            due = self._live is None and now - self._spoken >= every
            self._spoken = now if due else self._spoken
        if due and self._bar is not None:
            self._bar.draw(self._plain(), *self._count())
        elif due:
            self.say(self._plain())

    def _tick(self) -> None:
        """Say it also within a long stage, of which nothing is heard."""
        while not self._stopped.wait(EVERY_S):
            self.now_and_then()


class _Notes(logging.Handler):
    """Hands on what the retrievers and the store log, while it is started; warnings are to stay."""

    def __init__(self, note: Callable[[str], None], say: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._note, self._say = note, say
        self._levels: dict[logging.Logger, int] = {}

    def start(self) -> None:
        for logger in map(logging.getLogger, ("retrievers", "runner.datasets", "runner.store")):
            self._levels[logger] = logger.level
            logger.addHandler(self)
            logger.setLevel(logging.INFO)

    def stop(self) -> None:
        for logger, level in self._levels.items():
            logger.removeHandler(self)
            logger.setLevel(level)

    def emit(self, record: logging.LogRecord) -> None:
        (self._say if record.levelno >= logging.WARNING else self._note)(record.getMessage())


class _Patient(Console):
    """A console whose reader may have seen enough, or whose terminal may go: what is printed is lost then, no work."""

    def _check_buffer(self) -> None:
        try:
            super()._check_buffer()
        except OSError as error:
            if error.errno != errno.EIO:  # which a terminal answers that was closed
                raise
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Write to nowhere from now on, where rich would end the program."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def _indent(text: str) -> Text:
    return Text(f"  {text}", no_wrap=True, overflow="ellipsis")


def _console(stderr: bool = False) -> Console:
    """Return a console on the stream of this moment; colour and width are the terminal's, if it is one."""
    stream = sys.stderr if stderr else sys.stdout
    plain = not stream.isatty() and "COLUMNS" not in os.environ
    width = PLAIN_WIDTH if plain else None
    quiet = not stderr and (_silent.get() or _json_output is not None)
    return _Patient(stderr=stderr, width=width, quiet=quiet, force_jupyter=False, highlight=False, emoji=False)


def _roughly(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 59.5 else numbers.duration(seconds)


def _show(out: Console, table: Table, title: str = "", bold: Collection[int] = ()) -> None:
    """Print a table, if it has rows, with as many columns as there is room for; the `bold` rows stand out."""
    if not table.rows:
        return
    fitting = _fit_columns(table, out.width)
    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column, width in zip(fitting.columns, _widths(fitting, out.width), strict=True):
        side: JustifyMethod = "right" if column.numeric else "left"
        grid.add_column(Text(column.title), justify=side, width=width - 2, overflow="fold")
    for i, texts in enumerate(fitting.texts()):
        grid.add_row(*map(Text, texts), style="bold" if i in bold else "")
    out.print(Text(f"\n{title}" if title else "", style="bold"))
    out.print(grid)


def _show_groups(out: Console, table: Table, title: str) -> None:
    """Print what went wrong, each message once."""
    if table.rows:
        out.print(Text(f"\n{title}", style="bold red"))
    for message, count, names in table.texts():
        out.print(Padding(Text(f"{count} x {message}"), (0, 0, 0, 2), expand=False))
        out.print(Padding(Text(names, style="dim"), (0, 0, 0, 6), expand=False))


def _fit_columns(table: Table, room: int) -> Table:
    """Return a table without the columns that there is no room for, the most expendable first."""
    while any(column.spare for column in table.columns) and sum(_widths(table, 0)) > room:
        table = table.without(max(table.columns, key=lambda column: column.spare))
    return table


def _widths(table: Table, room: int) -> list[int]:
    """Return how wide each column is, two spaces included, so that all fit into the room, if they can.

    The widest text gives way first, so that a short one is not wrapped beside a long one that has room to spare.
    """
    texts = [[column.title for column in table.columns], *table.texts()]
    widths = [max(map(cell_len, column)) + 2 for column in zip(*texts, strict=True)]
    least = [
        width if column.least is None else column.least + 2 for column, width in zip(table.columns, widths, strict=True)
    ]
    while sum(widths) > room and (wrapped := [i for i, width in enumerate(widths) if width > least[i]]):
        widths[max(wrapped, key=widths.__getitem__)] -= 1
    return widths
