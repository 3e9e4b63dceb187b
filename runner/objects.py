"""Access to an object store (S3, Google Cloud Storage, Azure) through fsspec.

The operations are read, write, create if absent, list and remove. Every failure is an `OSError`.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_REFUSED = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}
"""The error codes of S3 servers for a conditional write of an object that already exists."""

_MODIFIED = ("LastModified", "last_modified", "updated", "mtime", "created")
"""The fields in which file systems report when an object was written."""

_EMPTY_IF_MISSING = ("az", "abfs", "abfss")
"""The protocols whose file system lists a container that does not exist as an empty one."""

PAUSE_S = 60.0
"""Seconds to wait before another request to a server that did not answer."""

_DOWN_UNTIL: dict[str, float] = {}
"""When requests are allowed again after a server did not answer, on the monotonic clock, by bucket."""


class ObjectStatus(NamedTuple):
    """An object: its name, its size in bytes, and when it was written, in seconds since 1970."""

    name: str
    bytes: int
    modified: float


@dataclass(frozen=True)
class Objects:
    """The objects below an address such as s3://bucket/folder; their names are relative to it."""

    address: str

    def read(self, name: str) -> bytes:
        """Return the content of an object; raises `OSError`."""
        with self._request():
            content: bytes = self._system.cat_file(self._path(name))
            return content

    def read_heads(self, names: Sequence[str], length: int) -> dict[str, bytes]:
        """Return the first `length` bytes of each object that exists; raises `OSError`."""
        with self._request():
            paths = [self._path(name) for name in names]
            heads = self._system.cat_ranges(paths, 0, length, on_error="return") if paths else []
        return {name: head for name, head in zip(names, heads, strict=True) if isinstance(head, bytes)}

    def download(self, name: str, file: Path) -> None:
        """Write the content of an object to a file; raises `OSError`."""
        with self._request():
            self._system.get_file(self._path(name), str(file))

    def write(self, name: str, content: bytes) -> None:
        """Write an object, replacing any object with the same name; raises `OSError`."""
        with self._request():
            self._system.pipe_file(self._path(name), content)

    def create(self, name: str, content: bytes | Path) -> bool:
        """Write an object, from memory or a file, unless it exists; return whether it was written. Raises `OSError`.

        Of several processes that create an object at the same time, one succeeds.
        """
        try:
            with self._request():
                if isinstance(content, bytes):
                    self._system.pipe_file(self._path(name), content, mode="create")
                else:
                    self._system.put_file(str(content), self._path(name), mode="create")
        except FileExistsError:
            return False
        return True

    def list_all(self, folder: str = "") -> list[ObjectStatus]:
        """Return the objects in a folder and its subfolders, sorted by name; raises `OSError`."""
        with self._request():
            objects = self._system.find(self._path(folder), detail=True)
            if not objects and self.address.partition("://")[0] in _EMPTY_IF_MISSING:
                self._system.info(self._path("").partition("/")[0])
        start = len(self._path("")) + 1
        by_path = sorted(objects.items())
        return [ObjectStatus(path[start:], status["size"], _modification_time(status)) for path, status in by_path]

    def remove(self, name: str) -> None:
        """Remove an object if it exists; raises `OSError`."""
        with suppress(FileNotFoundError), self._request():
            self._system.rm_file(self._path(name))

    @contextmanager
    def _request(self) -> Iterator[None]:
        """Turn all errors into `OSError`; if an object already exists, raise `FileExistsError`.

        After a server did not answer, requests fail at once for `PAUSE_S` seconds, because each attempt takes seconds.
        """
        place = self.address.partition("://")[2].partition("/")[0]
        if time.monotonic() < _DOWN_UNTIL.get(place, 0.0):
            raise OSError(errno.EHOSTUNREACH, f"{place} did not answer")
        try:
            yield
        except (FileNotFoundError, FileExistsError, PermissionError):
            raise
        except Exception as error:  # each library has its own error types
            response = getattr(error.__cause__, "response", None) or {}
            if response.get("Error", {}).get("Code") in _REFUSED:
                raise FileExistsError(errno.EEXIST, "the object exists") from error
            if not isinstance(error, OSError) or isinstance(error, (ConnectionError, TimeoutError)):
                _DOWN_UNTIL[place] = time.monotonic() + PAUSE_S
            raise OSError(errno.EIO, " ".join(str(error).split()) or type(error).__name__) from error

    @property
    def _system(self) -> Any:  # noqa: ANN401 (fsspec has no types)
        return _open_system(self.address.partition("://")[0])

    def _path(self, name: str) -> str:
        path: str = self._system._strip_protocol(f"{self.address.rstrip('/')}/{name}".rstrip("/"))
        return path


def find_cache_folder() -> Path:
    """Return the user's cache folder on this machine, for copies of remote files."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "retrieval-runner"


@cache
def _open_system(protocol: str) -> Any:  # noqa: ANN401 (fsspec has no types)
    """Return the file system of a protocol, without a cache of listings, so that writes by others are seen at once."""
    import fsspec

    return fsspec.filesystem(protocol, use_listings_cache=False)


def _modification_time(status: dict[str, Any]) -> float:
    written = next((status[name] for name in _MODIFIED if name in status), 0.0)
    if isinstance(written, str):
        written = datetime.fromisoformat(written)
    return written.timestamp() if isinstance(written, datetime) else float(written)
