"""Read the arguments of programs: the files that they name, and the form in which their output lists files.

The programs are readers, searches, listings and git. Globs and command substitutions name no file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from runner.features.traces.events.git_paths import resolve_paths
from runner.features.traces.events.line_ranges import parse_selection
from runner.features.traces.events.shell_use import Lists, ShellUse
from runner.features.traces.events.tools import Category
from runner.features.traces.truth.paths import LONGEST, has_spaces, looks_like_file


@dataclass(frozen=True)
class _Program:
    """The arguments of a program: `script` is how many precede the files; `valued` options take a value."""

    category: Category
    script: int = 0
    valued: frozenset[str] = frozenset()
    scripted: frozenset[str] = frozenset()  # options that provide the script
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
_OPENED = re.compile(  # in a script: a name, and the mode or the called method
    r"""\b(?P<function>open|Path|read(?:lines|File(?:Sync)?)?|writeFile(?:Sync)?)\(\s*r?(?P<quote>['"])(?P<path>[^'"\n]+)(?P=quote)
        (?:\s*,\s*(?:mode\s*=\s*)?['"](?P<mode>[rwaxbt+]+)['"])?(?:\s*\)\s*\.(?P<then>\w+))?""",
    re.VERBOSE,
)
_SCRIPT_OPTION = re.compile(r"-\w*e")
_NOT_PLAIN = re.compile(r"[$*?\[\]{}`<>|\s\"']|://|^/dev/")
_NOT_LITERAL = re.compile(r"[$*?\[\]{}`~]")
_MAX_PREFIXES = 100  # limit on the paths that a search may list


def read_program(name: str, arguments: list[str], folder: str, piped: bool) -> list[ShellUse]:
    """Return what a program does to files, given its name and arguments; empty for an unknown program.

    `folder` is its working directory; with `piped`, it reads the output of another program.
    """
    if name == "git":
        return _read_git(arguments, folder)
    if name in ("fd", "fdfind"):
        return [ShellUse("file_search", (), "listing", folder, folder)]
    if name == "ls":
        return [_read_ls(arguments, folder)]
    if name == "tree":
        return [_read_tree(arguments, folder)]
    if name == "rg" and "--files" in arguments:
        return [ShellUse("file_search", (), "listing", folder, folder)]
    if name in ("cp", "mv") and len(arguments) > 1:
        source, target = arguments[-2:]
        return [ShellUse("file_write", (join(folder, target),))] if looks_like_file(target) and is_plain(source) else []
    program = _PROGRAMS.get(name) or _PROGRAMS.get(name.lower())
    return _read_known(program, name, arguments, folder, piped) if program else []


def read_script(script: str, folder: str) -> list[ShellUse]:
    """Return the files that a script in Python, JavaScript or a similar language opens by name, to read or to write."""
    read: dict[str, None] = {}
    written: dict[str, None] = {}
    for call in _OPENED.finditer(script):
        then = call["then"] or ""
        writes = bool(call["mode"] and {*call["mode"]} & {*"wax+"}) or "write" in (call["function"] + then)
        opens = call["function"] != "Path" or then.startswith(("open", "read", "write"))
        if opens and is_plain(call["path"]):
            (written if writes else read)[join(folder, call["path"])] = None
    reads = [ShellUse("file_read", tuple(read), None, folder, shows=True)] if read else []
    return reads + ([ShellUse("file_write", tuple(written))] if written else [])


def read_line_editor(arguments: Sequence[str], folder: str) -> list[ShellUse]:
    """Return the files that `perl` or `ruby` processes line by line (`-n`, `-p`), or edits (`-i`)."""
    scripted = [word for word in arguments if _SCRIPT_OPTION.fullmatch(word)]
    options, operands = _split_options(arguments, _Program("file_read", scripted=frozenset(scripted)))
    files = tuple(join(folder, path) for path in operands if is_plain(path) and looks_like_file(path))
    if not (files and scripted and _list_flags(options) & {"n", "p"}):
        return []
    return (
        [ShellUse("file_write", files)]
        if "i" in _list_flags(options)
        else [ShellUse("file_read", files, None, folder, shows=True)]
    )


def read_find(arguments: Sequence[str], folder: str) -> ShellUse:
    """Return the listing of a `find`."""
    starts = [place for place, word in enumerate(arguments) if word.startswith(("-", "(", "!"))]
    roots = arguments[: starts[0]] if starts else arguments
    inside = join(folder, roots[0]) if len(roots) == 1 and is_plain(roots[0]) else None
    folders = any(arguments[place : place + 2] == ["-type", "d"] for place in range(len(arguments)))
    prefixes = () if "-printf" in arguments else _list_prefixes(roots)
    return ShellUse("file_search", (), None if folders else "listing", folder, inside, prefixes=prefixes)


def join(folder: str, path: str) -> str:
    """Return a path that starts in a folder."""
    return posixpath.join(folder, path)


def is_plain(path: str) -> bool:
    """Return whether a word is a path without anything that a shell expands."""
    if not 0 < len(path) <= LONGEST or path[0] in "-~&":
        return False
    return not _NOT_PLAIN.search(path.replace(" ", "_") if has_spaces(path) else path)


def _read_known(program: _Program, name: str, arguments: Sequence[str], folder: str, piped: bool) -> list[ShellUse]:
    options, operands = _split_options(arguments, program)
    if not program.scripted & {option.partition("=")[0] for option in options}:
        operands = operands[program.script :]
    files = tuple(join(folder, path) for path in operands if is_plain(path) and path[0] != "+")  # `less +10`
    if program.category == "code_search":
        return _read_search(name, options, operands, files, folder, piped)
    if name == "sed" and any(option.startswith(("-i", "--in-place")) for option in options):
        return [ShellUse("file_write", files)]
    if program.category == "file_read":
        joins = program is _SCRIPTED and len(operands) > 1  # the lines of several files are counted on
        lines = () if joins else parse_selection(name, arguments)
        return [ShellUse("file_read", files, program.lists, folder, shows=True, lines=lines)] if operands else []
    if program.category == "file_search":
        files = tuple(path for path in files if looks_like_file(path))
        counted = program.lists if operands or not piped else None
        return [ShellUse("file_search", files, counted, folder)] if files or counted else []
    return [ShellUse(program.category, files, None, folder)] if files else []


def _read_search(
    name: str, options: Sequence[str], operands: Sequence[str], files: tuple[str, ...], folder: str, piped: bool
) -> list[ShellUse]:
    if not operands and (piped or name not in ("rg", "ag", "ack")) and not _list_flags(options) & {"r", "R"}:
        return []  # it reads the output of another program
    if _list_flags(options) & {"q"} or "--quiet" in options:
        return []
    named = tuple(path for path in files if looks_like_file(path))
    alone = len(operands) == 1 and len(named) == 1 and not _list_flags(options) & {"H", "r", "R"}
    unnamed = alone or _list_flags(options) & {"h", "c"} or "--no-filename" in options
    lists: Lists | None = None if unnamed and not _list_flags(options) & {"l"} else "matches"
    return [ShellUse("code_search", named, lists, folder, prefixes=_list_prefixes(operands))]


def _list_prefixes(operands: Sequence[str]) -> tuple[str, ...]:
    """Return the prefixes of the paths that a program prints, given its operands; () if any prefix is possible.

    Very many operands also give (), because each line is compared with each operand.
    """
    prefixes = [_NOT_LITERAL.split(word)[0] for word in operands]
    return tuple(prefixes) if all(prefixes) and len(prefixes) <= _MAX_PREFIXES else ()


def _read_ls(arguments: Sequence[str], folder: str) -> ShellUse:
    _, operands = _split_options(arguments, _READ)
    files = tuple(join(folder, path) for path in operands if is_plain(path) and looks_like_file(path))
    folders = [path for path in operands if not looks_like_file(path)]
    listed = [join(folder, path) for path in folders] or [folder]
    alone = len(operands) < 2 and (listed[0] == folder or is_plain(listed[0]))
    return ShellUse("file_search", files, "listing", folder, listed[0] if alone else None, answers=True)


def _read_tree(arguments: Sequence[str], folder: str) -> ShellUse:
    _, operands = _split_options(arguments, _Program("file_search", valued=frozenset(("-L", "-I", "-P"))))
    inside = join(folder, operands[0]) if operands else folder
    alone = len(operands) < 2 and (not operands or is_plain(operands[0]))
    return ShellUse("file_search", (), "tree", folder, inside if alone else None)


def _read_git(arguments: list[str], folder: str) -> list[ShellUse]:
    while arguments and arguments[0].startswith("-"):
        valued = arguments[0] in ("-C", "-c") and len(arguments) > 1
        folder = join(folder, arguments[1]) if valued and arguments[0] == "-C" else folder
        arguments = arguments[2 if valued else 1 :]
    verb, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    paths = (
        rest[rest.index("--") + 1 :]
        if "--" in rest
        else [word for word in rest if looks_like_file(word) and not word.endswith("HEAD")]
    )
    files = tuple(join(folder, path) for path in paths if is_plain(path))
    if verb == "grep":
        return [ShellUse("code_search", (), "matches", folder)]
    if verb in ("ls-files", "ls-tree"):
        return [ShellUse("file_search", (), "listing", folder, folder)]
    if verb == "status":
        return [ShellUse("file_search", (), "status", folder)]
    revisions = [word.partition(":")[2] for word in rest if ":" in word and word[0] != "-"]
    if verb in ("show", "cat-file") and revisions:
        plain = [path for path in revisions if is_plain(path)]
        shown = tuple(join(folder, path) if path[0] == "." else resolve_paths([path], folder)[0] for path in plain)
        return [ShellUse("file_read", shown, None, folder, shows=True)]
    if verb in ("show", "diff", "log", "blame", "whatchanged", "diff-tree"):
        bare = any(word in ("--name-only", "--name-status") for word in rest)
        return [ShellUse("commit_search", files, "changes" if bare else "diff", folder)]
    return []


def _split_options(arguments: Sequence[str], program: _Program) -> tuple[list[str], list[str]]:
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


def _list_flags(options: Sequence[str]) -> set[str]:
    return {flag for option in options if not option.startswith("--") for flag in option[1:]}
