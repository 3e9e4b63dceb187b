"""Find the files in the output of a shell command, to which several programs may have contributed.

Lines that an `echo` prints between them separate their parts. Only the beginning of very long output is read, to bound
the time.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from runner.features.traces.events import listings, search_results
from runner.features.traces.events.git_paths import resolve_paths
from runner.features.traces.events.shell_use import Lists, ShellUse
from runner.features.traces.truth.paths import LONGEST, looks_like_file

_UNKNOWN = re.compile(r"(?:\$\{\w+\}|\$\w+|\$\([^()]*(?:\([^()]*\)[^()]*)*\)|\$|\{\}|`[^`]*`)+")
"""The parts of an `echo` line that only the shell can expand."""
_MAX_UNKNOWN = 2  # per line: one with more could match any line
_MAX_READ = 10_000_000  # characters, by all uses together

_PARSERS: Mapping[Lists, search_results.LineParser] = {
    "matches": search_results.parse_matches,
    "counts": listings.parse_counts,
    "status": listings.parse_status,
    "heads": listings.parse_heads,
}


class _OutputPart(NamedTuple):
    """The output between two `echo` lines, the uses that printed it, and the files that such a line names."""

    uses: Sequence[ShellUse]
    text: str
    named: Sequence[str]


def find_shown(uses: Sequence[ShellUse], text: str | None) -> list[str]:
    """Return the distinct files that a command shows, in order; without its output, those that it names.

    If it is unclear which program printed a line, paths count and bare names do not. Files that a program reports as
    missing, or that are named by a program that printed nothing, were not seen. The more uses there are, the less of a
    long output is read.
    """
    if text is None:
        return [path for use in uses for path in use.files]
    text = _cut(text, _MAX_READ // max(1, len(uses)))
    missing = search_results.find_missing(text) | _find_unanswered(uses, text)
    parts = (part for part in _split_output(drop_failed(uses, text), text) if part.text.strip())
    return list(dict.fromkeys(path for part in parts for path in _find_files(part, missing)))


def drop_failed(uses: Sequence[ShellUse], text: str | None) -> list[ShellUse]:
    """Return the uses without those whose failure line is in the output."""
    failures = {use.otherwise for use in uses if use.otherwise}
    if not (text and failures):
        return list(uses)
    printed = failures.intersection(text.splitlines())
    return [use for use in uses if use.otherwise not in printed]


def _cut(text: str, limit: int) -> str:
    """Return the first whole lines of a text, up to a number of characters."""
    return text if len(text) <= limit else text[: text.rfind("\n", 0, limit) + 1]


def _split_output(uses: Sequence[ShellUse], text: str) -> Iterator[_OutputPart]:
    """Yield the parts of an output. An expected line that is absent does not end a part."""
    lines = text.splitlines()
    first = start = 0
    named: Sequence[str] = ()
    for place, use in enumerate(uses):
        pattern = _compile_head(use.head)
        hits = _match_lines(pattern, lines, start) if pattern else {}
        if hits:
            at = min(hits)
            if place:
                yield _OutputPart(uses[first:place], "\n".join(lines[start:at]), named)
            names = (name for hit in hits.values() for name in hit.groups())
            named = [posixpath.join(use.cwd, name) for name in names if looks_like_file(name)]
            first, start = place, at + 1
    yield _OutputPart(uses[first:], "\n".join(lines[start:]), named)


def _compile_head(head: str) -> re.Pattern[str] | None:
    """Return a pattern for a line that an `echo` prints, with a group for each part that only the shell can expand."""
    pieces = _UNKNOWN.split(head.rstrip())
    if not any(piece.strip() for piece in pieces) or len(pieces) > _MAX_UNKNOWN + 1:
        return None
    first, *others = map(re.escape, pieces)  # each is searched once, to avoid quadratic time
    last = f"(.*){others.pop()}" if others else ""
    return re.compile(first + "".join(f"(?>(.*?){piece})" for piece in others) + last)


def _match_lines(pattern: re.Pattern[str], lines: Sequence[str], start: int) -> dict[int, re.Match[str]]:
    """Return the lines that a pattern matches, from a position onwards; only the first if the pattern is constant."""
    hits: dict[int, re.Match[str]] = {}
    for place in range(start, len(lines)):
        if len(lines[place]) <= LONGEST and (hit := pattern.fullmatch(lines[place].rstrip())):
            hits[place] = hit
            if not pattern.groups:
                break
    return hits


def _find_files(part: _OutputPart, missing: Collection[str]) -> Iterator[str]:
    words = _list_words(part.uses, part.text)
    for use, text in dict.fromkeys(_assign_text(part, missing)):  # equal pairs are read once
        listed = [path for path in _parse_output(use, text) if len(path) <= LONGEST]
        if use.category == "code_search" and use.lists and (listed or len(use.files) > 1):
            files = [*listed, *_select_printed(use, _list_heads(text))]  # of several searched files, those with matches
        elif use.category == "file_search" and use.lists == "listing":
            files = [*_select_printed(use, words), *listed]
        else:
            files = [*use.files, *listed, *(part.named if use.shows or use.category == "code_search" else ())]
        yield from (path for path in files if not _is_among(use, path, missing))


def _find_unanswered(uses: Sequence[ShellUse], text: str) -> set[str]:
    """Return the files that a listing names and does not print: they do not exist, so later programs fail on them."""
    words = _list_words(uses, text)
    return {path for use in uses if use.answers for path in {*use.files} - {*_select_printed(use, words)}}


def _list_words(uses: Sequence[ShellUse], text: str) -> set[str]:
    """Return the words and the lines of an output if a listing names files, else an empty set."""
    if not any(use.files and use.lists == "listing" for use in uses):
        return set()
    return {word.strip("'*@") for word in (*text.split(), *text.splitlines())}


def _list_heads(text: str) -> set[str]:
    return {line.partition(":")[0] for line in text.splitlines()}


def _select_printed(use: ShellUse, words: Collection[str]) -> list[str]:
    """Return the files named in a listing or a search that its output contains."""
    return [path for path in use.files if _is_among(use, path, words)]


def _is_among(use: ShellUse, path: str, words: Collection[str]) -> bool:
    """Return whether a path of a use is among printed words, in full or relative to its folder."""
    return path in words or path.removeprefix(posixpath.join(use.cwd, "")) in words


def _assign_text(part: _OutputPart, missing: Collection[str]) -> Iterator[tuple[ShellUse, str]]:
    """Yield the uses that share an output; the folder of bare names is unknown if listings are of several folders."""
    showing = any(use.shows for use in part.uses)
    absent = [use for use in part.uses if use.lists == "listing" and _is_among(use, use.inside or "", missing)]
    several = len({use.inside for use in part.uses if use.lists == "listing" and use not in absent}) > 1
    for use in part.uses:
        if showing and use.category in ("code_search", "file_search"):  # the content of a file may look like a list
            yield replace(use, lists=None, inside=None), part.text
        else:
            yield replace(use, inside=None if several or use in absent else use.inside, head=""), part.text


def _parse_output(use: ShellUse, text: str) -> Iterator[str]:
    if use.lists == "listing":
        yield from listings.parse_listing(text, use.inside, use.cwd)
    elif use.lists == "tree":
        yield from listings.parse_tree(text, use.inside, use.cwd)
    elif use.lists in ("diff", "changes"):
        parse = search_results.parse_diff if use.lists == "diff" else listings.parse_changes
        yield from resolve_paths(parse(text), use.cwd, use.files)
    elif use.lists:
        paths = _PARSERS[use.lists](text)
        yield from (posixpath.join(use.cwd, path) for path in paths if path.startswith(use.prefixes or ""))
