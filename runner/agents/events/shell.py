"""What a shell command does to files: which programs it runs, which files they name, and what their output lists.

It is read, not run: pipes, lists, redirects, `cd`, `xargs`, `find -exec`, `bash -c` and loops are understood; globs and
what substitutes a command's output are not, and name no file; of a script in another language, what it opens by name.
Knows nothing of tools or of results.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from runner.agents.events.git_paths import rooted
from runner.agents.events.shell_syntax import commands
from runner.agents.events.tools import Category
from runner.agents.truth.paths import LONGEST, has_spaces, looks_like_file

Lists = Literal["listing", "matches", "diff", "heads"]
"""What output shows files as: paths and names, a line each or in columns; `path:line:text`; a diff; `==> path <==`."""


@dataclass(frozen=True)
class Use:
    """What one program does to files: those that it names, and those that its output lists.

    `cwd` is the folder that it runs in, as far as the command says; `inside` the one of the bare names that it lists,
    None where they may be of several, and `names` tells that it lists only these, sorted. `shows` tells that its output
    is what files hold, which may look like anything. `head` is the line that an `echo` prints before it, and
    `otherwise` what `|| echo ...` says in its place when it fails.
    """

    category: Category
    files: tuple[str, ...] = ()
    lists: Lists | None = None
    cwd: str = ""
    inside: str | None = None
    names: bool = False
    shows: bool = False
    head: str = ""
    otherwise: str = ""


@dataclass(frozen=True)
class _Program:
    """How a program takes its arguments: `script` is how many come before the files, `valued` options take a value."""

    category: Category
    script: int = 0
    valued: frozenset[str] = frozenset()
    scripted: frozenset[str] = frozenset()  # options that give the script


_GREP = _Program(
    "code_search",
    1,
    frozenset(("-A", "-B", "-C", "-m", "-d", "-D", "-g", "-t", "-T", "-M", "-j", "--glob", "--type", "--max-count")),
    frozenset(("-e", "-f", "--regexp", "--file")),
)
_SCRIPTED = _Program("file_read", 1, frozenset(("-F", "-v", "-l")), frozenset(("-e", "-f", "--expression", "--file")))
_READ = _Program("file_read")
_PROGRAMS = {
    **dict.fromkeys(("cat", "less", "more", "bat", "nl", "tac", "diff", "xxd", "od", "strings", "uniq", "comm"), _READ),
    "cut": _Program("file_read", 0, frozenset(("-d", "-f", "-c", "-b"))),
    "sort": _Program("file_read", 0, frozenset(("-k", "-t", "-o", "-S", "-T"))),
    **dict.fromkeys(("head", "tail"), _Program("file_read", 0, frozenset(("-n", "-c", "--lines", "--bytes")))),
    **dict.fromkeys(("sed", "awk", "gawk", "jq", "yq"), _SCRIPTED),
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"), _GREP),
    **dict.fromkeys(("wc", "stat", "file", "du"), _Program("file_search", 0, frozenset(("-c", "--format")))),
    **dict.fromkeys(("tee", "touch"), _Program("file_write")),
}
_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
_INTERPRETER = re.compile(r"python[\d.]*|node|ruby|perl|deno|bun")
_OPENED = re.compile(  # by a script: a name, and the mode or what is done with it
    r"""\b(?P<how>open|Path|read(?:lines|File(?:Sync)?)?|writeFile(?:Sync)?)\(\s*r?(?P<quote>['"])(?P<path>[^'"\n]+)(?P=quote)
        (?:\s*,\s*(?:mode\s*=\s*)?['"](?P<mode>[rwaxbt+]+)['"])?(?:\s*\)\s*\.(?P<then>\w+))?""",
    re.VERBOSE,
)
_UNSORTED = frozenset("tSUfXvrd")  # options of `ls`
_NOT_PLAIN = re.compile(r"[$*?\[\]{}`<>|\s\"']|://|^/dev/")
_DEEPEST = 4  # commands within commands
_ENDS = frozenset(("}", "done", "fi", "esac"))  # of what is joined to the next command as a whole


def uses(command: str, folder: str = "", depth: int = 0) -> list[Use]:
    """Return what a command does to files, in its order. Relative paths are joined with the folders it changes to."""
    found: list[Use] = []
    pipeline = answered = 0  # where the uses begin of a pipeline, and of the last one that is no `echo`
    head = ""
    for simple in commands(command):
        words = simple.words
        piped = simple.operator.startswith("|") and simple.operator != "||"
        pipeline = pipeline if piped else len(found)
        said = _said(words)
        begins = words and said is None and not piped and words[0] not in _ENDS
        answered = len(found) if begins else answered
        done: list[Use] = []
        if words and words[0] in ("cd", "pushd"):
            folder = _joined(folder, words[1]) if len(words) == 2 and _is_plain(words[1]) else folder
        elif said is not None and simple.operator == "||" and len(found) > answered:
            found[-1] = replace(found[-1], otherwise=said)
        elif said is not None:
            head = head if simple.piped or simple.writes else said or head
        elif words:
            done = _uses(words, folder, piped, depth, simple.given)
        if read := tuple(_joined(folder, path) for path in simple.reads if _is_plain(path)):
            done.append(Use("file_read", read, None, folder, shows=True))
        if done and not done[0].head:
            done[0], head = replace(done[0], head=head), ""
        found += done
        if piped and words[:1] == ["wc"]:  # what is counted is not listed
            found[pipeline:] = [replace(use, lists=None) for use in found[pipeline:]]
        if written := tuple(_joined(folder, path) for path in simple.writes if _is_plain(path)):
            found.append(Use("file_write", written))
    return found


def _said(words: Sequence[str]) -> str | None:
    """Return the line that an `echo` or a `printf` prints; None for any other program."""
    if words[:1] == ["printf"]:
        return words[1].replace("\\n", "\n").strip("\n") if len(words) > 1 else ""
    if words[:1] != ["echo"]:
        return None
    said = [word for word in words[1:] if not re.fullmatch("-[neE]+", word)]
    return " ".join(said).replace("\\n", "\n").strip("\n")


def _uses(words: list[str], folder: str, piped: bool, depth: int, given: str = "") -> list[Use]:
    name, arguments = posixpath.basename(words[0]), words[1:]
    if depth < _DEEPEST:
        if name in _SHELLS and (script := _after_c(arguments) or given):
            return uses(script, folder, depth + 1)
        if name == "xargs" and (inner := _after_options(arguments, ("-I", "-n", "-P", "-L", "-d", "-s"))):
            return _uses([*inner, "{}"], folder, False, depth + 1)
        if name == "find":
            return _find(arguments, folder, depth)
    if name == "git":
        return _git(arguments, folder)
    if name in ("fd", "fdfind"):
        return [Use("file_search", (), "listing", folder)]
    if name == "ls":
        return [_ls(arguments, folder)]
    if name in ("cp", "mv") and len(arguments) > 1:
        source, target = arguments[-2:]
        return [Use("file_write", (_joined(folder, target),))] if looks_like_file(target) and _is_plain(source) else []
    if _INTERPRETER.fullmatch(name):
        return _script(_after_c(arguments, "ce") or given, folder)
    return _program(_PROGRAMS[name], name, arguments, folder, piped) if name in _PROGRAMS else []


def _script(script: str, folder: str) -> list[Use]:
    """Return what a script in another language opens by name, to read or to write."""
    read: dict[str, None] = {}
    written: dict[str, None] = {}
    for each in _OPENED.finditer(script):
        then = each["then"] or ""
        writes = bool(each["mode"] and {*each["mode"]} & {*"wax+"}) or "write" in (each["how"] + then)
        opened = each["how"] != "Path" or then.startswith(("open", "read", "write"))
        if opened and _is_plain(each["path"]):
            (written if writes else read)[_joined(folder, each["path"])] = None
    found = [Use("file_read", tuple(read), None, folder, shows=True)] if read else []
    return found + ([Use("file_write", tuple(written))] if written else [])


def _program(program: _Program, name: str, arguments: Sequence[str], folder: str, piped: bool) -> list[Use]:
    options, operands = _parted(arguments, program)
    if not program.scripted & {option.partition("=")[0] for option in options}:
        operands = operands[program.script :]
    files = tuple(_joined(folder, path) for path in operands if _is_plain(path))
    if program.category == "code_search":
        return _search(name, options, operands, files, folder, piped)
    if name == "sed" and any(option.startswith(("-i", "--in-place")) for option in options):
        return [Use("file_write", files)]
    if program.category == "file_read":
        return [Use("file_read", files, "heads", folder, shows=True)] if operands else []
    if program.category == "file_search":
        files = tuple(path for path in files if looks_like_file(path))
    return [Use(program.category, files, None, folder)] if files else []


def _search(
    name: str, options: Sequence[str], operands: Sequence[str], files: tuple[str, ...], folder: str, piped: bool
) -> list[Use]:
    if not operands and (piped or name not in ("rg", "ag", "ack")) and not _flags(options) & {"r", "R"}:
        return []  # it reads what another program says
    if _flags(options) & {"q"} or "--quiet" in options:
        return []
    named = tuple(path for path in files if looks_like_file(path))
    alone = len(operands) == 1 and len(named) == 1 and not _flags(options) & {"H", "r", "R"}
    unnamed = alone or _flags(options) & {"h", "c"} or "--no-filename" in options
    return [Use("code_search", named, None if unnamed and not _flags(options) & {"l"} else "matches", folder)]


def _find(arguments: Sequence[str], folder: str, depth: int) -> list[Use]:
    place = next(
        (place for place, word in enumerate(arguments) if word in ("-exec", "-execdir", "-ok")), len(arguments)
    )
    inner = _until_end(arguments[place + 1 :])
    if inner and (found := _uses(inner, folder, False, depth + 1)):
        return found
    starts = [place for place, word in enumerate(arguments) if word.startswith(("-", "(", "!"))]
    roots = arguments[: starts[0]] if starts else arguments
    inside = _joined(folder, roots[0]) if len(roots) == 1 and _is_plain(roots[0]) else None
    folders = any(arguments[place : place + 2] == ["-type", "d"] for place in range(len(arguments)))
    return [Use("file_search", (), None if folders else "listing", folder, inside)]


def _ls(arguments: Sequence[str], folder: str) -> Use:
    options, operands = _parted(arguments, _READ)
    files = tuple(_joined(folder, path) for path in operands if _is_plain(path) and looks_like_file(path))
    folders = [path for path in operands if not looks_like_file(path)]
    listed = [_joined(folder, path) for path in folders] or [folder]
    alone = len(operands) < 2 and (listed[0] == folder or _is_plain(listed[0]))
    names = alone and len(folders) == len(operands) and not _flags(options) & _UNSORTED
    return Use("file_search", files, "listing", folder, listed[0] if alone else None, names)


def _git(arguments: list[str], folder: str) -> list[Use]:
    while arguments and arguments[0].startswith("-"):
        valued = arguments[0] in ("-C", "-c") and len(arguments) > 1
        folder = _joined(folder, arguments[1]) if valued and arguments[0] == "-C" else folder
        arguments = arguments[2 if valued else 1 :]
    verb, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    paths = (
        rest[rest.index("--") + 1 :]
        if "--" in rest
        else [word for word in rest if looks_like_file(word) and not word.endswith("HEAD")]
    )
    files = tuple(_joined(folder, path) for path in paths if _is_plain(path))
    if verb == "grep":
        return [Use("code_search", (), "matches", folder)]
    if verb in ("ls-files", "ls-tree"):
        return [Use("file_search", (), "listing", folder, folder)]
    if verb == "show" and (revisions := [word.partition(":")[2] for word in rest if ":" in word and word[0] != "-"]):
        plain = [path for path in revisions if _is_plain(path)]
        shown = tuple(_joined(folder, path) if path[0] == "." else rooted([path], folder)[0] for path in plain)
        return [Use("file_read", shown, None, folder, shows=True)]
    if verb in ("show", "diff", "log", "blame", "whatchanged"):
        return [Use("commit_search", files, "diff", folder)]
    return []


def _parted(arguments: Sequence[str], program: _Program) -> tuple[list[str], list[str]]:
    options: list[str] = []
    operands: list[str] = []
    takes = False
    for place, word in enumerate(arguments):
        if takes:
            takes = False
        elif word == "--":
            return options, operands + list(arguments[place + 1 :])
        elif word.startswith("-") and len(word) > 1:
            options.append(word)
            takes = word in program.valued or word in program.scripted
        else:
            operands.append(word)
    return options, operands


def _flags(options: Sequence[str]) -> set[str]:
    return {flag for option in options if not option.startswith("--") for flag in option[1:]}


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


def _is_plain(path: str) -> bool:
    if not 0 < len(path) <= LONGEST or path[0] in "-~&":
        return False
    return not _NOT_PLAIN.search(path.replace(" ", "_") if has_spaces(path) else path)


def _joined(folder: str, path: str) -> str:
    return posixpath.join(folder, path)
