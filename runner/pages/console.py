"""Print lines, tables, sections, notes and errors for people at a terminal, or a document as JSON.

Results go to standard output, notes and errors to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import orjson
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from runner.config.environment import hide_values
from runner.pages.control import escape_json
from runner.pages.sections import ReportSection
from runner.pages.tables import Table
from runner.pages.terminal import open_console
from runner.pages.terminal import show_sections as print_sections
from runner.pages.terminal import show_table as print_table

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


def open_output() -> Console:
    """Return where results are printed: nowhere under `--json` and for callers that get them as values."""
    return open_console(quiet=_silent.get() or _json_output is not None)


def line(text: str) -> None:
    """Print a line."""
    open_output().print(hide_values(text), soft_wrap=True, markup=False, highlight=False, emoji=False)


def announce(text: str) -> None:
    """Print where a server can be reached: a line, under `--json` on standard error."""
    if _json_output is None:
        line(text)
    else:
        note(text)


def paragraph(text: str, indent: int = 0) -> None:
    """Print text, wrapped between words at the width of the terminal."""
    open_output().print(Padding(Text(hide_values(text)), (0, 0, 0, indent), expand=False))


def note(text: str) -> None:
    """Print a note as one line to standard error."""
    open_console(stderr=True).print(Text(" ".join(hide_values(text).split())), soft_wrap=True)


def error(text: str) -> None:
    """Print an error as one line to standard error; under `--json` it is the output of a command that has no other."""
    if _json_output is not None:
        _json_output.error = " ".join(text.split())
    message = Text.assemble(("error: ", "bold red"), " ".join(hide_values(text).split()))
    open_console(stderr=True).print(message, soft_wrap=True)


def show_table(table: Table, title: str = "") -> None:
    """Print a table, if it has rows."""
    print_table(open_output(), table, title)


def show_sections(sections: Iterable[ReportSection]) -> None:
    """Print the sections of a report that are for a terminal."""
    print_sections(open_output(), sections)
