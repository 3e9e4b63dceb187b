"""Resolve paths to files: the repository, the path within it, and the gold file that it matches.

The same file is `/workspace/kafka--0753c489/core/A.java` to a shell, `core/A.java` in `github.com/x/kafka--0753c489` to
a search, and `kafka::core/A.java` to a task.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from runner.features.traces.truth.gold_files import GoldFile

ROOTS = ("/workspace", "/repo_full", "/testbed", "/app")
"""The folders that tasks are unpacked to."""

LONGEST = 1000
"""The longest path, in characters; anything longer is other text."""

_FILE_NAME = re.compile(  # names that folders rarely have
    r"""[^/\s]*[^/\s.]\.[A-Za-z_][\w+-]{0,14}    # a.py, .dir-locals.el
      | \.[\w-]*(?:rc|ignore|attributes|modules|keep|config|env|lock)
      | [A-Z][A-Z0-9]+(?:[-_][A-Z0-9]+)*          # LICENSE, ABOUT-NLS
      | (?:GNU|[A-Z])[a-z]*file | ChangeLog(?:-\d+)? | Kconfig | Kbuild""",
    re.VERBOSE,
)


_SEVERAL_WORDS = re.compile(r"^[^/]* |  | /|/ ")  # spaces that separate words rather than belong to a path


class File(NamedTuple):
    """A file: its path, and its repository, None if unknown."""

    path: str
    repo: str | None = None


def looks_like_file(path: str) -> bool:
    """Return whether a text is a path whose last part looks like the name of a file rather than a folder."""
    return len(path) <= LONGEST and _FILE_NAME.fullmatch(path.rpartition("/")[2]) is not None and "://" not in path


def has_spaces(path: str) -> bool:
    """Return whether a text with spaces is the path of one file: its first part, or a root, has no space."""
    return " " in path and looks_like_file(path.replace(" ", "_")) and not _SEVERAL_WORDS.search(path)


def short_name(repo: str) -> str:
    """Return the name of a repository without host, owner and `--version`: `b` for `github.com/a/b--v1`."""
    name = repo.rstrip("/").rpartition("/")[2].removesuffix(".git").lower()
    *owned, version = name.split("--")
    return owned[-1] if owned and owned[-1] else version


def locate_in_repository(file: File, roots: Iterable[str] = ROOTS) -> File:
    """Return a file with its path relative to its repository.

    The first matching root (normalised paths) is removed, and a clone's folder, named `repository--version`, gives the
    repository. A file elsewhere keeps its whole path.
    """
    path = normalise_path(file.path)
    for root in roots:
        if len(root) > 1 and path.lower().startswith(f"{root.lower()}/"):
            path = path[len(root) + 1 :]
            break
    clone, _, inside = path.partition("/")
    name, _, version = clone.rpartition("--")
    if file.repo is None and inside and name and any(character.isdigit() for character in version):
        return File(inside, clone)
    return File(path.lstrip("/") if file.repo else path, file.repo)


def normalise_path(path: str) -> str:
    """Return a path without redundant parts: `./`, `a/../`, repeated slashes."""
    whole = path.strip().removeprefix("file://").replace("\\", "/")
    return posixpath.normpath(f"/{whole.lstrip('/')}" if whole.startswith("/") else whole) if whole else ""


def parse_gold_file(file: GoldFile) -> File:
    """Return the file that a task names; `repo::path` names its repository too."""
    repo, separator, path = file.path.rpartition("::")
    return (
        locate_in_repository(File(path, repo))
        if separator and repo
        else locate_in_repository(File(file.path, file.repo))
    )


def parse_name(name: str) -> File:
    """Return the file that a document names as `path` or `repo::path`."""
    return parse_gold_file(GoldFile(name))


def match_names(names: Iterable[str], known: Sequence[str]) -> dict[str, str]:
    """Return the known file that each name means, without the names of other files; names are as in documents.

    See `match_files` for when two names mean the same file.
    """
    files = {name: parse_name(name) for name in names}
    positions = match_files(files.values(), [parse_name(name) for name in known])
    return {name: known[positions[file]] for name, file in files.items() if file in positions}


def match_files(seen: Iterable[File], gold: Sequence[File]) -> Mapping[File, int]:
    """Return the index of the gold file that each seen file is, without the files that are not gold.

    Case is ignored, and so is a repository that only one of the two names. Paths match if they are equal; or if one
    ends in the other, with at least a folder and a name, and no other seen or gold file does so too.
    """
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    for position, file in enumerate(gold):
        by_name[_name(file)].append(position)
    equal: dict[File, int] = {}
    endings: defaultdict[int, dict[File, list[File]]] = defaultdict(dict)  # by gold file: the seen files, each once
    for file in dict.fromkeys(seen):
        near = [position for position in by_name.get(_name(file), ()) if _same_repo(file, gold[position])]
        same = [position for position in near if file.path.lower() == gold[position].path.lower()]
        same = same or [position for position in near if _is_in_clone(file, gold[position])]
        if same and len({_repo(gold[position]) for position in same}) == 1:
            equal[file] = same[0]
        elif not same:
            ending = [position for position in near if _ends(file, gold[position])]
            if len(ending) == 1:
                endings[ending[0]].setdefault(_fold(file), []).append(file)
    settled = set(equal.values())
    for position, candidates in endings.items():
        if len(candidates) == 1 and position not in settled:
            equal |= {file: position for file in next(iter(candidates.values()))}
    return equal


def _name(file: File) -> str:
    return file.path.lower().rpartition("/")[2]


def _repo(file: File) -> str | None:
    return None if file.repo is None else short_name(file.repo)


def _fold(file: File) -> File:
    return File(file.path.lower(), _repo(file))


def _same_repo(one: File, other: File) -> bool:
    return one.repo is None or other.repo is None or short_name(one.repo) == short_name(other.repo)


def _is_in_clone(seen: File, gold: File) -> bool:
    """Return whether a path is that of a gold file below a folder named after its repository."""
    if seen.repo is not None or gold.repo is None:
        return False
    return seen.path.lower() == f"{short_name(gold.repo)}/{gold.path.lower()}"


def _ends(one: File, other: File) -> bool:
    shorter, longer = sorted((one.path.lower(), other.path.lower()), key=len)
    return "/" in shorter and longer.endswith(f"/{shorter.lstrip('/')}")
