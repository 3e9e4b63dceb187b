"""Access to an object store (S3, Google Cloud Storage, Azure) through fsspec.

The operations are read, write, create if absent, list and remove. Every failure is an `OSError`.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import ParseError

from retrievers.excerpts import shorten_text

_REFUSED = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}
"""The error codes of S3 servers for a conditional write of an object that already exists."""

_MODIFIED = ("LastModified", "last_modified", "updated", "mtime", "created")
"""The fields in which file systems report when an object was written."""

_EMPTY_IF_MISSING = ("az", "abfs", "abfss")
"""The protocols whose file system lists a container that does not exist as an empty one."""

ANSWER_S = 12.0
"""Seconds within which a server must answer a request, its client's own attempts included."""

LISTING_S = 120.0
"""Seconds for a listing of all objects, which takes many requests."""

ANNOUNCED_S = 4.0
"""Seconds without an answer after which the wait is reported."""

SLOWEST_BYTES_S = 100_000
"""Bytes per second that an upload is expected to send at least."""

PAUSE_S = 60.0
"""Seconds to wait before another request to a server that did not answer."""

_SERVERS = dict.fromkeys(("gs", "gcs"), ("STORAGE_EMULATOR_HOST",)) | {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
}
"""The environment variables that name another server than that of the provider, by protocol."""

_ANSWERED: set[str] = set()
"""The buckets whose server has answered this process."""

_DOWN_UNTIL: dict[str, float] = {}
"""When requests are allowed again after a server did not answer, on the monotonic clock, by bucket."""


log = logging.getLogger("runner.store")


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
            content: bytes = self._ask("cat_file", self._path(name))
            return content

    def read_heads(self, names: Sequence[str], length: int) -> dict[str, bytes]:
        """Return the first `length` bytes of each object that exists; raises `OSError`."""
        with self._request():
            paths = [self._path(name) for name in names]
            heads = self._ask("cat_ranges", paths, 0, length, on_error="return", within=LISTING_S) if paths else []
        return {name: head for name, head in zip(names, heads, strict=True) if isinstance(head, bytes)}

    def download(self, name: str, file: Path) -> None:
        """Write the content of an object to a file; raises `OSError`."""
        with self._request():
            self._ask(
                "get_file", self._path(name), str(file), measure=lambda: file.stat().st_size if file.exists() else 0
            )

    def write(self, name: str, content: bytes) -> None:
        """Write an object, replacing any object with the same name; raises `OSError`."""
        with self._request():
            self._ask("pipe_file", self._path(name), content)

    def create(self, name: str, content: bytes | Path) -> bool:
        """Write an object, from memory or a file, unless it exists; return whether it was written. Raises `OSError`.

        Of several processes that create an object at the same time, one succeeds.
        """
        try:
            with self._request():
                if isinstance(content, bytes):
                    self._ask("pipe_file", self._path(name), content, mode="create")
                else:
                    within = ANSWER_S + content.stat().st_size / SLOWEST_BYTES_S
                    self._ask("put_file", str(content), self._path(name), mode="create", within=within)
        except FileExistsError:
            return False
        return True

    def list_all(self, folder: str = "") -> list[ObjectStatus]:
        """Return the objects in a folder and its subfolders, sorted by name; raises `OSError`."""
        start = len(self._path("")) + 1
        with self._request():
            within = LISTING_S if self._bucket in _ANSWERED else ANSWER_S
            objects = self._ask("find", self._path(folder), detail=True, within=within)
            if not objects and self.address.partition("://")[0] in _EMPTY_IF_MISSING:
                self._ask("info", self._path("").partition("/")[0])
            by_path = sorted(objects.items())
            return [ObjectStatus(path[start:], status["size"], _modification_time(status)) for path, status in by_path]

    def remove(self, name: str) -> None:
        """Remove an object if it exists; raises `OSError`."""
        with suppress(FileNotFoundError), self._request():
            self._ask("rm_file", self._path(name))

    def _ask(
        self,
        method: str,
        *args: Any,  # noqa: ANN401 (fsspec has no types)
        within: float | None = None,
        measure: Callable[[], int] = lambda: 0,
        **kwargs: Any,  # noqa: ANN401 (fsspec has no types)
    ) -> Any:  # noqa: ANN401 (fsspec has no types)
        """Return the result of a method of the file system; raises `TimeoutError`.

        The clients wait for minutes and retry in silence. The method has `within` seconds, by default `ANSWER_S`, and
        as many more whenever what has arrived has grown, in bytes by `measure`.
        """
        system, within = self._system, ANSWER_S if within is None else within
        if not system.async_impl:
            return getattr(system, method)(*args, **kwargs)
        future = asyncio.run_coroutine_threadsafe(getattr(system, f"_{method}")(*args, **kwargs), system.loop)
        end, arrived, is_announced = time.monotonic() + within, 0, False
        try:
            while True:
                try:
                    result = future.result(min(ANNOUNCED_S, within))
                except TimeoutError:
                    if future.done():  # the client raised the error
                        raise
                else:
                    _ANSWERED.add(self._bucket)
                    return result
                now = time.monotonic()
                if (size := measure()) > arrived:
                    end, arrived = now + within, size
                elif not is_announced:  # first, so that no wait ends unannounced on a busy machine
                    log.warning("%s: no answer yet; trying for %.0f s more", self.place, max(end - now, 0.0))
                    is_announced = True
                elif now >= end:
                    raise TimeoutError(errno.ETIMEDOUT, f"no usable answer in {within:.0f} s")
        finally:
            future.cancel()

    @property
    def place(self) -> str:
        """Return the address, with the server if the environment sets one, for display."""
        names = _SERVERS.get(self.address.partition("://")[0], ())
        server = next(filter(None, map(os.environ.get, names)), "").rpartition("@")[2]
        return f"{self.address} at {server}" if server else self.address

    @property
    def _bucket(self) -> str:
        return self.address.partition("://")[2].partition("/")[0]

    @contextmanager
    def _request(self) -> Iterator[None]:
        """Turn all errors into `OSError`; if an object already exists, raise `FileExistsError`.

        After a server did not answer, requests fail at once for `PAUSE_S` seconds, because each attempt takes seconds.
        """
        place = self._bucket
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
            detail = (error.strerror if isinstance(error, OSError) else None) or str(error)
            if isinstance(error, (AttributeError, LookupError, TypeError, ValueError, ParseError)):
                detail = f"the answer is not that of an object store: {type(error).__name__} {error}"
            raise OSError(errno.EIO, shorten_text(str(detail), 200) or type(error).__name__) from error

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
