"""Where the paths begin that git prints: at the root of a repository, which may lie above the folder that it ran in.

It knows nothing of how a command is read, nor of what git printed besides.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable

from runner.agents.truth.paths import ROOTS

_FEWEST = (
    2  # folders that a path shares with the one that git ran in: one alone may be a package named as its repository
)
_MOST_TRIED = 200  # paths, to tell the root by one of them


def rooted(paths: Iterable[str], folder: str, named: Collection[str] = ()) -> list[str]:
    """Return paths from where the command began, given those from the root, and the folder that git ran in.

    Where the root is not sure, it is that folder. It is sure from a file that the command names, or from a path that
    begins with the last folders down which git ran: two of them, or one right below where tasks are unpacked.
    """
    found = list(paths)
    roots = (root for path in found[:_MOST_TRIED] for root in (*_by_names(path, named), *_by_folder(path, folder)))
    root = next(roots, folder)
    return [posixpath.join(root, path) for path in found]


def _by_names(path: str, named: Iterable[str]) -> list[str]:
    """Return the folder from which a path leads to one of the files that a command names."""
    return [name[: -len(path)] for name in named if f"/{name}".endswith(f"/{path}")]


def _by_folder(path: str, folder: str) -> list[str]:
    parts = folder.split("/")
    fewest = 1 if "/".join(parts[:-1]) in ROOTS else _FEWEST
    for n in range(len(parts), fewest - 1, -1):
        if path.startswith(f"{'/'.join(parts[-n:])}/") and parts[-n]:
            return ["/".join(parts[:-n]) or folder[: folder.startswith("/")]]
    return []
