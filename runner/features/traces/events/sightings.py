"""Reduce a tool call to a sighting: what it did, and to which files, as the trace names them.

A result may have megabytes of which a few lines are paths; the rest is dropped as soon as the call has been observed.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from runner.features.traces.events import listings, search_results
from runner.features.traces.events.line_ranges import WHOLE, LineRange, find_ranges, shorten
from runner.features.traces.events.shell import find_uses
from runner.features.traces.events.shell_output import drop_failed, find_shown
from runner.features.traces.events.tools import Category, ToolKind, Tools, load_tools
from runner.features.traces.trace import ToolCall
from runner.features.traces.truth.paths import LONGEST, File, looks_like_file

_PATHS = (
    *("file_path", "path", "notebook_path", "filePath", "absolute_path", "target_file", "file", "filename"),
    *("AbsolutePath", "TargetFile", "file_name", "relative_path", "uri"),
    *("paths", "files", "args", "operations"),
)
"""Arguments that name files, as documented by agents for their tools; lists may contain objects with such a field."""
_READ_PATHS = (*_PATHS, "include")  # in other tools, it restricts a search
_REPOS = ("repo", "repository")
_QUERIES = ("query", "pattern", "symbol", "question", "Query", "Pattern", "regex", "search_term")
_COMMANDS = ("command", "cmd", "keystrokes", "CommandLine", "commandLine", "script")
_FOLDERS = ("workdir", "cwd", "Cwd", "working_directory", "workingDirectory", "directory", "dir_path")
_PATCHES = ("patch", "diff", "input", "patchText", "patch_text")
_PATCH = "*** Begin Patch"  # the input of `apply_patch` in a shell
_REPO = re.compile(r"(?<![\w./:-])[a-z][\w-]*(?:\.[a-z][\w-]*)+/[\w.-]+/[\w.-]+(?![\w./-])")
_REPO_FILTER = re.compile(r"\brepo:\^?([\w./\\-]+)\$?")
_LONGEST_QUERY = 200
_SEEN: tuple[Category, ...] = ("file_read", "code_search", "commit_search", "file_search")
"""The category of a shell command: the first of these that any of its programs has."""


@dataclass(frozen=True, slots=True)
class View:
    """The files of a call in order of first sight, what it did with them, and the lines that it showed, if known."""

    category: Category
    files: tuple[File, ...] = ()
    lines: tuple[tuple[File, LineRange], ...] = ()


@dataclass(frozen=True, slots=True)
class Sighting:
    """The part of a tool call that is kept: its tool, its views, and its query or symbol, cut short.

    There is one view, or two for a shell command that reads and writes. `inferred` is the source of the views if no
    argument names the files.
    """

    tool: str
    is_mcp: bool
    views: tuple[View, ...]
    query: str = ""
    symbol: str = ""
    inferred: Literal["shell"] | None = None

    @property
    def files(self) -> int:
        """Return the number of files in all views."""
        return sum(len(view.files) for view in self.views)


def create_observer(tools_file: str | None = None, shell: bool = True) -> Callable[[ToolCall], Sighting]:
    """Return an observer for the calls of a trace; see `observe`. Raises `ConfigError` for an invalid file of tools."""
    return partial(observe, table=load_tools(tools_file), shell=shell)


def choose_richer(one: Sighting, other: Sighting) -> Sighting:
    """Return the sighting with more files, of two sightings of the same call."""
    return other if other.files > one.files else one


def observe(call: ToolCall, table: Tools, shell: bool = True) -> Sighting:
    """Return the sighting of a call. Files that could not be read were not seen; without a result, arguments count.

    `shell=False` ignores shell commands, as in the published evaluation.
    """
    kind = table.classify(call.name)
    failed = call.result is not None and search_results.is_failure(call.result)
    text = None if call.result is None else search_results.strip_appendix(call.result)
    query = next((text for key in _QUERIES for text in _list_texts(call.arguments.get(key))), "")
    symbol = next(iter(_list_texts(call.arguments.get("symbol"))), "")
    views: tuple[View, ...]
    if kind.role == "shell":
        output = None if text is None else search_results.extract_output(text)
        views = _observe_shell(_find_command(call.arguments), output, _find_folder(call.arguments)) if shell else ()
    else:
        category = _categorise(kind, call.arguments, text)
        files = () if failed else _find_files(category, call.arguments, text)
        lines = _find_lines(files, call.arguments, text) if category == "file_read" else ()
        views = (View(category, files, lines),)
    if call.result and search_results.is_refused(call.result):  # a command that only failed may have shown something
        views = tuple(View(view.category) for view in views)
    return Sighting(
        tool=call.name[:LONGEST],
        is_mcp=kind.is_mcp,
        views=views or (View("other"),),
        query=query[:_LONGEST_QUERY],
        symbol=symbol[:_LONGEST_QUERY],
        inferred="shell" if kind.role == "shell" and views else None,
    )


def _categorise(kind: ToolKind, arguments: Mapping[str, object], text: str | None) -> Category:
    if kind.role == "shell":
        return "other"
    if kind.role != "editor":
        return kind.role
    if arguments.get("command") not in ("create", "str_replace", "insert", "undo_edit", "write", "append"):
        return "file_search" if text and text.startswith("Here's the files and directories") else "file_read"
    return "file_write"


def _find_files(category: Category, arguments: Mapping[str, object], text: str | None) -> tuple[File, ...]:
    repo = next((text for key in _REPOS for text in _list_texts(arguments.get(key))), None) or _find_repo_filter(
        arguments
    )
    keys = _READ_PATHS if category == "file_read" else _PATHS
    named = [File(path, repo) for key in keys for path in _list_texts(arguments.get(key)) if len(path) <= LONGEST]
    files: Iterable[File] = ()
    if category == "file_read":
        files = _find_read(named, text)
    elif category == "file_write":
        patches = [patch for key in _PATCHES for patch in _list_texts(arguments.get(key))]
        files = named or [File(path) for patch in patches for path in search_results.parse_diff(patch)]
    elif category != "other":
        files = _find_searched(category, named, text)
    return tuple(dict.fromkeys(File(file.path, file.repo or repo) for file in files))


def _find_read(named: list[File], text: str | None) -> list[File]:
    if text is None:
        return named
    opened = search_results.find_opened(text)
    files = named if opened is None else [opened]
    if files and (inside := listings.parse_git_tree(text)):  # it is a folder
        return [File(posixpath.join(files[0].path, name), files[0].repo) for name in inside]
    return files


def _find_lines(
    files: tuple[File, ...], arguments: Mapping[str, object], text: str | None
) -> tuple[tuple[File, LineRange], ...]:
    if text and listings.parse_git_tree(text):  # it is a folder
        return ()
    ranges = find_ranges(arguments, text) if len(files) == 1 else WHOLE
    return tuple((file, lines) for file in files for lines in ranges)


def _find_searched(category: Category, named: list[File], text: str | None) -> list[File]:
    files = [file for file in named if looks_like_file(file.path)] if category != "file_search" else []
    if text is None:
        return files
    if search_results.is_nothing(text):
        return files if category == "symbol_navigation" else []
    parse_lines: search_results.LineParser = {
        "file_search": listings.parse_listing,
        "code_search": search_results.parse_matches,
        "commit_search": search_results.parse_diff,
    }.get(category, _parse_nothing)
    if files and category == "code_search":
        parse_lines = _parse_nothing  # the matches in a single file do not name it
    results = search_results.parse_results(text, parse_lines)
    return files + results if category == "symbol_navigation" else results or files


def _observe_shell(command: str, text: str | None, folder: str) -> tuple[View, ...]:
    tried = find_uses(command, folder)
    done = drop_failed(tried, text)
    written = [File(path) for use in done if use.category == "file_write" for path in use.files]
    if _PATCH in command:
        written += map(File, search_results.parse_diff(command))
    seeing = [use for use in done if use.category != "file_write"]
    seen = [File(path) for path in find_shown([use for use in tried if use.category != "file_write"], text)]
    category: Category = next((name for name in _SEEN if any(use.category == name for use in seeing)), "code_search")
    if text and not seeing and not written:  # a program that queries a server
        named = search_results.find_named(text)
        seen = named or _parse_folder(command, text)
        category = "file_read" if search_results.find_opened(text) else "code_search" if named else "file_search"
    shown = {file.path for file in seen}
    reading = [use for use in seeing if use.category == "file_read" and use.lines]
    lines = {
        (File(path), part): None
        for use in reading
        for path in use.files
        for part in shorten(use.lines, text)
        if path in shown
    }
    views = [View(category, tuple(dict.fromkeys(seen)), tuple(lines))] if seeing or seen else []
    return (*views, *([View("file_write", tuple(dict.fromkeys(written)))] if written else []))


def _parse_folder(command: str, text: str) -> list[File]:
    names = listings.parse_folder(text)
    repo = _REPO.search(command) if names else None
    return [File(name, repo and repo[0]) for name in names]


def _find_folder(arguments: Mapping[str, object]) -> str:
    return next((text for name in _FOLDERS for text in _list_texts(arguments.get(name))), "")


def _find_command(arguments: Mapping[str, object]) -> str:
    command = next((arguments[name] for name in _COMMANDS if name in arguments), None)
    return shlex.join(_list_texts(command)) if isinstance(command, list) else " ".join(_list_texts(command))


def _parse_nothing(_: str) -> Iterable[str]:
    return ()


def _find_repo_filter(arguments: Mapping[str, object]) -> str | None:
    query = next(iter(_list_texts(arguments.get("query"))), "")
    repo = _REPO_FILTER.search(query)
    return repo[1].replace("\\", "") if repo else None


def _list_texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    parts = value if isinstance(value, list) else []
    named = (part if isinstance(part, str) else _find_path(part) for part in parts)
    return [text for text in named if text]


def _find_path(record: object) -> str:
    """Return the path in an object, one of several in an argument."""
    fields: Mapping[str, object] = record if isinstance(record, Mapping) else {}
    return next((value for key in _PATHS if isinstance(value := fields.get(key), str)), "")
