"""Walk through folders in order of their names, visiting each only once, even if several links lead to it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("runner.features.traces")

_SKIPPED = {"node_modules", "__pycache__"}


@dataclass(frozen=True)
class FolderContent:
    """A folder and the names of the files and folders in it, the folders in order."""

    path: Path
    files: frozenset[str]
    folders: Sequence[str]


def list_folder(folder: Path) -> FolderContent | None:
    """Return the content of a folder; None, with a logged warning, if it cannot be listed."""
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
        log.warning("%s: cannot be listed and is skipped (%s)", folder, error.strerror or error)
        return None
    return FolderContent(folder, frozenset(files), sorted(folders))


def walk_folders(root: Path, enters: Callable[[str], bool] = lambda _: True) -> Iterator[FolderContent]:
    """Yield a folder and those below it in order of their names, each before its subfolders.

    Links are followed, but each folder is visited once. `enters` decides by name which folders are entered; hidden ones
    are not.
    """
    visited: set[tuple[int, int]] = set()
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            status = folder.stat()
        except OSError:
            continue  # deleted since it was listed
        if (status.st_dev, status.st_ino) in visited:
            continue
        visited.add((status.st_dev, status.st_ino))
        if (place := list_folder(folder)) is None:
            continue
        yield place
        entered = [name for name in place.folders if not name.startswith(".") and name not in _SKIPPED]
        waiting += [folder / name for name in reversed(entered) if enters(name)]


def _is(kind: Callable[[], bool]) -> bool:
    try:
        return kind()
    except OSError:
        return False  # a link to itself
