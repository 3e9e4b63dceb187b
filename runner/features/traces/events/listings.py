"""Parse the files in listings: names in a folder, paths with counts or states, drawn trees.

Listings are the output of `ls`, `find`, `tree`, `wc`, `git status` and similar programs.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from runner.features.traces.truth.paths import LONGEST, has_spaces, looks_like_file

_LONG = re.compile(r"([-dlbcps])[-rwxsStT]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+[\d,.]+\w?\s+\w+\s+\d+\s+[\d:]+\s(.+)")
_TREE = re.compile(r"\d{6} (?:blob|commit) [0-9a-f]{40,64}(?:\t|\\++t)([^\n\\\"]+)")
_COLUMNS = re.compile(r"\s{2,}|\t")
_HEAD = re.compile(r"^==> (.+) <==$", re.MULTILINE)
_COUNTED = re.compile(r"\s*(?:[\da-f]{32,64}|[\d.]+[KMGT]?)(?:\s+\d+)*\s+\*?(\S+)")
_STATUS = re.compile(
    r"""(?:\t|\ {2,})
        (?P<state>(?:modified|new\ file|deleted|renamed|copied|typechange|(?:both|added|deleted)\ (?:by\ )?\w+):\s+)?
        (?P<path>\S.*) | [ MADRCUT?!]{2}\ (?P<short>\S.*)""",
    re.VERBOSE,
)
_STATE = re.compile(r"(?:[MADTCRUX]\d*\t)?(\S+)(?:\t(\S+))?")
_DRAWN = re.compile(r"((?:(?:[\u2502|]|[ \u00a0])[ \u00a0]{3})*)(?:[\u251c\u2514]\u2500\u2500|\|--|`--)[ \u00a0](.+)")
_LEVEL_WIDTH = 4  # characters


def parse_git_tree(text: str) -> list[str]:
    """Return the names in a folder that a server lists in the format of `git ls-tree`."""
    return list(dict.fromkeys(_TREE.findall(text))) if _TREE.search(text[:300]) else []


def parse_listing(text: str, inside: str | None = "", cwd: str = "") -> Iterator[str]:
    """Yield the files of a listing, without folders: a path per line, columns of names, `ls -l`, `git ls-tree`.

    Paths are relative to `cwd`. Bare names are in the folder that a line above them names, or else in `inside`; if that
    is None, they are left out.
    """
    names: list[str]
    for line in text.splitlines():
        if entry := _LONG.fullmatch(line.strip()):
            names = [entry[2].partition(" -> ")[0]] if entry[1] in "-l" else []
        elif entry := _TREE.fullmatch(line.strip()):
            names = [entry[1]]
        elif line.endswith(":") and " " not in line and len(line) <= LONGEST:
            inside, names = posixpath.join(cwd, line[:-1]), []
        elif line.startswith(("/", "./")) and has_spaces(line):
            names = [line]
        else:
            names = [name for name in _COLUMNS.split(line.strip()) if " " not in name and looks_like_file(name)]
        for name in names:
            if "/" in name:
                yield posixpath.join(cwd, name)
            elif inside is not None:
                yield posixpath.join(inside, name)


def parse_heads(text: str) -> Iterator[str]:
    """Yield the files that `head` and `tail` name above the contents of several files."""
    yield from _HEAD.findall(text)


def parse_counts(text: str) -> Iterator[str]:
    """Yield the files of lines with numbers, sizes or digests before a path, as `wc` and `du` print them."""
    for line in text.splitlines():
        if (entry := _COUNTED.fullmatch(line)) and looks_like_file(entry[1]):
            yield entry[1]


def parse_status(text: str) -> Iterator[str]:
    """Yield the files of `git status`, long or short, by their current names, without folders."""
    untracked = False
    for line in text.splitlines():
        untracked = line.endswith("files:") or (untracked and not line[:1].strip())  # other programs indent words too
        if entry := _STATUS.fullmatch(line):
            path = (entry["path"] or entry["short"]).rpartition(" -> ")[2].strip('"')
            if (entry["state"] or entry["short"] or untracked) and " " not in path and not path.endswith("/"):
                yield path


def parse_changes(text: str) -> Iterator[str]:
    """Yield the files of `git diff --name-only` and `--name-status`: lines of one or two paths, maybe with a state."""
    for line in text.splitlines():
        if entry := _STATE.fullmatch(line):
            yield from (path for path in entry.groups() if path and looks_like_file(path))


def parse_tree(text: str, inside: str | None, cwd: str = "") -> Iterator[str]:
    """Yield the files of a tree drawn by `tree`, within the folder `inside`; if that is None, only those with a path.

    These paths are relative to `cwd`.
    """
    above: list[str] = []
    for line in text.splitlines():
        entry = _DRAWN.fullmatch(line.rstrip())
        if entry is None:
            continue
        level = len(entry[1]) // _LEVEL_WIDTH
        name = entry[2].partition(" -> ")[0].rstrip("/")
        above = [*above[:level], name]
        if not looks_like_file(name) or entry[2].endswith("/"):
            continue
        if "/" in name:
            yield posixpath.join(cwd, name)
        elif inside is not None:
            yield posixpath.join(inside, *above)


def parse_folder(text: str) -> list[str]:
    """Return the files in a list whose folders end with a slash; none for any other text."""
    words = text.split()
    if len(words) != len(text.splitlines()) or not any(word.endswith("/") for word in words):
        return []
    return [word for word in words if looks_like_file(word)]
