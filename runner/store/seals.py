"""Verify the files of a store by checksum, once for each change to them.

A seal is what a change to a file changes: its inode, its size, and the times of its last modification and last status
change. Programs can set the former time, but not the latter. The seal of a large file is saved in its entry, for later
processes; the seal of a mapped file is kept in memory while the process lives; smaller files are verified whenever they
are read. Seals say nothing about damage that leaves no trace in a file's status, such as a disk
that returns other bytes than were written: `cache.verify=true` reads every file in full.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

MAPPED_BYTES = 8 << 20
"""Files from this size are mapped, not read. Each mapping holds a file open, of which a process may have few."""

SEALED_BYTES = 64 << 20
"""Files above this size are verified once for each change, not once for each process: a gigabyte takes half a second.
They are written through to the disk, so that no loss of power can undo what was verified."""

SETTLED_S = 2.0
"""The age from which a file can be sealed. Until then it could change again within the resolution of its times."""

SEALS = "seals.json"

_READ_BYTES = 1 << 18
"""The size of the blocks in which files are verified, which fit in the processor's cache."""


class Damaged(ValueError):
    """An entry is not what was written."""


class Seal(NamedTuple):
    """The status of a file, and the checksum that its content has, or should have."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int
    crc32: int

    @staticmethod
    def of(file: Path, crc32: int) -> Seal:
        """Return the seal that a file has if this is its checksum. Raises `OSError`."""
        status = file.stat()
        return Seal(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, crc32)


class Seals:
    """The files that were verified and have not changed since."""

    def __init__(self) -> None:
        self._mapped: dict[Path, Seal] = {}

    def check(self, file: Path, size: int, crc32: int) -> None:
        """Verify a file unless that was done since its last change. Raises `Damaged` and `OSError`."""
        seal = Seal.of(file, crc32)
        if seal.size == size and self._is_sealed(file, seal):
            return
        now = time.time()
        verify(file, size, crc32)
        if Seal.of(file, crc32) != seal:
            raise Damaged(f"{file.name} changed while it was being verified")
        if size >= MAPPED_BYTES:
            self._mapped[file] = seal
        if size > SEALED_BYTES and now - seal.changed_ns / 1e9 >= SETTLED_S:
            with suppress(OSError):  # what cannot be saved is verified again
                _save(file, seal)

    def _is_sealed(self, file: Path, seal: Seal) -> bool:
        if self._mapped.get(file) == seal:
            return True
        if seal.size > SEALED_BYTES and _load(file.parent).get(file.name) == list(seal):
            self._mapped[file] = seal
            return True
        return False


def verify(file: Path, size: int, crc32: int) -> None:
    """Read a file in full and compare its size and checksum. Raises `Damaged` and `OSError`."""
    actual = file.stat().st_size
    if actual != size:
        raise Damaged(f"{file.name} has {actual:,} bytes instead of {size:,}")
    summed, block = 0, memoryview(bytearray(_READ_BYTES))
    with file.open("rb", buffering=0) as opened:
        while length := opened.readinto(block):
            summed = zlib.crc32(block[:length], summed)
    if summed != crc32:
        raise Damaged(f"{file.name} has changed since it was written")


def dumps(content: Mapping[str, Any], option: int | None = None) -> bytes:
    """Return a mapping as JSON that has its own checksum, under `crc32`."""
    return orjson.dumps({**content, "crc32": zlib.crc32(orjson.dumps(content))}, option=option)


def loads(raw: bytes) -> dict[str, Any]:
    """Return the mapping in JSON from `dumps`. Raises `ValueError`."""
    content = orjson.loads(raw)
    if not isinstance(content, dict) or content.pop("crc32", None) != zlib.crc32(orjson.dumps(content)):
        raise ValueError("the checksum does not match")
    return content


def _load(folder: Path) -> dict[str, Any]:
    """Return the seals saved in an entry, by file name; none where they cannot be read."""
    try:
        return loads((folder / SEALS).read_bytes())
    except (OSError, ValueError):
        return {}


def _save(file: Path, seal: Seal) -> None:
    """Save a seal beside its file. A process that reads it half-written takes it for none."""
    (file.parent / SEALS).write_bytes(dumps({**_load(file.parent), file.name: list(seal)}))
