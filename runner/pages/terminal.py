"""Writes to the terminal: its streams, and tables that fit its width. Every line of the program passes through here."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Collection, Iterable

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from runner.pages.control import clean_text
from runner.pages.sections import ReportSection
from runner.pages.tables import Table

PLAIN_WIDTH = 120
"""The width of the output, in characters, where it does not go to a terminal."""


def open_console(stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console on the current standard output or error; a terminal decides colour and width."""
    stream = sys.stderr if stderr else sys.stdout
    plain = not stream.isatty() and "COLUMNS" not in os.environ
    width = PLAIN_WIDTH if plain else None
    return _Terminal(
        stderr=stderr, width=width, quiet=quiet, force_jupyter=False, highlight=False, emoji=False, markup=False
    )


def show_sections(out: Console, sections: Iterable[ReportSection], most: int | None = None) -> None:
    """Print the sections that are for a terminal, with at most so many rows of each table."""
    for section in sections:
        for table in section.tables.values() if section.printed else ():
            if section.printed == "errors":
                show_groups(out, table, section.title)
            else:
                show_table(out, table, section.title, most=most)


def show_table(
    out: Console, table: Table, title: str = "", bold: Collection[int] = (), most: int | None = None, legend: str = ""
) -> None:
    """Print a table, unless it is empty: the columns that fit, `most` rows at most, those in `bold` emphasized.

    Below it stand a legend, the number of other rows, and the columns that do not fit.
    """
    if not table.rows:
        return
    rest, table = len(table.rows) - len(table.rows[:most]), Table(table.columns, table.rows[:most])
    fitting = _fit_columns(table, out.width)
    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column, width in zip(fitting.columns, _widths(fitting, out.width), strict=True):
        side: JustifyMethod = "right" if column.numeric else "left"
        grid.add_column(Text(column.title), justify=side, width=width - 2, overflow="fold")
    for i, texts in enumerate(fitting.texts()):
        grid.add_row(*map(Text, texts), style="bold" if i in bold else "")
    out.print(Text(f"\n{title}" if title else "", style="bold"))
    out.print(grid)
    notes = [legend, f"and {rest:,} more" if rest else ""]
    if hidden := [column.title for column in table.columns if column not in fitting.columns]:
        notes.append(f"a wider terminal also shows {', '.join(hidden)}")
    if any(notes):
        out.print(Text("; ".join(filter(None, notes)), style="dim"))


def show_groups(out: Console, table: Table, title: str) -> None:
    """Print errors: each message once, with what it concerns."""
    if table.rows:
        out.print(Text(f"\n{title}", style="bold red"))
    for message, count, names in table.texts():
        out.print(Padding(Text(f"{count} x {message}"), (0, 0, 0, 2), expand=False))
        out.print(Padding(Text(names, style="dim"), (0, 0, 0, 6), expand=False))


def _fit_columns(table: Table, room: int) -> Table:
    """Return a table whose columns fit; those with the highest `spare` are dropped first."""
    while any(column.spare for column in table.columns) and sum(_widths(table, 0)) > room:
        table = table.without(max(table.columns, key=lambda column: column.spare))
    return table


def _widths(table: Table, room: int) -> list[int]:
    """Return the width of each column, with two spaces between columns, so that all fit if possible.

    The widest column is narrowed first, so that a short text is not wrapped next to a long one.
    """
    texts = [[column.title for column in table.columns], *table.texts()]
    widths = [max(map(cell_len, column)) + 2 for column in zip(*texts, strict=True)]
    least = [
        width if column.least is None else column.least + 2 for column, width in zip(table.columns, widths, strict=True)
    ]
    while sum(widths) > room and (wrapped := [i for i, width in enumerate(widths) if width > least[i]]):
        widths[max(wrapped, key=widths.__getitem__)] -= 1
    return widths


class _Terminal(Console):
    """A console that obeys no text, and that outlives its reader.

    Of the texts that it prints, only its own styles reach the terminal. What it prints after a pipe or terminal has
    closed is lost, not an error.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of something to print, without control characters and links in its texts."""
        for text, style, control in super().render(renderable, options):
            if control:
                yield Segment(text, style, control)
            else:
                yield Segment(clean_text(text), style.update_link(None) if style and style.link else style)

    def _check_buffer(self) -> None:
        try:
            super()._check_buffer()
        except OSError as error:
            if error.errno != errno.EIO:  # the error that a closed terminal returns
                raise
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Write to the null device from now on; rich would end the program."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.file.fileno())
        os.close(null)
