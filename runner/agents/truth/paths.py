"""Which file a path means: repository, path within it, and whether that is one of the gold files.

The same file is `/workspace/kafka--0753c489/core/A.java` to a shell, `core/A.java` in `github.com/x/kafka--0753c489` to
a search, and `kafka::core/A.java` to a task. It knows nothing of tools, or of where a path was found.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from runner.agents.truth.gold_files import GoldFile

ROOTS = ("/workspace", "/repo_full", "/testbed", "/app")
"""Folders that tasks are unpacked to."""

LONGEST = 1000
"""How many characters a path may have: what is longer is text that looks like one."""

_NAMED = re.compile(  # names that folders do not have, as far as a name can tell
    r"""[^/\s]*[^/\s.]\.[A-Za-z_][\w+-]{0,14}    # a.py, .dir-locals.el
      | \.[\w-]*(?:rc|ignore|attributes|modules|keep|config|env|lock)
      | [A-Z][A-Z0-9]+(?:[-_][A-Z0-9]+)*          # LICENSE, ABOUT-NLS
      | (?:GNU|[A-Z])[a-z]*file | ChangeLog(?:-\d+)? | Kconfig | Kbuild""",
    re.VERBOSE,
)


_NOT_WITHIN = re.compile(r"^[^/]* |  | /|/ ")  # where a space is, and text is not one path


class File(NamedTuple):
    """A file: its path, and its repository where that is known."""

    path: str
    repo: str | None = None


def looks_like_file(path: str) -> bool:
    """Tell whether text is a path whose last part is named as files are, and folders are not."""
    return len(path) <= LONGEST and _NAMED.fullmatch(path.rpartition("/")[2]) is not None and "://" not in path


def has_spaces(path: str) -> bool:
    """Tell whether text with spaces is yet one path of a file: its first part, or a root, has none."""
    return " " in path and looks_like_file(path.replace(" ", "_")) and not _NOT_WITHIN.search(path)


def short(repo: str) -> str:
    """Return the name that a repository has without host, owner and `--version`: `github.com/a/b--v1` is `b`."""
    name = repo.rstrip("/").rpartition("/")[2].removesuffix(".git").lower()
    *owned, version = name.split("--")
    return owned[-1] if owned and owned[-1] else version


def in_repository(file: File, roots: Iterable[str] = ROOTS) -> File:
    """Return a file with its path as its repository has it.

    Roots, which are plain, are stripped, the first that fits; and the folder of a clone, which is named
    `repository--version`, tells the repository. What lies elsewhere keeps its whole path.
    """
    path = plain(file.path)
    for root in roots:
        if len(root) > 1 and path.lower().startswith(f"{root.lower()}/"):
            path = path[len(root) + 1 :]
            break
    clone, _, inside = path.partition("/")
    name, _, version = clone.rpartition("--")
    if file.repo is None and inside and name and any(character.isdigit() for character in version):
        return File(inside, clone)
    return File(path.lstrip("/") if file.repo else path, file.repo)


def plain(path: str) -> str:
    """Return a path without what changes nothing: `./`, `a/../`, repeated slashes."""
    whole = path.strip().removeprefix("file://").replace("\\", "/")
    return posixpath.normpath(f"/{whole.lstrip('/')}" if whole.startswith("/") else whole) if whole else ""


def gold_file(file: GoldFile) -> File:
    """Return a file as a task names it, `repo::path` taken apart."""
    repo, separator, path = file.path.rpartition("::")
    return in_repository(File(path, repo)) if separator and repo else in_repository(File(file.path, file.repo))


def named_file(name: str) -> File:
    """Return the file that a document means by `path` or `repo::path`."""
    return gold_file(GoldFile(name))


def match_names(names: Iterable[str], known: Sequence[str]) -> dict[str, str]:
    """Return which known file each name means, both as a document names them; names of other files are left out.

    This is the only place where paths are matched with gold files; see `matches` for when two are the same.
    """
    files = {name: named_file(name) for name in names}
    positions = matches(files.values(), [named_file(name) for name in known])
    return {name: known[positions[file]] for name, file in files.items() if file in positions}


def matches(seen: Iterable[File], gold: Sequence[File]) -> Mapping[File, int]:
    """Return which gold file each file that was seen is, by its position; the others are left out.

    Case does not count, nor a repository that only one of the two names. A path is the same where it is equal; or where
    one ends in the other, at least a folder and a name of it, and no other file that was seen or is gold does so too.
    """
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    for position, file in enumerate(gold):
        by_name[_name(file)].append(position)
    equal: dict[File, int] = {}
    endings: defaultdict[int, dict[File, list[File]]] = defaultdict(dict)  # by gold file: each that was seen, once
    for file in dict.fromkeys(seen):
        near = [position for position in by_name.get(_name(file), ()) if _same_repo(file, gold[position])]
        same = [position for position in near if file.path.lower() == gold[position].path.lower()]
        same = same or [position for position in near if _is_in_clone(file, gold[position])]
        if same and len({_repo(gold[position]) for position in same}) == 1:
            equal[file] = same[0]
        elif not same:
            ending = [position for position in near if _ends(file, gold[position])]
            if len(ending) == 1:
                endings[ending[0]].setdefault(_folded(file), []).append(file)
    settled = set(equal.values())
    for position, candidates in endings.items():
        if len(candidates) == 1 and position not in settled:
            equal |= {file: position for file in next(iter(candidates.values()))}
    return equal


def _name(file: File) -> str:
    return file.path.lower().rpartition("/")[2]


def _repo(file: File) -> str | None:
    return None if file.repo is None else short(file.repo)


def _folded(file: File) -> File:
    return File(file.path.lower(), _repo(file))


def _same_repo(one: File, other: File) -> bool:
    return one.repo is None or other.repo is None or short(one.repo) == short(other.repo)


def _is_in_clone(seen: File, gold: File) -> bool:
    """Tell whether a path is that of a gold file below a folder with the name of its repository."""
    return (
        seen.repo is None and gold.repo is not None and seen.path.lower() == f"{short(gold.repo)}/{gold.path.lower()}"
    )


def _ends(one: File, other: File) -> bool:
    shorter, longer = sorted((one.path.lower(), other.path.lower()), key=len)
    return "/" in shorter and longer.endswith(f"/{shorter.lstrip('/')}")
