"""Which files a program names in its arguments, and as what its output lists files: readers, searches, listings, git.

Globs and what substitutes a command's output name no file. Knows nothing of pipes, of commands within commands, or of
results.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from runner.agents.events.git_paths import rooted
from runner.agents.events.shell_use import Lists, Use
from runner.agents.events.tools import Category
from runner.agents.truth.paths import LONGEST, has_spaces, looks_like_file


@dataclass(frozen=True)
class _Program:
    """How a program takes its arguments: `script` is how many come before the files, `valued` options take a value."""

    category: Category
    script: int = 0
    valued: frozenset[str] = frozenset()
    scripted: frozenset[str] = frozenset()  # options that give the script
    lists: Lists | None = None


_GREP = _Program(
    "code_search",
    1,
    frozenset(("-A", "-B", "-C", "-m", "-d", "-D", "-g", "-t", "-T", "-M", "-j", "--glob", "--type", "--max-count")),
    frozenset(("-e", "-f", "--regexp", "--file")),
)
_SCRIPTED = _Program("file_read", 1, frozenset(("-F", "-v", "-l")), frozenset(("-e", "-f", "--expression", "--file")))
_READ = _Program("file_read")
_COUNT = _Program("file_search", lists="counts")
_PROGRAMS = {
    **dict.fromkeys(("cat", "less", "more", "nl", "tac", "diff", "cmp", "comm", "uniq", "paste", "zcat"), _READ),
    **dict.fromkeys(("od", "xxd", "hexdump", "strings", "fold", "rev"), _READ),
    **dict.fromkeys(("bat", "batcat"), _Program("file_read", 0, frozenset(("-r", "--line-range", "-l", "--language")))),
    "column": _Program("file_read", 0, frozenset(("-s", "-N"))),
    "cut": _Program("file_read", 0, frozenset(("-d", "-f", "-c", "-b"))),
    "sort": _Program("file_read", 0, frozenset(("-k", "-t", "-o", "-S", "-T"))),
    **dict.fromkeys(
        ("head", "tail"), _Program("file_read", 0, frozenset(("-n", "-c", "--lines", "--bytes")), lists="heads")
    ),
    **dict.fromkeys(
        ("get-content", "gc"),  # PowerShell's
        _Program("file_read", 0, frozenset(("-TotalCount", "-Head", "-First", "-Tail", "-Last", "-Encoding"))),
    ),
    **dict.fromkeys(("sed", "awk", "gawk", "mawk", "jq", "yq"), _SCRIPTED),
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"), _GREP),
    **dict.fromkeys(("wc", "du", "md5sum", "sha1sum", "sha256sum"), _COUNT),
    **dict.fromkeys(("stat", "file"), _Program("file_search", 0, frozenset(("-c", "--format")))),
    **dict.fromkeys(("tee", "touch"), _Program("file_write")),
}
_OPENED = re.compile(  # by a script: a name, and the mode or what is done with it
    r"""\b(?P<how>open|Path|read(?:lines|File(?:Sync)?)?|writeFile(?:Sync)?)\(\s*r?(?P<quote>['"])(?P<path>[^'"\n]+)(?P=quote)
        (?:\s*,\s*(?:mode\s*=\s*)?['"](?P<mode>[rwaxbt+]+)['"])?(?:\s*\)\s*\.(?P<then>\w+))?""",
    re.VERBOSE,
)
_SCRIPT_OPTION = re.compile(r"-\w*e")
_UNSORTED = frozenset("tSUfXvrd")  # options of `ls`
_NOT_PLAIN = re.compile(r"[$*?\[\]{}`<>|\s\"']|://|^/dev/")
_NOT_LITERAL = re.compile(r"[$*?\[\]{}`~]")
_MOST_BEGINS = 100  # of paths that a search may list


def named_by(name: str, arguments: list[str], folder: str, piped: bool) -> list[Use]:
    """Return what a program does to files, given its name and arguments; nothing of one that is not known.

    `folder` is the one that it runs in, and `piped` tells that it reads what another prints.
    """
    if name == "git":
        return _git(arguments, folder)
    if name in ("fd", "fdfind"):
        return [Use("file_search", (), "listing", folder, folder)]
    if name == "ls":
        return [_ls(arguments, folder)]
    if name == "tree":
        return [_tree(arguments, folder)]
    if name == "rg" and "--files" in arguments:
        return [Use("file_search", (), "listing", folder, folder)]
    if name in ("cp", "mv") and len(arguments) > 1:
        source, target = arguments[-2:]
        return [Use("file_write", (joined(folder, target),))] if looks_like_file(target) and is_plain(source) else []
    program = _PROGRAMS.get(name) or _PROGRAMS.get(name.lower())
    return _program(program, name, arguments, folder, piped) if program else []


def opened_by(script: str, folder: str) -> list[Use]:
    """Return what a script in Python, JavaScript and the like opens by name, to read or to write."""
    read: dict[str, None] = {}
    written: dict[str, None] = {}
    for each in _OPENED.finditer(script):
        then = each["then"] or ""
        writes = bool(each["mode"] and {*each["mode"]} & {*"wax+"}) or "write" in (each["how"] + then)
        opened = each["how"] != "Path" or then.startswith(("open", "read", "write"))
        if opened and is_plain(each["path"]):
            (written if writes else read)[joined(folder, each["path"])] = None
    found = [Use("file_read", tuple(read), None, folder, shows=True)] if read else []
    return found + ([Use("file_write", tuple(written))] if written else [])


def edited_by(arguments: Sequence[str], folder: str) -> list[Use]:
    """Return what the files are that `perl` and `ruby` go through line by line (`-n`, `-p`), or edit (`-i`)."""
    scripted = [word for word in arguments if _SCRIPT_OPTION.fullmatch(word)]
    options, operands = _parted(arguments, _Program("file_read", scripted=frozenset(scripted)))
    files = tuple(joined(folder, path) for path in operands if is_plain(path) and looks_like_file(path))
    if not (files and scripted and _flags(options) & {"n", "p"}):
        return []
    return [Use("file_write", files)] if "i" in _flags(options) else [Use("file_read", files, None, folder, shows=True)]


def found_by(arguments: Sequence[str], folder: str) -> Use:
    """Return what `find` lists."""
    starts = [place for place, word in enumerate(arguments) if word.startswith(("-", "(", "!"))]
    roots = arguments[: starts[0]] if starts else arguments
    inside = joined(folder, roots[0]) if len(roots) == 1 and is_plain(roots[0]) else None
    folders = any(arguments[place : place + 2] == ["-type", "d"] for place in range(len(arguments)))
    within = () if "-printf" in arguments else _within(roots)
    return Use("file_search", (), None if folders else "listing", folder, inside, within=within)


def joined(folder: str, path: str) -> str:
    """Return where a path leads from a folder."""
    return posixpath.join(folder, path)


def is_plain(path: str) -> bool:
    """Tell whether a word is a path, and nothing that a shell makes something else of."""
    if not 0 < len(path) <= LONGEST or path[0] in "-~&":
        return False
    return not _NOT_PLAIN.search(path.replace(" ", "_") if has_spaces(path) else path)


def _program(program: _Program, name: str, arguments: Sequence[str], folder: str, piped: bool) -> list[Use]:
    options, operands = _parted(arguments, program)
    if not program.scripted & {option.partition("=")[0] for option in options}:
        operands = operands[program.script :]
    files = tuple(joined(folder, path) for path in operands if is_plain(path) and path[0] != "+")  # `less +10`
    if program.category == "code_search":
        return _search(name, options, operands, files, folder, piped)
    if name == "sed" and any(option.startswith(("-i", "--in-place")) for option in options):
        return [Use("file_write", files)]
    if program.category == "file_read":
        return [Use("file_read", files, program.lists, folder, shows=True)] if operands else []
    if program.category == "file_search":
        files = tuple(path for path in files if looks_like_file(path))
        counted = program.lists if operands or not piped else None
        return [Use("file_search", files, counted, folder)] if files or counted else []
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
    lists: Lists | None = None if unnamed and not _flags(options) & {"l"} else "matches"
    return [Use("code_search", named, lists, folder, within=_within(operands))]


def _within(operands: Sequence[str]) -> tuple[str, ...]:
    """Return what paths begin with that a program prints of these, as they were given to it; () where it may be any.

    So it may of very many, as each line is compared with each.
    """
    begins = [_NOT_LITERAL.split(word)[0] for word in operands]
    return tuple(begins) if all(begins) and len(begins) <= _MOST_BEGINS else ()


def _ls(arguments: Sequence[str], folder: str) -> Use:
    options, operands = _parted(arguments, _READ)
    files = tuple(joined(folder, path) for path in operands if is_plain(path) and looks_like_file(path))
    folders = [path for path in operands if not looks_like_file(path)]
    listed = [joined(folder, path) for path in folders] or [folder]
    alone = len(operands) < 2 and (listed[0] == folder or is_plain(listed[0]))
    names = alone and len(folders) == len(operands) and not _flags(options) & _UNSORTED
    return Use("file_search", files, "listing", folder, listed[0] if alone else None, names, answers=True)


def _tree(arguments: Sequence[str], folder: str) -> Use:
    _, operands = _parted(arguments, _Program("file_search", valued=frozenset(("-L", "-I", "-P"))))
    inside = joined(folder, operands[0]) if operands else folder
    alone = len(operands) < 2 and (not operands or is_plain(operands[0]))
    return Use("file_search", (), "tree", folder, inside if alone else None)


def _git(arguments: list[str], folder: str) -> list[Use]:
    while arguments and arguments[0].startswith("-"):
        valued = arguments[0] in ("-C", "-c") and len(arguments) > 1
        folder = joined(folder, arguments[1]) if valued and arguments[0] == "-C" else folder
        arguments = arguments[2 if valued else 1 :]
    verb, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    paths = (
        rest[rest.index("--") + 1 :]
        if "--" in rest
        else [word for word in rest if looks_like_file(word) and not word.endswith("HEAD")]
    )
    files = tuple(joined(folder, path) for path in paths if is_plain(path))
    if verb == "grep":
        return [Use("code_search", (), "matches", folder)]
    if verb in ("ls-files", "ls-tree"):
        return [Use("file_search", (), "listing", folder, folder)]
    if verb == "status":
        return [Use("file_search", (), "status", folder)]
    revisions = [word.partition(":")[2] for word in rest if ":" in word and word[0] != "-"]
    if verb in ("show", "cat-file") and revisions:
        plain = [path for path in revisions if is_plain(path)]
        shown = tuple(joined(folder, path) if path[0] == "." else rooted([path], folder)[0] for path in plain)
        return [Use("file_read", shown, None, folder, shows=True)]
    if verb in ("show", "diff", "log", "blame", "whatchanged", "diff-tree"):
        bare = any(word in ("--name-only", "--name-status") for word in rest)
        return [Use("commit_search", files, "changes" if bare else "diff", folder)]
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
