"""Results that wait on disk to be logged: written before they are reported, removed once their run is logged.

The next start logs such a result instead of computing it again. The file name contains the id of the run, so that a run
is logged once, however often the process is killed. Files are not synced, as the kernel keeps what a killed process
wrote; after a power failure, checksums detect damaged files. Others may write to the folder of a shared store, so a
file is data: reading it runs no code, and the names in it lead nowhere else. Its pages are used only if this process
wrote them, as a browser would run the scripts in others; the command that logs the result renders them again.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

from retrievers.files import replace_file
from runner.system.processes import holder, is_gone
from runner.tracking.packing import pack_result, unpack_result
from runner.tracking.record import Finished

_VERSION = 1
"""The version of the content; a file of another version is not read."""

_TAGS = {"combination"}
"""The tags that a waiting result may have."""

_NAME = re.compile(r"[^.].*\.[0-9a-f]{32}", re.DOTALL)


@dataclass(frozen=True)
class Waiting:
    """A result in a file named `COMBINATION.RUN`, its size, and whether it may have been logged before.

    `digest` is that of the content that this process wrote, "" for a file of another process.
    """

    file: Path
    bytes: int
    attempted: bool = True
    digest: str = ""

    @property
    def combination(self) -> str:
        """Return the identity of the combination."""
        return self.file.name.partition(".")[0]

    @property
    def run_id(self) -> str:
        """Return the id of its run in a database; a server chooses its own id and stores this one as a tag."""
        return self.file.name.partition(".")[2]

    @property
    def tags(self) -> dict[str, str]:
        """Return the tag that identifies its run."""
        return {"combination": self.combination}

    def read(self) -> Finished | None:
        """Return the result, None if the file is missing, damaged, or from another version of this program.

        It has its reports only if this process wrote the file.
        """
        try:
            content = self.file.read_bytes()
            result, more = unpack_result(content)
            if more.pop("version") != _VERSION or not _TAGS.issuperset(more["tags"]):
                return None
            if _hash(content) != self.digest:
                more["reports"] = {}
            entry = Finished(result, **more)
            _ = entry.record  # raises an error for values of other types
            return entry
        except Exception:  # a damaged or forged file may raise any error
            return None

    def remove(self) -> None:
        """Remove the file of a logged result."""
        with suppress(OSError):
            self.file.unlink()

    def move_to(self, folder: Path) -> Waiting:
        """Move the result to another folder; raises `OSError`."""
        folder.mkdir(parents=True, exist_ok=True)
        file = self.file.replace(folder / self.file.name)
        with suppress(OSError):  # fails if other results wait in the folder
            self.file.parent.rmdir()
        return replace(self, file=file)


class Unlogged:
    """The waiting results of one sweep, one per combination.

    A `shared` sweep is run by one process at a time, with results in `folder`. Otherwise, each process has its own
    folder next to it, which another process takes over after this one has ended.
    """

    def __init__(self, folder: Path, shared: bool = True) -> None:
        self.folder = folder if shared else folder.with_name(f"{folder.name}.{holder()}.{uuid.uuid4().hex[:8]}")
        if shared:
            for left in folder.parent.glob(f"{folder.name}.*"):
                if is_gone(left.name.removeprefix(f"{folder.name}.").rpartition(".")[0]):
                    self._take_over(left)
            _remove_unfinished(folder)
        self._files = {waiting.combination: waiting.file for waiting in waiting_in(self.folder)}
        self._digests: dict[Path, str] = {}
        self._made = False

    def keep(self, combination: str, entry: Finished, earlier: Waiting | None = None) -> Waiting:
        """Write the result of a combination, replacing an `earlier` file if given; raises `OSError`."""
        file = earlier.file if earlier else self.folder / f"{combination}.{uuid.uuid4().hex}"
        aside = self.folder / f".{holder()}.{file.name}"
        if not self._made:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._made = True
        more = {of.name: getattr(entry, of.name) for of in fields(entry) if of.name != "result"}
        content = pack_result(entry.result, version=_VERSION, **more)
        with replace_file(file, aside):
            aside.write_bytes(content)
        self._files[combination], self._digests[file] = file, _hash(content)
        return Waiting(file, len(content), earlier is not None, self._digests[file])

    def find(self, combination: str) -> Waiting | None:
        """Return the waiting result of a combination, None if there is none."""
        file = self._files.get(combination)
        try:
            return self._add_digest(Waiting(file, file.stat().st_size)) if file else None
        except OSError:  # it has been logged and removed
            return None

    def is_superseded(self, waiting: Waiting) -> bool:
        """Return whether another result of the same combination is used instead of this one."""
        return self._files.get(waiting.combination, waiting.file) != waiting.file

    def all(self) -> list[Waiting]:
        """Return all results that wait now."""
        return list(map(self._add_digest, waiting_in(self.folder)))

    def close(self) -> None:
        """Remove the folder if it is empty."""
        self._made = False
        with suppress(OSError):
            self.folder.rmdir()

    def _add_digest(self, waiting: Waiting) -> Waiting:
        return replace(waiting, digest=self._digests.get(waiting.file, ""))

    def _take_over(self, left: Path) -> None:
        _remove_unfinished(left)
        with suppress(OSError):  # another process may take it over at the same time
            for waiting in waiting_in(left):
                waiting.move_to(self.folder)
            left.rmdir()


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _remove_unfinished(folder: Path) -> None:
    """Remove unfinished files of dead processes."""
    for unfinished in folder.glob(".*"):
        if is_gone(".".join(unfinished.name.split(".")[1:3])):
            unfinished.unlink(missing_ok=True)


def waiting_in(folder: Path) -> Iterator[Waiting]:
    """Yield the waiting results in a folder."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if _NAME.fullmatch(entry.name):
            with suppress(OSError):
                yield Waiting(Path(entry.path), entry.stat().st_size)
