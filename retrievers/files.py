"""Files that are written whole or not at all, whatever ends the process in between."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNFINISHED = ".unfinished"
"""The ending of a file that is being written, or was when its process ended."""


@contextmanager
def replace_file(file: Path, aside: Path | None = None) -> Iterator[Path]:
    """Yield a path beside a file to write to, and rename it to the file; remove it if the block raises.

    `aside` is the path to write to, if its name matters. Raises `OSError`.
    """
    aside = aside or file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}{UNFINISHED}")
    try:
        yield aside
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)
