"""Results that wait on disk to be logged: written before they are reported, removed once their run is there.

A result is a file of this program's own, for this machine: a start that finds one logs it instead of computing it
again. Its name holds the id of its run, so that a run is logged once, however often its process is killed. Nothing is
synced, as the kernel keeps what a killed process has written; after a power failure a checksum tells what is whole.
"""

from __future__ import annotations

import os
import pickle
import uuid
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from retrievers.files import replace_file
from runner.store.lock import holder, is_gone
from runner.tracking.record import Finished

_HEADER = b"retrieval-runner result 1\n"
_CHECKSUM_BYTES = 4


@dataclass(frozen=True)
class Waiting:
    """A result that waits in a file, `COMBINATION.RUN`, its size, and whether it may have been logged before."""

    file: Path
    bytes: int
    attempted: bool = True

    @property
    def combination(self) -> str:
        """Return the identity of the combination."""
        return self.file.name.partition(".")[0]

    @property
    def run_id(self) -> str:
        """Return the id that its run gets in a database; a server chooses one itself, and keeps this as a tag."""
        return self.file.name.partition(".")[2]

    @property
    def tags(self) -> dict[str, str]:
        """Return the tag by which its run is found."""
        return {"combination": self.combination}

    def read(self) -> Finished | None:
        """Return what is to be logged, None where the file is gone, damaged, or of another version of this program."""
        try:
            written = self.file.read_bytes()
            body = memoryview(written)[len(_HEADER) + _CHECKSUM_BYTES :]
            head = _HEADER + zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big")
            entry = pickle.loads(body) if written.startswith(head) else None  # noqa: S301 (this program wrote it)
        except Exception:  # what a pickle of other code may raise is anything
            return None
        return entry if isinstance(entry, Finished) else None

    def remove(self) -> None:
        """Forget the result, which was logged."""
        with suppress(OSError):
            self.file.unlink()

    def move_to(self, folder: Path) -> Waiting:
        """Move the result into another folder; raises `OSError`."""
        folder.mkdir(parents=True, exist_ok=True)
        file = self.file.replace(folder / self.file.name)
        with suppress(OSError):  # others wait there
            self.file.parent.rmdir()
        return replace(self, file=file)


class Unlogged:
    """The results of one sweep that wait to be logged, one of each combination.

    A sweep that is `shared` is done by one process at a time, and its results are in `folder`. One that is not has a
    folder of its own beside that, which the next process takes over once this one is gone.
    """

    def __init__(self, folder: Path, shared: bool = True) -> None:
        self.folder = folder if shared else folder.with_name(f"{folder.name}.{holder()}.{uuid.uuid4().hex[:8]}")
        if shared:
            for left in folder.parent.glob(f"{folder.name}.*"):
                if is_gone(left.name.removeprefix(f"{folder.name}.").rpartition(".")[0]):
                    self._take_over(left)
            _remove_unfinished(folder)
        self._files = {waiting.combination: waiting.file for waiting in waiting_in(self.folder)}
        self._made = False

    def keep(self, combination: str, entry: Finished, earlier: Waiting | None = None) -> Waiting:
        """Write a combination's result, in the place of an `earlier` file of the same result; raises `OSError`."""
        body = pickle.dumps(entry, protocol=5)
        file = earlier.file if earlier else self.folder / f"{combination}.{uuid.uuid4().hex}"
        aside = self.folder / f".{holder()}.{file.name}"
        if not self._made:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._made = True
        with replace_file(file, aside), aside.open("wb", buffering=0) as raw:
            raw.write(_HEADER + zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big"))
            if raw.write(body) != len(body):
                raise OSError(f"{aside}: not all of the result could be written")
        self._files[combination] = file
        return Waiting(file, len(body), attempted=earlier is not None)

    def find(self, combination: str) -> Waiting | None:
        """Return the result of a combination that waited when this object was made, or was written since."""
        file = self._files.get(combination)
        try:
            return Waiting(file, file.stat().st_size) if file else None
        except OSError:  # it has been logged
            return None

    def is_superseded(self, waiting: Waiting) -> bool:
        """Return whether a result waits beside another one of its combination, which is used in its place."""
        return self._files.get(waiting.combination, waiting.file) != waiting.file

    def all(self) -> list[Waiting]:
        """Return what waits now."""
        return list(waiting_in(self.folder))

    def close(self) -> None:
        """Remove the folder if nothing waits."""
        self._made = False
        with suppress(OSError):
            self.folder.rmdir()

    def _take_over(self, left: Path) -> None:
        _remove_unfinished(left)
        with suppress(OSError):  # another process may take it over at the same time
            for waiting in waiting_in(left):
                waiting.move_to(self.folder)
            left.rmdir()


def _remove_unfinished(folder: Path) -> None:
    """Remove what processes that are gone were writing."""
    for unfinished in folder.glob(".*"):
        if is_gone(".".join(unfinished.name.split(".")[1:3])):
            unfinished.unlink(missing_ok=True)


def waiting_in(folder: Path) -> Iterator[Waiting]:
    """Yield the results in a folder."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if not entry.name.startswith("."):
            with suppress(OSError):
                yield Waiting(Path(entry.path), entry.stat().st_size)
