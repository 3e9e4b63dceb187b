"""Which files the output of a shell command shows, where several programs may have printed one after the other.

What an `echo` prints between them tells their parts apart; so does the order of names, which begins anew with each
listing. It knows nothing of how a command is read, nor of tools.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from runner.agents.events import search_results
from runner.agents.events.git_paths import rooted
from runner.agents.events.shell import Lists, Use
from runner.agents.truth.paths import LONGEST, looks_like_file

_UNKNOWN = re.compile(r"(?:\$\{\w+\}|\$\w+|\$\([^()]*(?:\([^()]*\)[^()]*)*\)|\$|\{\}|`[^`]*`)+")
"""What only the shell knows of a line that an `echo` prints."""
_MOST_UNKNOWN = 2  # in a line: each multiplies the ways in which a line may be it

_ORDERS: Sequence[Callable[[str], str]] = (  # of a listing: by bytes, or as languages have it
    str,
    lambda name: re.sub(r"[^0-9a-z]", "", name.casefold()),
)
_LINES: Mapping[Lists, search_results.Lines] = {
    "matches": search_results.matching,
    "heads": search_results.headed,
}


class _Part(NamedTuple):
    """What was printed from one line that an `echo` prints to the next, by which uses; files that such lines name."""

    uses: Sequence[Use]
    text: str
    named: Sequence[str]


def shown(uses: Sequence[Use], text: str | None) -> list[str]:
    """Return the files that a command shows, in its order, each once; without its output, those that it names.

    Where the output does not tell whose lines are whose, the files that they name by themselves are returned, and not
    bare names. What programs say that they did not find was not seen, nor what is named by one that printed nothing.
    """
    if text is None:
        return [path for use in uses for path in use.files]
    missing = search_results.missing(text)
    found = (path for part in _parts(uses, text) if part.text.strip() for path in _files(part, missing))
    return list(dict.fromkeys(found))


def _parts(uses: Sequence[Use], text: str) -> Iterator[_Part]:
    """Yield the parts of an output. A line that was to come and did not leaves the part before it as it is."""
    lines = text.splitlines()
    first = start = 0
    named: Sequence[str] = ()
    for place, use in enumerate(uses):
        pattern = _line(use.head)
        hits = _hits(pattern, lines, start) if pattern else {}
        if hits:
            at = min(hits)
            if place:
                yield _Part(uses[first:place], "\n".join(lines[start:at]), named)
            names = (name for each in hits.values() for name in each.groups())
            first, start, named = (
                place,
                at + 1,
                [posixpath.join(use.cwd, name) for name in names if looks_like_file(name)],
            )
    yield _Part(uses[first:], "\n".join(lines[start:]), named)


def _line(head: str) -> re.Pattern[str] | None:
    """Return a pattern of a line that an `echo` prints, with a group for each part that only the shell knows."""
    pieces = _UNKNOWN.split(head)
    if not any(piece.strip() for piece in pieces) or len(pieces) > _MOST_UNKNOWN + 1:
        return None
    return re.compile("(.*?)".join(re.escape(piece) for piece in pieces).strip())


def _hits(pattern: re.Pattern[str], lines: Sequence[str], start: int) -> dict[int, re.Match[str]]:
    """Return which lines from a place on are a pattern's; one that is always the same begins a part once."""
    found: dict[int, re.Match[str]] = {}
    for place in range(start, len(lines)):
        if len(lines[place]) <= LONGEST and (hit := pattern.fullmatch(lines[place].rstrip())):
            found[place] = hit
            if not pattern.groups:
                break
    return found


def _files(part: _Part, missing: Iterable[str]) -> Iterator[str]:
    for use, text in _apart(part, missing):
        absent = _absent(use, missing)
        listed = list(_listed(use, text))
        if use.category == "code_search" and use.lists and (listed or len(use.files) > 1):
            files = listed  # of several files that were searched, it shows those that have something
        elif use.category == "file_search" and use.lists == "listing":
            last = (line.split()[-1] for line in text.splitlines() if line.strip())
            printed = {posixpath.join(use.cwd, word) for word in last}
            files = [*(path for path in use.files if path in printed), *listed]
        else:
            files = [*use.files, *listed, *(part.named if use.shows or use.category == "code_search" else ())]
        yield from (path for path in files if path not in absent)


def _apart(part: _Part, missing: Iterable[str]) -> Iterator[tuple[Use, str]]:
    """Yield the uses that share an output, each with what can be told to be its own of that, or all of it."""
    showing = any(use.shows for use in part.uses)
    several = sum(use.lists == "listing" for use in part.uses) > 1
    listings = [use for use in part.uses if use.names and use.lists and use.inside not in _absent(use, missing)]
    texts = iter(_listings(part.text, len(listings)) if several and not showing else ())
    for use in part.uses:
        own = next(texts, None) if use in listings else None
        if own is not None:
            yield use, own
            continue
        hidden = showing and use.category in ("code_search", "file_search")  # what a file holds may look like a list
        yield replace(use, lists=None if hidden else use.lists, inside=None if several else use.inside), part.text


def _absent(use: Use, missing: Iterable[str]) -> set[str]:
    return {posixpath.join(use.cwd, path) for path in missing}


def _listings(text: str, n: int) -> list[str]:
    """Return the text of each of n listings of bare names, nothing if their order does not tell where each begins."""
    found = [_sorted_blocks(text, order) for order in _ORDERS]
    fewest = min(map(len, found))  # in the order that they have
    first, *others = [blocks for blocks in found if len(blocks) == fewest]
    return first if fewest == n and all(blocks == first for blocks in others) else []


def _sorted_blocks(text: str, order: Callable[[str], str]) -> list[str]:
    blocks: list[list[str]] = [[]]
    before = ""
    for line in text.splitlines():
        name = search_results.bare(line)
        if blocks[-1] and (not name or order(name) < order(before)):
            blocks.append([])
        if name:
            blocks[-1].append(line)
            before = name
    return ["\n".join(block) for block in blocks if block]


def _listed(use: Use, text: str) -> Iterator[str]:
    if use.lists == "listing":
        yield from search_results.listed(text, use.inside, use.cwd)
    elif use.lists == "diff":
        yield from rooted(search_results.changed(text), use.cwd, use.files)
    elif use.lists:
        yield from (posixpath.join(use.cwd, path) for path in _LINES[use.lists](text))
