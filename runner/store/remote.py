"""Entries in an object store, with copies in a folder on this machine.

An entry is one object, `KIND/DIGEST.tar`, with the same files as an entry on disk, manifest first. It is created by one
conditional write when it is complete. So there is one complete entry or none, even if a process is killed or several
processes write the same entry. To be read, an entry is unpacked into the local folder, where it stays. Locks are
objects in `.locks`; each use of entries is recorded as an object in `.used`.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from retrievers.store import ENGINE_BYTES, Arrays, Key
from runner.store import entries
from runner.store.base import Entry, EntryUse, RunFiles
from runner.store.entries import LEFTOVER_S, MANIFEST, USES, Manifest
from runner.store.lock import alone
from runner.store.seals import Damaged
from runner.store.shelf import FolderShelf
from runner.system.object_stores import Objects, ObjectStatus, find_cache_folder
from runner.system.processes import is_gone

LOCKS = ".locks"

_HEAD_BYTES = 1 << 15
"""The number of bytes of each entry to read for a listing; more is read only if its manifest is longer."""

_BLOCK = 512
"""The size of a file header in a tar archive, in bytes."""

_NAME = re.compile(r"([^/]+)/([0-9a-f]{32})\.tar")


@dataclass(frozen=True)
class LockObject:
    """A lock that is an object; its second line changes when it is touched."""

    objects: Objects
    name: str

    def create(self, text: str) -> bool:
        """Create the object."""
        return self.objects.create(self.name, text.encode())

    def read(self) -> tuple[str, object] | None:
        """Return the first and the second line of the object."""
        try:
            text, _, touched = self.objects.read(self.name).decode(errors="replace").partition("\n")
        except FileNotFoundError:
            return None
        return text, touched

    def touch(self, text: str) -> None:
        """Write the object with a new second line."""
        self.objects.write(self.name, f"{text}\n{uuid.uuid4().hex}".encode())

    def remove(self) -> None:
        """Remove the object."""
        self.objects.remove(self.name)


class ObjectShelf:
    """Entries as objects below an address, with copies in a folder.

    `copies` is that folder; None means the user's cache folder. Files of running experiments are in `run_files`, on
    this machine.
    """

    def __init__(self, address: str, copies: str | None, run_files: RunFiles) -> None:
        self._objects, self._run_files, self._copies_setting = Objects(address), run_files, copies
        folder = find_cache_folder() / "store" / address.replace("://", "/", 1) if copies is None else Path(copies)
        self._copies = FolderShelf(folder.expanduser())

    def __reduce__(self) -> tuple[type[ObjectShelf], tuple[str, str | None, RunFiles]]:
        """Return the shelf for another process, which may run on another machine with another cache folder."""
        return ObjectShelf, (self.location, self._copies_setting, self._run_files)

    @property
    def location(self) -> str:
        """Return the address."""
        return self._objects.address

    @property
    def run_files(self) -> RunFiles:
        """Return where to put the files of running experiments, on this machine."""
        return self._run_files

    def place_of(self, key: Key) -> str:
        """Return the address of an entry."""
        return self._address(_name_of(key))

    def read(self, key: Key) -> tuple[Arrays, Manifest]:
        """Return the arrays of an entry and its manifest from the local copy, which is fetched if necessary."""
        try:
            return self._copies.read(key)
        except Damaged:
            self._copies.discard(key)
        except FileNotFoundError:
            pass
        folder = self._copies.path_of(key)
        with self._unpack(_name_of(key), folder) as unpacked:
            entries.settle(unpacked, folder)
        return self._copies.read(key)

    def write(self, key: Key, arrays: Arrays, costs: Mapping[str, entries.SavedCost]) -> None:
        """Write an entry to the local copies, then as an object; an existing entry stays. Raises `OSError`."""
        self._copies.write(key, arrays, costs)
        folder = self._copies.path_of(key)
        with _aside(folder) as aside:
            with tarfile.open(aside / "entry.tar", "w", format=tarfile.GNU_FORMAT) as archive:
                for name in (MANIFEST, *(f"{name}.npy" for name in arrays)):
                    archive.add(folder / name, name)
            self._objects.create(_name_of(key), aside / "entry.tar")

    def find_missing(self, keys: Iterable[Key]) -> set[str]:
        """Return the digests of the keys without an entry. Raises `OSError`."""
        keys = list(keys)
        unknown = self._copies.find_missing(keys)
        for folder in {_name_of(key).partition("/")[0] for key in keys if key.digest in unknown}:
            unknown -= {Path(status.name).stem for status in self._objects.list_all(folder)}
        return unknown

    @contextmanager
    def alone(self, key: Key, wait: bool = True) -> Iterator[bool]:
        """Hold the locks of an entry, first the local one, so that processes of this machine wait for each other."""
        with self._copies.alone(key, wait) as free:
            if not free:
                yield False
                return
            with alone(LockObject(self._objects, f"{LOCKS}/{key.digest}"), key.kind.name, wait) as free:
                yield free

    @contextmanager
    def alone_in_sweep(self, sweep: str) -> Iterator[bool]:
        """Hold the locks of a sweep, on this machine and among all machines."""
        here, everywhere = self.run_files.sweeps / f"{sweep}.lock", LockObject(self._objects, f"{LOCKS}/sweep-{sweep}")
        with alone(here, "the same sweep"), alone(everywhere, "the same sweep"):
            yield True

    def remove_damaged(self, key: Key) -> str | None:
        """Remove the object of an entry if it is damaged, and return what was damaged. Raises `OSError`."""
        return self._remove_damaged(_name_of(key), self._copies.path_of(key))

    def discard(self, key: Key) -> None:
        """Remove the object of an entry and its local copy. Raises `OSError`."""
        self._objects.remove(_name_of(key))
        self._copies.discard(key)

    def note_use(self, use: EntryUse, digests: Iterable[str]) -> None:
        """Write a use of entries as an object. Raises `OSError`."""
        digests = list(digests)
        self._copies.note_use(use, digests)
        self._objects.write(f"{USES}/{uuid.uuid4().hex}.jsonl", entries.format_note(use, digests))

    def list_entries(self, *kinds: str) -> list[Entry]:
        """Return the entries, least recently used first; with kinds, only those of these. Raises `OSError`."""
        objects = self._objects.list_all()
        uses: dict[str, list[EntryUse]] = {}
        for note in self._read_notes(objects).values():
            for use, digests in entries.parse_notes(note):
                for digest in digests:
                    uses.setdefault(digest, []).append(use)
        wanted = {kind.replace(" ", "_") for kind in kinds}
        names = ((status, _NAME.fullmatch(status.name)) for status in objects)
        archives = [status for status, name in names if name and (not wanted or name[1] in wanted)]
        heads = self._objects.read_heads([status.name for status in archives], _HEAD_BYTES)
        listed = [self._describe(status, heads[status.name], uses) for status in archives if status.name in heads]
        return sorted(listed, key=lambda entry: (entry.used, entry.place))

    def find_damage(self, entry: Entry) -> str | None:
        """Fetch an entry and return what is damaged; None if it is intact or was removed."""
        try:
            with TemporaryDirectory() as folder, self._unpack(self._name(entry), Path(folder) / entry.digest):
                return None
        except FileNotFoundError:
            return None
        except Damaged as error:
            return str(error)
        except OSError as error:
            return f"the entry cannot be read ({error.strerror or error})"

    def remove(self, entry: Entry, only_damaged: bool = False) -> None:
        """Remove an entry and its local copy, with `only_damaged` only if they are damaged; raises `OSError`."""
        name, copy = self._name(entry), self._copies.folder / self._name(entry).removesuffix(".tar")
        if only_damaged:
            self._remove_damaged(name, copy)
        else:
            self._objects.remove(name)
            entries.remove(copy)

    def tidy(self) -> None:
        """Remove what dead processes left behind, locally and in the object store, and the uses of removed entries."""
        self._copies.tidy()
        objects = self._objects.list_all()
        digests = {match[2] for status in objects if (match := _NAME.fullmatch(status.name))}
        for name, note in self._read_notes(objects).items():
            if not any(digests.intersection(noted) for _, noted in entries.parse_notes(note)):
                self._objects.remove(name)
        for status in objects:
            if status.name.startswith(f"{LOCKS}/"):
                lock = LockObject(self._objects, status.name)
                text, _ = lock.read() or ("", None)
                if is_gone(text.partition(" ")[0]) or time.time() - status.modified > LEFTOVER_S:
                    lock.remove()

    def _address(self, name: str) -> str:
        return f"{self.location.rstrip('/')}/{name}"

    def _name(self, entry: Entry) -> str:
        return entry.place.removeprefix(self._address(""))

    def _read_notes(self, objects: Iterable[ObjectStatus]) -> dict[str, bytes]:
        """Return the recorded uses by the name of their object."""
        notes = [status for status in objects if status.name.startswith(f"{USES}/")]
        longest = max((status.bytes for status in notes), default=0)
        return self._objects.read_heads([status.name for status in notes], longest)

    @contextmanager
    def _unpack(self, name: str, folder: Path) -> Iterator[Path]:
        """Yield a temporary folder with an entry, beside the entry's own folder. Raises `OSError` and `Damaged`."""
        with _aside(folder) as aside:
            self._objects.download(name, aside / "entry.tar")
            unpacked = aside / folder.name
            try:
                with tarfile.open(aside / "entry.tar", "r:") as archive:
                    archive.extractall(unpacked, filter="data")
            except (tarfile.TarError, EOFError) as error:
                raise Damaged(f"the archive cannot be unpacked: {error}") from error
            if (wrong := entries.find_damage(unpacked, Path(name))) is not None:
                raise Damaged(wrong)
            yield unpacked

    def _remove_damaged(self, name: str, copy: Path) -> str | None:
        wrong = entries.remove_damaged(copy)
        try:
            with self._unpack(name, copy):
                return wrong
        except FileNotFoundError:
            return wrong
        except Damaged as error:
            self._objects.remove(name)
            return str(error)

    def _describe(self, status: ObjectStatus, head: bytes, uses: Mapping[str, list[EntryUse]]) -> Entry:
        place, (folder, digest) = self._address(status.name), _NAME.fullmatch(status.name).groups()  # type: ignore[union-attr]  # it matches
        used = tuple(uses.get(digest, ()))
        try:
            size = tarfile.TarInfo.frombuf(head[:_BLOCK], "utf-8", "strict").size
            if _BLOCK + size > len(head):
                head = self._objects.read_heads([status.name], _BLOCK + size)[status.name]
            manifest = entries.parse_manifest(head[_BLOCK : _BLOCK + size])
            elsewhere = self._read_engine_bytes(status.name) if ENGINE_BYTES in manifest.arrays else 0
        except (tarfile.TarError, Damaged, KeyError, OSError):
            return Entry(place, digest, folder.replace("_", " "), {}, status.bytes, 0.0, status.modified, used)
        seconds = manifest.costs[digest][1] if digest in manifest.costs else 0.0
        size = status.bytes + elsewhere
        return Entry(place, digest, manifest.kind, manifest.parts, size, seconds, status.modified, used)

    def _read_engine_bytes(self, name: str) -> int:
        """Return the bytes that a server uses for the work that an entry describes."""
        with tarfile.open(fileobj=BytesIO(self._objects.read(name))) as archive:
            file = archive.extractfile(f"{ENGINE_BYTES}.npy")
            return int(np.load(BytesIO(file.read()), allow_pickle=False)) if file else 0


def _name_of(key: Key) -> str:
    """Return the name of the object of an entry."""
    return f"{key.kind.name.replace(' ', '_')}/{key.digest}.tar"


@contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder beside an entry."""
    aside = entries.aside_of(folder)
    aside.mkdir(parents=True)
    try:
        yield aside
    finally:
        with suppress(OSError):
            shutil.rmtree(aside)
