"""Resolve the paths that git prints: from the root of a repository, which may be above git's working folder."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable

from runner.features.traces.truth.paths import ROOTS

_MIN_SHARED = 2  # folders that a path and git's folder share; one alone may be a package named like its repository
_MAX_TRIED = 200  # paths from which the root is inferred


def resolve_paths(paths: Iterable[str], folder: str, named: Collection[str] = ()) -> list[str]:
    """Return git's paths relative to the folder in which the command started, given the folder in which git ran.

    The root is inferred from a file that the command names, or from a path that starts with the last folders of git's
    folder: two of them, or one directly below where tasks are unpacked. Otherwise, the root is git's folder.
    """
    listed = list(paths)
    roots = (root for path in listed[:_MAX_TRIED] for root in (*_by_names(path, named), *_by_folder(path, folder)))
    root = next(roots, folder)
    return [posixpath.join(root, path) for path in listed]


def _by_names(path: str, named: Iterable[str]) -> list[str]:
    """Return the folders from which a path leads to a file that the command names."""
    return [name[: -len(path)] for name in named if f"/{name}".endswith(f"/{path}")]


def _by_folder(path: str, folder: str) -> list[str]:
    parts = folder.split("/")
    shortest = 1 if "/".join(parts[:-1]) in ROOTS else _MIN_SHARED
    for n in range(len(parts), shortest - 1, -1):
        if path.startswith(f"{'/'.join(parts[-n:])}/") and parts[-n]:
            return ["/".join(parts[:-n]) or folder[: folder.startswith("/")]]
    return []
