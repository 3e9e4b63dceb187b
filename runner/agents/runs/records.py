"""The small files beside a trace, read so that none of them stops the rest: too large, binary or damaged is said.

It knows nothing of what they mean.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

LARGEST_BYTES = 16 * 2**20
"""What describes a task or a run takes kilobytes; a file larger than this is something else."""

LARGEST_NUMBER = 2**53
"""Beyond it counts are not exact, and what is computed with other figures ends as infinity."""


class Unusable(ValueError):
    """A file is there and cannot be used. The message says why, not where: the reader knows that."""


def text_at(path: Path) -> str | None:
    """Return the text of a file, None where there is no such file; bytes that are not UTF-8 are replaced.

    Raises `Unusable` for a file that is too large, binary or unreadable.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > LARGEST_BYTES:
            raise Unusable(f"{status.st_size} bytes, more than the {LARGEST_BYTES} that are read")
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unusable(error.strerror or str(error)) from None
    if b"\0" in content:
        raise Unusable("binary, not text")
    return content.decode(errors="replace").removeprefix("\ufeff")


def json_at(path: Path) -> Any:  # noqa: ANN401 (any JSON)
    """Return what a JSON file holds, None where there is no such file. Raises `Unusable`."""
    text = text_at(path)
    if text is None:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Unusable(f"not valid JSON: {error}") from None


def within(value: object, *path: str) -> Any:  # noqa: ANN401 (any JSON)
    """Return what lies in objects within objects, None where a step of the way is missing or is no object."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def text_within(value: object, *path: str) -> str | None:
    """Return a text that lies in objects within objects, None where there is none or it is blank."""
    found = within(value, *path)
    return found.strip() or None if isinstance(found, str) else None


def number_within(value: object, *path: str) -> float | None:
    """Return a number that lies in objects within objects, None where there is none, or one that measures nothing."""
    found = within(value, *path)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    return float(found) if abs(found) <= LARGEST_NUMBER else None
