"""Describe what one program of a shell command does to files, as far as the command shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runner.features.traces.events.line_ranges import LineRange
from runner.features.traces.events.tools import Category

Lists = Literal["listing", "tree", "matches", "counts", "diff", "changes", "status", "heads"]
"""The form in which output lists files.

In this order: paths and names, one per line or in columns; a drawn tree; `path:line:text`; numbers before a path; a
diff; the paths of a diff, one per line, optionally after a letter; `git status`; `==> path <==`.
"""


@dataclass(frozen=True)
class ShellUse:
    """What one program does to files: those that it names, and those that its output lists.

    `cwd` is its working directory, as far as the command shows. `inside` is the folder of the bare names that it lists,
    None if there may be several. The paths that it lists start with one of `prefixes`; if that is empty, with anything.
    With `answers`, a file that it names and does not print does not exist. With `shows`, its output is the content of
    files, which may look like anything. `lines` are those that it prints of each file that it names, empty if unknown.
    `head` is the line that an `echo` prints before it, and `otherwise` the line that `|| echo ...` prints if it fails.
    """

    category: Category
    files: tuple[str, ...] = ()
    lists: Lists | None = None
    cwd: str = ""
    inside: str | None = None
    prefixes: tuple[str, ...] = ()
    answers: bool = False
    shows: bool = False
    lines: tuple[LineRange, ...] = ()
    head: str = ""
    otherwise: str = ""
