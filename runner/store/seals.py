"""Verifies the files of a store by checksum, once after each change.

A seal consists of the inode of a file, its size, and the times of its last modification and last status change. Every
write changes at least one of them: programs can set the modification time, but not the time of the status change. The
seal of a file above `SEALED_BYTES` is saved in its entry, for later processes; the seal of any other mapped file is
kept in memory while the process lives; smaller files are verified whenever they are read. Seals do not detect damage
that leaves the status of a file unchanged, such as a disk that returns other bytes than were written; for this,
`cache.verify=true` reads every file in full.
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
"""Files of at least this size are memory-mapped. Each mapping keeps a file open, and open files are limited."""

SEALED_BYTES = 64 << 20
"""Files above this size are verified once after each change, not in each process: a gigabyte takes half a second.
They are synced to the disk, so that a power failure cannot undo a write that was verified."""

SETTLED_S = 2.0
"""The age in seconds from which a file can be sealed. A younger file could change again without a change of its times,
which have a limited resolution."""

SEALS = "seals.json"

_READ_BYTES = 1 << 18
"""The number of bytes to verify at a time; a block fits in the processor's cache."""


class Damaged(ValueError):
    """An entry differs from what was written."""


class Seal(NamedTuple):
    """The status of a file, and the actual or expected checksum of its content."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int
    crc32: int

    @staticmethod
    def of(file: Path, crc32: int) -> Seal:
        """Return the seal of a file with this checksum. Raises `OSError`."""
        status = file.stat()
        return Seal(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, crc32)


class Seals:
    """The files that were verified and have not changed since."""

    def __init__(self) -> None:
        self._mapped: dict[Path, Seal] = {}

    def check(self, file: Path, size: int, crc32: int) -> None:
        """Verify a file unless it has been verified since its last change. Raises `Damaged` and `OSError`."""
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
            with suppress(OSError):  # without a saved seal, the next process verifies the file again
                _save(file, seal)

    def _is_sealed(self, file: Path, seal: Seal) -> bool:
        if self._mapped.get(file) == seal:
            return True
        if seal.size > SEALED_BYTES and _load(file.parent).get(file.name) == list(seal):
            self._mapped[file] = seal
            return True
        return False


def verify(file: Path, size: int, crc32: int) -> None:
    """Read a file in full and check its size and checksum. Raises `Damaged` and `OSError`."""
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
    """Return a mapping as JSON that contains its checksum under `crc32`."""
    return orjson.dumps({**content, "crc32": zlib.crc32(orjson.dumps(content))}, option=option)


def loads(raw: bytes) -> dict[str, Any]:
    """Return the mapping in JSON from `dumps`. Raises `ValueError`."""
    content = orjson.loads(raw)
    if not isinstance(content, dict) or content.pop("crc32", None) != zlib.crc32(orjson.dumps(content)):
        raise ValueError("the checksum does not match")
    return content


def _load(folder: Path) -> dict[str, Any]:
    """Return the seals saved in an entry, by file name; {} if they cannot be read."""
    try:
        return loads((folder / SEALS).read_bytes())
    except (OSError, ValueError):
        return {}


def _save(file: Path, seal: Seal) -> None:
    """Save a seal beside its file. A process that reads a half-written file of seals ignores it."""
    (file.parent / SEALS).write_bytes(dumps({**_load(file.parent), file.name: list(seal)}))
