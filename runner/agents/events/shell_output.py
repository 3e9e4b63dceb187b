"""Which files the output of a shell command shows, where several programs may have printed one after the other.

What an `echo` prints between them tells their parts apart; so does the order of names, which begins anew with each
listing. Of very long output only the beginning is read, so that the time is bounded. It knows nothing of how a command
is read, nor of tools.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from runner.agents.events import listings, search_results
from runner.agents.events.git_paths import rooted
from runner.agents.events.shell_use import Lists, Use
from runner.agents.truth.paths import LONGEST, looks_like_file

_UNKNOWN = re.compile(r"(?:\$\{\w+\}|\$\w+|\$\([^()]*(?:\([^()]*\)[^()]*)*\)|\$|\{\}|`[^`]*`)+")
"""What only the shell knows of a line that an `echo` prints."""
_MOST_UNKNOWN = 2  # in a line: one with more may be any
_MOST_READ = 10_000_000  # characters, by all uses together
_LONGEST_LISTINGS = 100_000  # characters, of several that are told apart by their order

_ORDERS: Sequence[Callable[[str], str]] = (  # of a listing: by bytes, or as languages have it
    str,
    lambda name: re.sub(r"[^0-9a-z]", "", name.casefold()),
)
_LINES: Mapping[Lists, search_results.Lines] = {
    "matches": search_results.matching,
    "counts": listings.counted,
    "status": listings.status,
    "heads": listings.headed,
}


_Row = Sequence[str]
"""The names in a line of a listing, as an order has them: one, or a column each."""


class _Part(NamedTuple):
    """What was printed from one line that an `echo` prints to the next, by which uses; files that such lines name."""

    uses: Sequence[Use]
    text: str
    named: Sequence[str]


def shown(uses: Sequence[Use], text: str | None) -> list[str]:
    """Return the files that a command shows, in its order, each once; without its output, those that it names.

    Where the output does not tell whose lines are whose, the files that they name by themselves are returned, and not
    bare names. What programs say that they did not find was not seen, nor what is named by one that printed nothing.
    The more uses there are, the less is read of a long output; what comes after that is lost, and listings that are
    very long are of no folder where only their order could tell them apart.
    """
    if text is None:
        return [path for use in uses for path in use.files]
    text = _begin(text, _MOST_READ // max(1, len(uses)))
    missing = search_results.missing(text) | _unanswered(uses, text)
    found = (path for part in _parts(held(uses, text), text) if part.text.strip() for path in _files(part, missing))
    return list(dict.fromkeys(found))


def held(uses: Sequence[Use], text: str | None) -> list[Use]:
    """Return the uses of which the output does not have the line that is printed when they fail."""
    failures = {use.otherwise for use in uses if use.otherwise}
    if not (text and failures):
        return list(uses)
    said = failures.intersection(text.splitlines())
    return [use for use in uses if use.otherwise not in said]


def _begin(text: str, most: int) -> str:
    """Return the whole lines with which a text begins, of so many characters at most."""
    return text if len(text) <= most else text[: text.rfind("\n", 0, most) + 1]


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
    pieces = _UNKNOWN.split(head.rstrip())
    if not any(piece.strip() for piece in pieces) or len(pieces) > _MOST_UNKNOWN + 1:
        return None
    first, *others = map(re.escape, pieces)  # each is looked for once, so that time does not grow with a line's square
    last = f"(.*){others.pop()}" if others else ""
    return re.compile(first + "".join(f"(?>(.*?){piece})" for piece in others) + last)


def _hits(pattern: re.Pattern[str], lines: Sequence[str], start: int) -> dict[int, re.Match[str]]:
    """Return which lines from a place on are a pattern's; one that is always the same begins a part once."""
    found: dict[int, re.Match[str]] = {}
    for place in range(start, len(lines)):
        if len(lines[place]) <= LONGEST and (hit := pattern.fullmatch(lines[place].rstrip())):
            found[place] = hit
            if not pattern.groups:
                break
    return found


def _files(part: _Part, missing: Collection[str]) -> Iterator[str]:
    words = _words(part.uses, part.text)
    for use, text in dict.fromkeys(_apart(part, missing)):  # what is alike is read once
        listed = [path for path in _listed(use, text) if len(path) <= LONGEST]
        if use.category == "code_search" and use.lists and (listed or len(use.files) > 1):
            files = [*listed, *_printed(use, _heads(text))]  # of several that were searched, those that have something
        elif use.category == "file_search" and use.lists == "listing":
            files = [*_printed(use, words), *listed]
        else:
            files = [*use.files, *listed, *(part.named if use.shows or use.category == "code_search" else ())]
        yield from (path for path in files if not _is_among(use, path, missing))


def _unanswered(uses: Sequence[Use], text: str) -> set[str]:
    """Return the files that a listing was asked for and does not have: what would be done with them then fails."""
    words = _words(uses, text)
    return {path for use in uses if use.answers for path in {*use.files} - {*_printed(use, words)}}


def _words(uses: Sequence[Use], text: str) -> set[str]:
    """Return the words and the lines of what listings print that are asked for files."""
    if not any(use.files and use.lists == "listing" for use in uses):
        return set()
    return {word.strip("'*@") for word in (*text.split(), *text.splitlines())}


def _heads(text: str) -> set[str]:
    return {line.partition(":")[0] for line in text.splitlines()}


def _printed(use: Use, words: Collection[str]) -> list[str]:
    """Return which of the files that a listing, or a search, was asked for it has."""
    return [path for path in use.files if _is_among(use, path, words)]


