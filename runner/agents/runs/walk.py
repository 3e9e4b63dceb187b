"""A walk through folders, in order of their names, that ends: each folder once, however links lead to it.

It knows nothing of what is looked for.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("runner.agents")

_PASSED_OVER = {"node_modules", "__pycache__"}


@dataclass(frozen=True)
class Place:
    """A folder and the names of the files and folders in it, the folders in order."""

    path: Path
    files: frozenset[str]
    folders: Sequence[str]


def place_at(folder: Path) -> Place | None:
    """Return what lies in a folder, None if it cannot be listed: that is logged, and does not stop a walk."""
    files: set[str] = set()
    folders: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if _is(entry.is_dir):
                    folders.append(entry.name)
                elif _is(entry.is_file):
                    files.add(entry.name)
    except OSError as error:
        log.warning("%s cannot be listed and is left out: %s", folder, error.strerror or error)
        return None
    return Place(folder, frozenset(files), sorted(folders))


def walked(root: Path, inside: Callable[[str], bool] = lambda _: True) -> Iterator[Place]:
    """Yield a folder and those below it, a folder before what is in it, in order of their names.

    Links are followed, but each folder is visited once. `inside` says by its name whether a folder is entered; hidden
    ones are not.
    """
    visited: set[tuple[int, int]] = set()
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            status = folder.stat()
        except OSError:
            continue  # gone since it was listed
        if (status.st_dev, status.st_ino) in visited:
            continue
        visited.add((status.st_dev, status.st_ino))
        if (place := place_at(folder)) is None:
            continue
        yield place
        entered = [name for name in place.folders if not name.startswith(".") and name not in _PASSED_OVER]
        waiting += [folder / name for name in reversed(entered) if inside(name)]


def _is(kind: Callable[[], bool]) -> bool:
    try:
        return kind()
    except OSError:
        return False  # a link to itself
