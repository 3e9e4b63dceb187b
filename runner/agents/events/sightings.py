"""What is kept of a tool call: what kind of thing it did, and to which files, as the trace names them.

A result may be megabytes, of which the paths are a few lines: the rest is let go as soon as the call has been looked
at. It knows nothing of the gold, nor of where in the trace the call is.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from runner.agents.events import listings, search_results
from runner.agents.events.shell import uses
from runner.agents.events.shell_output import held, shown
from runner.agents.events.tools import Category, Kind, Tools, tools
from runner.agents.trace import ToolCall
from runner.agents.truth.paths import LONGEST, File, looks_like_file

_PATHS = (
    *("file_path", "path", "notebook_path", "filePath", "absolute_path", "target_file", "file", "filename"),
    *("AbsolutePath", "TargetFile", "file_name", "relative_path", "uri"),
    *("paths", "files", "args", "operations"),
)
"""Arguments that name files, of agents' tools as these document them; lists may hold objects that have such a field."""
_READ_PATHS = (*_PATHS, "include")  # which limits a search
_REPOS = ("repo", "repository")
_QUERIES = ("query", "pattern", "symbol", "question", "Query", "Pattern", "regex", "search_term")
_COMMANDS = ("command", "cmd", "keystrokes", "CommandLine", "commandLine", "script")
_FOLDERS = ("workdir", "cwd", "Cwd", "working_directory", "workingDirectory", "directory", "dir_path")
_PATCHES = ("patch", "diff", "input", "patchText", "patch_text")
_PATCH = "*** Begin Patch"  # what a shell's `apply_patch` is given
_REPO = re.compile(r"(?<![\w./:-])[a-z][\w-]*(?:\.[a-z][\w-]*)+/[\w.-]+/[\w.-]+(?![\w./-])")
_REPO_FILTER = re.compile(r"\brepo:\^?([\w./\\-]+)\$?")
_LONGEST_QUERY = 200
_SEEN: tuple[Category, ...] = ("file_read", "code_search", "commit_search", "file_search")
"""What a shell command is, of the things that it does: the first that it does."""


@dataclass(frozen=True, slots=True)
class View:
    """Files that one call has to do with, in order of first sight, and what it did with them."""

    category: Category
    files: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True)
class Sighting:
    """A tool call, small: its tool, what it did, and what it asked for, cut short.

    There is one view, or two for a shell command that reads and writes. `inferred` says from what the views were
    inferred, where no argument names the files.
    """

    tool: str
    is_mcp: bool
    views: tuple[View, ...]
    query: str = ""
    symbol: str = ""
    inferred: Literal["shell"] | None = None

    @property
    def files(self) -> int:
        """Return how many files the call has to do with."""
        return sum(len(view.files) for view in self.views)


def create_observer(tools_file: str | None = None, shell: bool = True) -> Callable[[ToolCall], Sighting]:
    """Return what looks at each call of a trace: see `sighting`. Raises `ConfigError` for a file of tools."""
    return partial(sighting, table=tools(tools_file), shell=shell)


def choose_richer(one: Sighting, other: Sighting) -> Sighting:
    """Return the one of two sightings of the same call that has more files."""
    return other if other.files > one.files else one


def sighting(call: ToolCall, table: Tools, shell: bool = True) -> Sighting:
    """Return what is kept of a call. What failed, or was not found, was not seen; arguments do where no result is.

    `shell=False` leaves out what shell commands do, as the published evaluation does.
    """
    kind = table.kind(call.name)
    failed = call.result is not None and search_results.is_failure(call.result)
    text = None if call.result is None else search_results.shown(call.result)
    asked = next((text for key in _QUERIES for text in _texts(call.arguments.get(key))), "")
    symbol = next(iter(_texts(call.arguments.get("symbol"))), "")
    views: tuple[View, ...]
    if kind.role == "shell":
        output = None if text is None else search_results.printed(text)
        views = _shell_views(_command(call.arguments), output, _folder(call.arguments)) if shell else ()
    else:
        category = _category(kind, call.arguments, text)
        views = (View(category, () if failed else _files(category, call.arguments, text)),)
    if call.result and search_results.is_refused(call.result):  # a command that fails may yet have shown something
        views = tuple(View(view.category) for view in views)
    return Sighting(
        tool=call.name[:LONGEST],
        is_mcp=kind.is_mcp,
        views=views or (View("other"),),
        query=asked[:_LONGEST_QUERY],
        symbol=symbol[:_LONGEST_QUERY],
        inferred="shell" if kind.role == "shell" and views else None,
    )


