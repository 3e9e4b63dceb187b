"""Read the small files beside a trace; a file that is too large, binary or damaged raises one kind of error."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

import orjson

LARGEST_BYTES = 16 * 2**20
"""The largest file that is read: descriptions of tasks and runs take kilobytes."""

LARGEST_NUMBER = 2**53
"""The largest number that is used: larger counts are not exact, and computations overflow."""


class UnusableFileError(ValueError):
    """A file exists but cannot be used. The message gives the reason, not the path, which the caller knows."""


def read_text(path: Path) -> str | None:
    """Return the text of a file, None if there is no such file; bytes that are not UTF-8 are replaced.

    Raises `UnusableFileError` for a file that is too large, binary or unreadable.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > LARGEST_BYTES:
            raise UnusableFileError(f"{status.st_size} bytes, more than the limit of {LARGEST_BYTES}")
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnusableFileError(error.strerror or str(error)) from None
    if b"\0" in content:
        raise UnusableFileError("binary data instead of text")
    return content.decode(errors="replace").removeprefix("\ufeff")


def read_json(path: Path) -> object:
    """Return the content of a JSON file, None if there is no such file. Raises `UnusableFileError`."""
    text = read_text(path)
    if text is None:
        return None
    try:
        content: object = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UnusableFileError(f"invalid JSON ({error})") from None
    return content


def get_nested(value: object, *path: str) -> object:
    """Return the value at a path through nested objects, None if a step is missing or is not an object."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def get_text(value: object, *path: str) -> str | None:
    """Return the text at a path through nested objects, None if there is none or it is blank."""
    text = get_nested(value, *path)
    return text.strip() or None if isinstance(text, str) else None


def get_number(value: object, *path: str) -> float | None:
    """Return the number at a path through nested objects, None if there is none or it is implausibly large."""
    number = get_nested(value, *path)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return None
    return float(number) if abs(number) <= LARGEST_NUMBER else None
