"""What one program of a shell command does to files, as far as the command says: the word that readers of both share.

Knows nothing of how a command is read, nor of what was printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runner.agents.events.tools import Category

Lists = Literal["listing", "tree", "matches", "counts", "diff", "changes", "status", "heads"]
"""What output shows files as.

Paths and names, a line each or in columns; names that are indented and drawn as a tree; `path:line:text`; numbers
before a path; a diff; the paths of one, each on a line, maybe after a letter; `git status`; `==> path <==`.
"""


@dataclass(frozen=True)
class Use:
    """What one program does to files: those that it names, and those that its output lists.

    `cwd` is the folder that it runs in, as far as the command says; `inside` the one of the bare names that it lists,
    None where they may be of several, and `names` tells that it lists only these, sorted. `within` is what the paths
    that it lists begin with, one of these; of any path where it is empty. `answers` tells that what it names and does
    not print is not there. `shows` tells that its output is what files hold, which may look like anything. `head` is
    the line that an `echo` prints before it, and `otherwise` what `|| echo ...` says in its place when it fails.
    """

    category: Category
    files: tuple[str, ...] = ()
    lists: Lists | None = None
    cwd: str = ""
    inside: str | None = None
    names: bool = False
    within: tuple[str, ...] = ()
    answers: bool = False
    shows: bool = False
    head: str = ""
    otherwise: str = ""