def _category(kind: Kind, arguments: Mapping[str, Any], text: str | None) -> Category:
    if kind.role == "shell":
        return "other"
    if kind.role != "editor":
        return kind.role
    if arguments.get("command") not in ("create", "str_replace", "insert", "undo_edit", "write", "append"):
        return "file_search" if text and text.startswith("Here's the files and directories") else "file_read"
    return "file_write"


def _files(category: Category, arguments: Mapping[str, Any], text: str | None) -> tuple[File, ...]:
    repo = next((text for key in _REPOS for text in _texts(arguments.get(key))), None) or _filtered(arguments)
    keys = _READ_PATHS if category == "file_read" else _PATHS
    named = [File(path, repo) for key in keys for path in _texts(arguments.get(key)) if len(path) <= LONGEST]
    files: Iterable[File] = ()
    if category == "file_read":
        files = _read(named, text)
    elif category == "file_write":
        patches = [patch for key in _PATCHES for patch in _texts(arguments.get(key))]
        files = named or [File(path) for patch in patches for path in search_results.changed(patch)]
    elif category != "other":
        files = _searched(category, named, text)
    return tuple(dict.fromkeys(File(file.path, file.repo or repo) for file in files))


def _read(named: list[File], text: str | None) -> list[File]:
    if text is None:
        return named
    opened = search_results.opened(text)
    files = named if opened is None else [opened]
    if files and (inside := listings.in_tree(text)):  # it is a folder
        return [File(posixpath.join(files[0].path, name), files[0].repo) for name in inside]
    return files


def _searched(category: Category, named: list[File], text: str | None) -> list[File]:
    files = [file for file in named if looks_like_file(file.path)] if category != "file_search" else []
    if text is None:
        return files
    if search_results.is_nothing(text):
        return files if category == "symbol_navigation" else []
    lines: search_results.Lines = {
        "file_search": listings.listed,
        "code_search": search_results.matching,
        "commit_search": search_results.changed,
    }.get(category, _no_lines)
    if files and category == "code_search":
        lines = _no_lines  # those of the one file that was searched do not name it
    found = search_results.found(text, lines)
    return files + found if category == "symbol_navigation" else found or files


def _shell_views(command: str, text: str | None, folder: str) -> tuple[View, ...]:
    tried = uses(command, folder)
    done = held(tried, text)
    written = [File(path) for use in done if use.category == "file_write" for path in use.files]
    if _PATCH in command:
        written += map(File, search_results.changed(command))
    seeing = [use for use in done if use.category != "file_write"]
    seen = [File(path) for path in shown([use for use in tried if use.category != "file_write"], text)]
    category: Category = next((each for each in _SEEN if any(use.category == each for use in seeing)), "code_search")
    if text and not seeing and not written:  # a program that asks a server
        told = search_results.told(text)
        seen = told or _in_folder(command, text)
        category = "file_read" if search_results.opened(text) else "code_search" if told else "file_search"
    views = [View(category, tuple(dict.fromkeys(seen)))] if seeing or seen else []
    return (*views, *([View("file_write", tuple(dict.fromkeys(written)))] if written else []))


def _in_folder(command: str, text: str) -> list[File]:
    names = listings.folder(text)
    repo = _REPO.search(command) if names else None
    return [File(name, repo and repo[0]) for name in names]


def _folder(arguments: Mapping[str, Any]) -> str:
    return next((text for name in _FOLDERS for text in _texts(arguments.get(name))), "")


def _command(arguments: Mapping[str, Any]) -> str:
    command = next((arguments[name] for name in _COMMANDS if name in arguments), None)
    return shlex.join(_texts(command)) if isinstance(command, list) else " ".join(_texts(command))


def _no_lines(_: str) -> Iterable[str]:
    return ()


def _filtered(arguments: Mapping[str, Any]) -> str | None:
    query = next(iter(_texts(arguments.get("query"))), "")
    named = _REPO_FILTER.search(query)
    return named[1].replace("\\", "") if named else None


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    parts = value if isinstance(value, list) else []
    named = (part if isinstance(part, str) else _path(part) for part in parts)
    return [text for text in named if text]


def _path(record: object) -> str:
    """Return the path that an object names, which is one of several in an argument."""
    known = record if isinstance(record, Mapping) else {}
    return next((known[key] for key in _PATHS if isinstance(known.get(key), str)), "")
