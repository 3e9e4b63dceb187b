"""Write files atomically, so that a killed process leaves no partial file, and hash files."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

UNFINISHED = ".unfinished"
"""The suffix of a file that is being written, or was when its process ended."""


@contextmanager
def replace_file(file: Path, aside: Path | None = None) -> Iterator[Path]:
    """Yield a path beside a file to write to, and rename it to the file; remove it if the block raises.

    `aside` is the path to write to, by default a hidden file with a random name. Raises `OSError`.
    """
    aside = aside or file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}{UNFINISHED}")
    try:
        yield aside
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, or "(no such file)"; the file is read again only if its size or time changes."""
    if not path.is_file():
        return "(no such file)"
    stat = path.stat()
    return _hash_file_once(path, stat.st_size, stat.st_mtime_ns)


@cache
def _hash_file_once(path: Path, size: int, mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def replace_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the text of each file into a folder, each file atomically and with its own line ends; raises `OSError`."""
    for name, text in texts.items():
        with replace_file(folder / name) as new:
            new.write_text(text, encoding="utf-8", newline="")
