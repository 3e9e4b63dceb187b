"""Decides whether a path that somebody else wrote stays in the working folder, also after links are followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_WILD = "*?["


def is_inside(path: str, base: Path) -> bool:
    """Return whether a path, relative to `base`, and all that a reader of it may open are in the working folder.

    That is a file with the files beside it whose names start alike, a folder with its content except hidden files, or
    the files that match a glob.
    """
    here = Path.cwd().resolve()
    try:
        return all(_follow(place).is_relative_to(here) for place in _iter_places(base / Path(path).expanduser()))
    except (OSError, RuntimeError, ValueError):  # a loop of links, an unknown user, a NUL
        return False


def _follow(place: Path) -> Path:
    """Return where links lead from a place, which need not exist; raises `OSError` for a loop of links."""
    with suppress(FileNotFoundError, NotADirectoryError):
        place.stat()  # from Python 3.13 on, only this reports a loop
    return place.resolve()


def _iter_places(path: Path) -> Iterator[Path]:
    """Yield a path, then what else may be opened; what a glob matches only after the path itself was yielded."""
    yield path
    if path.is_dir():
        yield from _iter_links(path)
        return
    if any(character in str(path) for character in _WILD):
        yield from Path(path.anchor).glob(str(path.relative_to(path.anchor)))
    if path.parent.is_dir():
        start = path.name.partition(".")[0]
        with os.scandir(path.parent) as entries:
            yield from [Path(e.path) for e in entries if e.name.startswith(start) and e.is_symlink()]


def _iter_links(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        shown = [entry for entry in entries if not entry.name.startswith(".")]
    for entry in shown:
        if entry.is_symlink():
            yield Path(entry.path)
        elif entry.is_dir():
            yield from _iter_links(Path(entry.path))
