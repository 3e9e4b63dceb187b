"""Find what a shell command does to files: the programs it runs, the files they name, and what their output lists.

It understands pipes, lists, redirects, `cd`, `xargs`, `find -exec`, `bash -c`, `ssh`, `docker exec` and loops; nothing
is executed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

from runner.features.traces.events.line_ranges import WHOLE, parse_selection, select_lines
from runner.features.traces.events.shell_programs import (
    is_plain,
    join,
    read_find,
    read_line_editor,
    read_program,
    read_script,
)
from runner.features.traces.events.shell_syntax import Simple, parse_command
from runner.features.traces.events.shell_use import ShellUse
from runner.features.traces.truth.paths import LONGEST

_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
_INTERPRETER = re.compile(r"python[\d.]*|node|ruby|perl|deno|bun")
_XARGS = ("-I", "-n", "-P", "-L", "-d", "-s")
_SSH = ("-i", "-p", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-E", "-b", "-c", "-m")
_EXEC = ("-u", "--user", "-w", "--workdir", "-e", "--env", "-c", "--container", "-n", "--namespace", "--index")
"""Options that take a value, of programs that run a command elsewhere."""
_CONTAINERS = frozenset(("docker", "podman", "kubectl", "oc", "docker-compose", "nerdctl"))
_PASS_ON = frozenset(("head", "tail", "sort", "uniq", "grep", "egrep", "fgrep", "rg", "tee", "cat", "less", "more"))
"""Programs that print the lines they read unchanged."""
_DEEPEST = 4  # commands within commands
_BUDGET = 1_000_000  # characters to read; each simple command costs its length plus this:
_COMMAND_COST = 20
_ENDS = frozenset(("}", "done", "fi", "esac"))  # the ends of compound commands


class _Budget:
    """How much more of a command may be read; each iteration of a loop and each nested command counts."""

    def __init__(self) -> None:
        self._left = _BUDGET

    def spend(self, simple: Simple) -> bool:
        """Pay for a simple command, and return whether the budget covered it."""
        self._left -= _COMMAND_COST + sum(map(len, simple.words)) + len(simple.given)
        return self._left >= 0


def find_uses(command: str, folder: str = "") -> list[ShellUse]:
    """Return what a command does to files, in order. Relative paths are joined with the folders it changes to.

    Only the beginning of a very long command, or of very many iterations of nested loops, is read.
    """
    return _read_command(command, folder, 0, _Budget())


def _read_command(command: str, folder: str, depth: int, budget: _Budget) -> list[ShellUse]:
    uses: list[ShellUse] = []
    pipeline = answered = 0  # where the uses of the pipeline start, and those of the last one that is not an `echo`
    head = handed = ""  # the line that an `echo` prints, and the text that it pipes into the next program
    folders = [folder]  # of the shell, and of each subshell within it
    for simple in takewhile(budget.spend, parse_command(command)):
        words = simple.words
        piped = simple.operator.startswith("|") and simple.operator != "||"
        del folders[simple.level + 1 :]
        folders += folders[-1:] * (simple.level + 1 - len(folders))
        pipeline = pipeline if piped else len(uses)
        uses[pipeline:] = [_pipe(use, words) for use in uses[pipeline:]]
        line = _find_echo(words)
        begins = words and line is None and not piped and words[0] not in _ENDS
        answered = len(uses) if begins else answered
        if words and words[0] in ("cd", "pushd"):
            target = join(folders[-1], words[1]) if len(words) == 2 and is_plain(words[1]) else folders[-1]
            folders[-1] = target if len(target) <= LONGEST else folders[-1]
        elif line is not None and simple.operator == "||" and len(uses) > answered:
            uses[-1] = replace(uses[-1], otherwise=line)
        elif line is not None:
            head = head if simple.piped or simple.writes else line or head
        own = _read_simple(simple, folders[-1], piped, depth, budget, handed)
        handed = line or "" if simple.piped else ""
        if own and not own[0].head:
            own[0], head = replace(own[0], head=head), ""
        uses += own
        if written := tuple(join(folders[-1], path) for path in simple.writes if is_plain(path)):
            uses.append(ShellUse("file_write", written))
    return uses


def _read_simple(simple: Simple, folder: str, piped: bool, depth: int, budget: _Budget, handed: str) -> list[ShellUse]:
    words = [*simple.words, *handed.split()] if simple.words[:1] == ["xargs"] else simple.words
    uses = _read_program(words, folder, piped, depth, budget, simple.given) if words else []
    if simple.writes:
        uses = [replace(use, lists=None, lines=()) for use in uses]
    if simple.writes or simple.piped:
        uses = [replace(use, answers=False) for use in uses]
    read = tuple(join(folder, path) for path in simple.reads if is_plain(path))
    return uses + ([ShellUse("file_read", read, None, folder, shows=True)] if read else [])


def _pipe(use: ShellUse, reader: Sequence[str]) -> ShellUse:
    """Return the use of a program whose output is piped into another, which may count it or transform it."""
    lists = None if reader[:1] == ["wc"] else "counts" if use.lists and _counts(reader) else use.lists
    unchanged = not reader or reader[0] in _PASS_ON
    chosen = parse_selection(posixpath.basename(reader[0]), reader[1:]) if reader else WHOLE
    joined = len(use.files) > 1 and chosen != WHOLE  # the second program counts on from file to file
    shown = () if joined else select_lines(use.lines, chosen)
    return replace(use, lists=lists, prefixes=use.prefixes if unchanged else (), lines=shown)


def _counts(words: Sequence[str]) -> bool:
    return words[:1] == ["uniq"] and any(re.fullmatch("-[a-z]*c[a-z]*", word) for word in words)


def _find_echo(words: Sequence[str]) -> str | None:
    """Return the line that an `echo` or a `printf` prints; None for any other program."""
    if words[:1] == ["printf"]:
        return words[1].replace("\\n", "\n").strip("\n") if len(words) > 1 else ""
    if words[:1] != ["echo"]:
        return None
    printed = [word for word in words[1:] if not re.fullmatch("-[neE]+", word)]
    return " ".join(printed).replace("\\n", "\n").strip("\n")


def _read_program(
    words: list[str], folder: str, piped: bool, depth: int, budget: _Budget, given: str = ""
) -> list[ShellUse]:
    name, arguments = posixpath.basename(words[0]), words[1:]
    if depth < _DEEPEST:
        if name in _SHELLS and (script := _after_c(arguments) or given):
            return _read_command(script, folder, depth + 1, budget)
        if name == "xargs" and (inner := _after_options(arguments, _XARGS)):
            return _read_program([*inner, "{}"], folder, False, depth + 1, budget)
        if name == "ssh":
            return _read_command(" ".join(_after_options(arguments, _SSH)[1:]) or given, "", depth + 1, budget)
        if name in _CONTAINERS and "exec" in arguments:
            return _read_container(arguments[arguments.index("exec") + 1 :], depth, budget)
        run = _find_exec(arguments) if name == "find" else []
        if run and (uses := _read_program(run, folder, False, depth + 1, budget)):
            return uses
    if name == "find":
        return [read_find(arguments, folder)]
    if _INTERPRETER.fullmatch(name):
        return read_script(_after_c(arguments, "ce") or given, folder) or read_line_editor(arguments, folder)
    return read_program(name, arguments, folder, piped)


def _read_container(arguments: list[str], depth: int, budget: _Budget) -> list[ShellUse]:
    rest = _after_options(arguments, _EXEC)
    inner = rest[rest.index("--") + 1 :] if "--" in rest else rest[1:]
    folders = [word for option, word in pairwise(arguments) if option in ("-w", "--workdir")]
    return _read_program(inner, folders[0] if folders else "", False, depth + 1, budget) if inner else []


def _find_exec(arguments: Sequence[str]) -> list[str]:
    place = next((place for place, word in enumerate(arguments) if word in ("-exec", "-execdir", "-ok")), None)
    return [] if place is None else _until_end(arguments[place + 1 :])


def _after_c(arguments: Sequence[str], letters: str = "c") -> str | None:
    for place, word in enumerate(arguments[:-1]):
        if word.startswith("-") and not word.startswith("--") and word.endswith(tuple(letters)):
            return arguments[place + 1]
    return None


def _after_options(arguments: Sequence[str], valued: Sequence[str]) -> list[str]:
    place = 0
    while place < len(arguments) and arguments[place].startswith("-"):
        place += 2 if arguments[place] in valued else 1
    return list(arguments[place:])


def _until_end(words: Sequence[str]) -> list[str]:
    ends = [place for place, word in enumerate(words) if word in (";", "+")]
    return list(words[: ends[0]] if ends else words)
