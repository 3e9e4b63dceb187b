"""What a shell command does to files: which programs it runs, which files they name, and what their output lists.

It is read, not run: pipes, lists, redirects, `cd`, `xargs`, `find -exec`, `bash -c`, `ssh`, `docker exec` and loops are
understood. Knows nothing of tools or of results, and of programs only which run others.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

from runner.agents.events.shell_programs import edited_by, found_by, is_plain, joined, named_by, opened_by
from runner.agents.events.shell_syntax import Simple, commands
from runner.agents.events.shell_use import Use
from runner.agents.truth.paths import LONGEST

_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
_INTERPRETER = re.compile(r"python[\d.]*|node|ruby|perl|deno|bun")
_XARGS = ("-I", "-n", "-P", "-L", "-d", "-s")
_SSH = ("-i", "-p", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-E", "-b", "-c", "-m")
_EXEC = ("-u", "--user", "-w", "--workdir", "-e", "--env", "-c", "--container", "-n", "--namespace", "--index")
"""Options that take a value, of what runs a command elsewhere."""
_CONTAINERS = frozenset(("docker", "podman", "kubectl", "oc", "docker-compose", "nerdctl"))
_PASS_ON = frozenset(("head", "tail", "sort", "uniq", "grep", "egrep", "fgrep", "rg", "tee", "cat", "less", "more"))
"""Programs that print the lines that they read as they are."""
_DEEPEST = 4  # commands within commands
_MOST_READ = 1_000_000  # characters, of which a simple command counts so many more than it has:
_A_COMMAND = 20
_ENDS = frozenset(("}", "done", "fi", "esac"))  # of what is joined to the next command as a whole


class _Room:
    """How much may yet be read of a command: what its loops run again counts again, and what is within it too."""

    def __init__(self) -> None:
        self._left = _MOST_READ

    def has(self, simple: Simple) -> bool:
        """Take the room of a simple command; tell whether there was as much."""
        self._left -= _A_COMMAND + sum(map(len, simple.words)) + len(simple.given)
        return self._left >= 0


def uses(command: str, folder: str = "") -> list[Use]:
    """Return what a command does to files, in its order. Relative paths are joined with the folders it changes to.

    What is beyond the beginning of a very long command, or of very many turns of loops within loops, is left out.
    """
    return _all(command, folder, 0, _Room())


def _all(command: str, folder: str, depth: int, room: _Room) -> list[Use]:
    found: list[Use] = []
    pipeline = answered = 0  # where the uses begin of a pipeline, and of the last one that is no `echo`
    head = handed = ""  # what an `echo` prints, and what one hands to the program after it
    folders = [folder]  # of the shell, and of each subshell within it
    for simple in takewhile(room.has, commands(command)):
        words = simple.words
        piped = simple.operator.startswith("|") and simple.operator != "||"
        del folders[simple.level + 1 :]
        folders += folders[-1:] * (simple.level + 1 - len(folders))
        pipeline = pipeline if piped else len(found)
        found[pipeline:] = [_read_on(use, words) for use in found[pipeline:]]
        said = _said(words)
        begins = words and said is None and not piped and words[0] not in _ENDS
        answered = len(found) if begins else answered
        if words and words[0] in ("cd", "pushd"):
            target = joined(folders[-1], words[1]) if len(words) == 2 and is_plain(words[1]) else folders[-1]
            folders[-1] = target if len(target) <= LONGEST else folders[-1]
        elif said is not None and simple.operator == "||" and len(found) > answered:
            found[-1] = replace(found[-1], otherwise=said)
        elif said is not None:
            head = head if simple.piped or simple.writes else said or head
        done = _done(simple, folders[-1], piped, depth, room, handed)
        handed = said or "" if simple.piped else ""
        if done and not done[0].head:
            done[0], head = replace(done[0], head=head), ""
        found += done
        if written := tuple(joined(folders[-1], path) for path in simple.writes if is_plain(path)):
            found.append(Use("file_write", written))
    return found


def _done(simple: Simple, folder: str, piped: bool, depth: int, room: _Room, handed: str) -> list[Use]:
    words = [*simple.words, *handed.split()] if simple.words[:1] == ["xargs"] else simple.words
    done = _uses(words, folder, piped, depth, room, simple.given) if words else []
    if simple.writes:
        done = [replace(use, lists=None) for use in done]
    if simple.writes or simple.piped:
        done = [replace(use, answers=False) for use in done]
    read = tuple(joined(folder, path) for path in simple.reads if is_plain(path))
    return done + ([Use("file_read", read, None, folder, shows=True)] if read else [])


def _read_on(use: Use, reader: Sequence[str]) -> Use:
    """Return what a program does whose output another one reads, which may count it, or print it as something else."""
    lists = None if reader[:1] == ["wc"] else "counts" if use.lists and _counts(reader) else use.lists
    kept = not reader or reader[0] in _PASS_ON
    return replace(use, lists=lists, within=use.within if kept else ())


def _counts(words: Sequence[str]) -> bool:
    return words[:1] == ["uniq"] and any(re.fullmatch("-[a-z]*c[a-z]*", word) for word in words)


def _said(words: Sequence[str]) -> str | None:
    """Return the line that an `echo` or a `printf` prints; None for any other program."""
    if words[:1] == ["printf"]:
        return words[1].replace("\\n", "\n").strip("\n") if len(words) > 1 else ""
    if words[:1] != ["echo"]:
        return None
    said = [word for word in words[1:] if not re.fullmatch("-[neE]+", word)]
    return " ".join(said).replace("\\n", "\n").strip("\n")


def _uses(words: list[str], folder: str, piped: bool, depth: int, room: _Room, given: str = "") -> list[Use]:
    name, arguments = posixpath.basename(words[0]), words[1:]
    if depth < _DEEPEST:
        if name in _SHELLS and (script := _after_c(arguments) or given):
            return _all(script, folder, depth + 1, room)
        if name == "xargs" and (inner := _after_options(arguments, _XARGS)):
            return _uses([*inner, "{}"], folder, False, depth + 1, room)
        if name == "ssh":
            return _all(" ".join(_after_options(arguments, _SSH)[1:]) or given, "", depth + 1, room)
        if name in _CONTAINERS and "exec" in arguments:
            return _within_container(arguments[arguments.index("exec") + 1 :], depth, room)
        run = _run_by_find(arguments) if name == "find" else []
        if run and (found := _uses(run, folder, False, depth + 1, room)):
            return found
    if name == "find":
        return [found_by(arguments, folder)]
    if _INTERPRETER.fullmatch(name):
        return opened_by(_after_c(arguments, "ce") or given, folder) or edited_by(arguments, folder)
    return named_by(name, arguments, folder, piped)


def _within_container(arguments: list[str], depth: int, room: _Room) -> list[Use]:
    rest = _after_options(arguments, _EXEC)
    inner = rest[rest.index("--") + 1 :] if "--" in rest else rest[1:]
    folders = [word for option, word in pairwise(arguments) if option in ("-w", "--workdir")]
    return _uses(inner, folders[0] if folders else "", False, depth + 1, room) if inner else []


def _run_by_find(arguments: Sequence[str]) -> list[str]:
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
