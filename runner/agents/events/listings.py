"""Which files a list shows: of names in a folder, of paths with counts or states, drawn as a tree.

Lists are what `ls`, `find`, `tree`, `wc`, `git status` and their like print. It knows nothing of commands.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from runner.agents.truth.paths import LONGEST, has_spaces, looks_like_file

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
_A_LEVEL = 4  # characters wide


def in_tree(text: str) -> list[str]:
    """Return the names in a folder, which a server reads as git lists it."""
    return list(dict.fromkeys(_TREE.findall(text))) if _TREE.search(text[:300]) else []


def listed(text: str, inside: str | None = "", cwd: str = "") -> Iterator[str]:
    """Yield the files of a listing: a path a line, columns of names, `ls -l`, `git ls-tree`; not the folders.

    Paths are relative to `cwd`; bare names are inside the folder that a line before them heads, or in `inside`, and
    left out where that is None.
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


def bare(line: str) -> list[str]:
    """Return the names that a line of a listing has, of files or folders; none where it has paths, or text."""
    entry = _LONG.fullmatch(line.strip())
    names = [entry[2].partition(" -> ")[0]] if entry else _COLUMNS.split(line.strip())
    names = [name.removesuffix("/") for name in names]
    plain = all(name and "/" not in name and not name.endswith(":") and (entry or " " not in name) for name in names)
    return names if plain else []


def headed(text: str) -> Iterator[str]:
    """Yield the files that `head` and `tail` name above what they show of several."""
    yield from _HEAD.findall(text)


def counted(text: str) -> Iterator[str]:
    """Yield the files of lines that have numbers, sizes or digests before a path, as `wc` and `du` print them."""
    for line in text.splitlines():
        if (said := _COUNTED.fullmatch(line)) and looks_like_file(said[1]):
            yield said[1]


def status(text: str) -> Iterator[str]:
    """Yield the files of `git status`, long or short, by their last names; not the folders."""
    untracked = False
    for line in text.splitlines():
        untracked = line.endswith("files:") or (untracked and not line[:1].strip())  # other programs indent words too
        if said := _STATUS.fullmatch(line):
            path = (said["path"] or said["short"]).rpartition(" -> ")[2].strip('"')
            if (said["state"] or said["short"] or untracked) and " " not in path and not path.endswith("/"):
                yield path


def renamed(text: str) -> Iterator[str]:
    """Yield the files of `git diff --name-only` and `--name-status`: a path a line, after its state, or two."""
    for line in text.splitlines():
        if said := _STATE.fullmatch(line):
            yield from (path for path in said.groups() if path and looks_like_file(path))


def drawn(text: str, inside: str | None, cwd: str = "") -> Iterator[str]:
    """Yield the files of a drawn tree, in a folder; where that is None, those only that it names by paths.

    Such paths are relative to `cwd`.
    """
    above: list[str] = []
    for line in text.splitlines():
        said = _DRAWN.fullmatch(line.rstrip())
        if said is None:
            continue
        level = len(said[1]) // _A_LEVEL
        name = said[2].partition(" -> ")[0].rstrip("/")
        above = [*above[:level], name]
        if not looks_like_file(name) or said[2].endswith("/"):
            continue
        if "/" in name:
            yield posixpath.join(cwd, name)
        elif inside is not None:
            yield posixpath.join(inside, *above)


def folder(text: str) -> list[str]:
    """Return the files of a folder's list in which folders end with a slash; none of any other text."""
    words = text.split()
    if len(words) != len(text.splitlines()) or not any(word.endswith("/") for word in words):
        return []
    return [word for word in words if looks_like_file(word)]
