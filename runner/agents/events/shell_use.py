"""What one program of a shell command does to files, as far as the command shows.

Knows nothing of how a command is read, nor of its output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runner.agents.events.tools import Category

Lists = Literal["listing", "tree", "matches", "counts", "diff", "changes", "status", "heads"]
"""The form in which output lists files.

Paths and names, one per line or in columns; a drawn tree; `path:line:text`; numbers before a path; a diff; the paths of
a diff, one per line, maybe after a letter; `git status`; `==> path <==`.
"""


@dataclass(frozen=True)
class ShellUse:
    """What one program does to files: those that it names, and those that its output lists.

    `cwd` is the folder that it runs in, as far as the command shows. `inside` is the folder of the bare names that it
    lists, None if there may be several; with `names`, it lists only bare names, sorted. The paths that it lists begin
    with one of `prefixes`, or with anything if that is empty. With `answers`, a file that it names and does not print
    does not exist. With `shows`, its output is the content of files, which may look like anything. `head` is the line
    that an `echo` prints before it, and `otherwise` the line that `|| echo ...` prints when it fails.
    """

    category: Category
    files: tuple[str, ...] = ()
    lists: Lists | None = None
    cwd: str = ""
    inside: str | None = None
    names: bool = False
    prefixes: tuple[str, ...] = ()
    answers: bool = False
    shows: bool = False
    head: str = ""
    otherwise: str = ""