def _is_among(use: Use, path: str, words: Collection[str]) -> bool:
    """Tell whether a path of a use is among words that programs print: as it is, or as its folder has it."""
    return path in words or path.removeprefix(posixpath.join(use.cwd, "")) in words


def _apart(part: _Part, missing: Collection[str]) -> Iterator[tuple[Use, str]]:
    """Yield the uses that share an output, each with what can be told to be its own of that, or all of it."""
    showing = any(use.shows for use in part.uses)
    several = sum(use.lists == "listing" for use in part.uses) > 1
    bare = [use for use in part.uses if use.names and use.lists and not _is_among(use, use.inside or "", missing)]
    lacking = _lacking(bare, part.text)
    bare = [use for use in bare if use not in lacking]
    listing = {*bare}
    told = several and not showing and len(part.text) <= _LONGEST_LISTINGS
    texts = iter(_listings(part.text, len(bare)) if told else ())
    for use in part.uses:
        own = next(texts, None) if use in listing else None
        if own is not None:
            yield use, own
        elif showing and use.category in ("code_search", "file_search"):  # what a file holds may look like a list
            sure = "\n".join(line for line in part.text.splitlines() if _is_of(use, line))
            yield replace(use, lists=use.lists if sure else None, inside=None), sure or part.text
        else:
            yield replace(use, inside=None if several else use.inside, head=""), part.text


def _lacking(listed: Sequence[Use], text: str) -> set[Use]:
    """Return the listings of folders that are not there, as a whole listing of the folder above shows."""
    whole = {posixpath.normpath(use.inside or "") for use in listed if use.answers}
    below = [(use, *posixpath.split(posixpath.normpath(use.inside or ""))) for use in listed]
    asked = [(use, name) for use, parent, name in below if (parent or ".") in whole and name and name[0] != "."]
    names = {name for line in text.splitlines() for name in listings.bare(line)} if asked else set()
    return {use for use, name in asked if name not in names}


def _is_of(use: Use, line: str) -> bool:
    """Tell whether a line is hardly another program's: it begins with a path where this one looked for files."""
    if not use.within or not line.startswith(use.within) or use.lists not in ("listing", "matches"):
        return False
    path = re.split(r"[\s:]", line, maxsplit=1)[0]
    rest = line[len(path) :]
    numbered = use.lists == "matches" and re.match(r":\d+[:-]", rest)
    whole = all(begin.startswith(("/", "./", "../")) for begin in use.within)
    return bool(numbered) or (whole and (not rest or (use.lists == "matches" and rest[0] == ":")))


def _listings(text: str, n: int) -> list[str]:
    """Return the text of each of n listings of bare names, nothing if their order does not tell where each begins."""
    lines = text.splitlines()
    tables = [[[*map(order, listings.bare(line))] for line in lines] for order in _ORDERS]
    listed = [any(_on(row, row) for row in rows) for rows in zip(*tables, strict=True)]
    kept = [[row if is_one else [] for row, is_one in zip(table, listed, strict=True)] for table in tables]
    found = [_blocks(rows) for rows in kept if all(_on(row, row) for row in rows)]
    fewest = min(map(len, found), default=0)  # in the order that they have
    first, *others = [blocks for blocks in found if len(blocks) == fewest] or [[]]
    told = fewest == n and all(blocks == first for blocks in others)
    return ["\n".join(lines[block.start : block.stop]) for block in first] if told else []


def _blocks(rows: Sequence[Sequence[str]]) -> list[range]:
    """Return the fewest runs of rows that are each sorted, down each column and on with the next; none if it is unsure.

    Rows without a name lie between runs.
    """
    forward = _runs(rows, lambda first, last, row: _down(last, row) and _on(first, row))
    backward = _runs(rows[::-1], lambda first, last, row: _down(row, last) and _on(row, first))
    mirrored = [range(len(rows) - run.stop, len(rows) - run.start) for run in reversed(backward)]
    return forward if forward == mirrored else []


def _runs(rows: Sequence[Sequence[str]], fits: Callable[[_Row, _Row, _Row], bool]) -> list[range]:
    """Return the runs that each take what rows they can, of which `fits` tells by the first and last row of a run."""
    runs: list[range] = []
    for at, row in enumerate(rows):
        last = runs[-1] if runs and runs[-1].stop == at else None
        if row and last and fits(rows[last.start], rows[last.stop - 1], row):
            runs[-1] = range(last.start, at + 1)
        elif row:
            runs.append(range(at, at + 1))
    return runs


def _down(above: _Row, below: _Row) -> bool:
    return len(below) <= len(above) and all(one <= other for one, other in zip(above, below, strict=False))


def _on(first: _Row, last: _Row) -> bool:
    return all(one <= other for one, other in zip(last, islice(first, 1, None), strict=False))


def _listed(use: Use, text: str) -> Iterator[str]:
    if use.lists == "listing":
        yield from listings.listed(text, use.inside, use.cwd)
    elif use.lists == "tree":
        yield from listings.drawn(text, use.inside, use.cwd)
    elif use.lists in ("diff", "changes"):
        lines = search_results.changed if use.lists == "diff" else listings.renamed
        yield from rooted(lines(text), use.cwd, use.files)
    elif use.lists:
        paths = _LINES[use.lists](text)
        yield from (posixpath.join(use.cwd, path) for path in paths if path.startswith(use.within or ""))
