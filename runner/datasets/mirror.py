"""Keep copies of data files from object stores in the cache folder of the user.

A copy has the modification time of its original and is fetched again if the time or the size changes. Nothing here
depends on the content of the files.
"""

from __future__ import annotations

import os
import re
import uuid
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from retrievers.runs.run_formats import COMPRESSIONS
from runner.config.addresses import SPLIT, check_reachable
from runner.system.object_stores import Objects, ObjectStatus, find_cache_folder

_WILD = re.compile(r"[*?\[]")


@cache
def mirror(address: str) -> Path:
    """Return the path of the copy of a file or folder, or the glob of the copies of all files that match a glob.

    `address` may contain `{split}` for the name of any split, and the name of a file may lack the extension of a
    compression.
    Files are fetched at most once per process. If the original does not exist, neither does the copy. Raises
    `ValueError` for an address that is not of an object store, and `OSError` for one that cannot be reached.
    """
    protocol, _, path = check_reachable(address).partition("://")
    bucket, _, name = path.rstrip("/").partition("/")
    objects, copies = Objects(f"{protocol}://{bucket}"), find_cache_folder() / "data" / protocol / bucket
    pattern, endings = name.replace(SPLIT, "*"), ("", *COMPRESSIONS)
    if wild := _WILD.search(pattern):
        folder = pattern[: wild.start()].rpartition("/")[0]
        listed = objects.list_all(folder)
        patterns = [f"{pattern}{ending}" for ending in endings]
        files = [file for file in listed if any(fnmatch(file.name, wanted) for wanted in patterns)]
    else:
        files = next(filter(None, (objects.list_all(f"{name}{ending}") for ending in endings)), [])
        _remove_others(copies / name, {copies / file.name for file in files})
    for file in files:
        _fetch(objects, file, copies / file.name)
    return copies / name


def address_of(path: Path) -> str | None:
    """Return the remote address of a path in the folder of copies; None for a path outside it."""
    root = find_cache_folder() / "data"
    if not path.is_relative_to(root) or len(parts := path.relative_to(root).parts) < 3:
        return None
    return f"{parts[0]}://{'/'.join(parts[1:])}"


def _fetch(objects: Objects, file: ObjectStatus, copy: Path) -> None:
    """Write a file to its copy in one step, unless the copy has the same size and time."""
    if copy.is_file() and (copy.stat().st_size, int(copy.stat().st_mtime)) == (file.bytes, int(file.modified)):
        return
    copy.parent.mkdir(parents=True, exist_ok=True)
    aside = copy.with_name(f".{copy.name}.{uuid.uuid4().hex[:8]}")
    try:
        objects.download(file.name, aside)
        os.utime(aside, (file.modified, file.modified))
        aside.replace(copy)
    finally:
        aside.unlink(missing_ok=True)


def _remove_others(folder: Path, present: set[Path]) -> None:
    """Remove the copies of files that no longer exist."""
    for copy in folder.rglob("*") if folder.is_dir() else ():
        if copy.is_file() and copy not in present and not copy.name.startswith("."):
            copy.unlink(missing_ok=True)
