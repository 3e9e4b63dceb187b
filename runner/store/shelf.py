"""Shelves, where a store keeps its entries: the interface, and the shelf that is a folder.

An entry on a shelf is either complete or absent. Memory and the cost of work are up to the store.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from retrievers.store import Arrays, Key
from runner.store import entries
from runner.store.base import Entry, EntryUse, RunFiles
from runner.store.entries import Manifest
from runner.store.lock import alone
from runner.store.seals import Seals


class Shelf(Protocol):
    """A place for entries that several processes share."""

    @property
    def location(self) -> str:
        """Return where the entries are, for display."""
        ...

    @property
    def run_files(self) -> RunFiles:
        """Return where to put the files of running experiments, on this machine."""
        ...

    def place_of(self, key: Key) -> str:
        """Return where the entry of a key is or would be, for display."""
        ...

    def read(self, key: Key) -> tuple[Arrays, Manifest]:
        """Return the arrays of an entry, large ones memory-mapped, and its manifest.

        Raises `FileNotFoundError` if there is no entry, `Damaged`, and `OSError` for an entry that cannot be read.
        """
        ...

    def write(self, key: Key, arrays: Arrays, costs: Mapping[str, entries.SavedCost]) -> None:
        """Write an entry, which others see only when it is complete; an existing entry stays. Raises `OSError`."""
        ...

    def alone(self, key: Key, wait: bool = True) -> AbstractContextManager[bool]:
        """Run the block in one process at a time for each key, if possible.

        Yield True; if `wait` is false and another process is in the block, yield False.
        """
        ...

    def alone_in_sweep(self, sweep: str) -> AbstractContextManager[bool]:
        """Run the block in one process at a time for each sweep, if possible."""
        ...

    def find_missing(self, keys: Iterable[Key]) -> set[str]:
        """Return the digests of the keys without an entry. Raises `OSError`."""
        ...

    def remove_damaged(self, key: Key) -> str | None:
        """Remove an entry if it is damaged, and return what was damaged. Raises `OSError`."""
        ...

    def discard(self, key: Key) -> None:
        """Remove the entry of a key. Raises `OSError`."""
        ...

    def note_use(self, use: EntryUse, digests: Iterable[str]) -> None:
        """Record a use of entries. Raises `OSError`."""
        ...

    def list_entries(self, *kinds: str) -> list[Entry]:
        """Return the entries, least recently used first; with kinds, only those of these."""
        ...

    def find_damage(self, entry: Entry) -> str | None:
        """Read an entry in full and return what is damaged; None if it is intact or was removed."""
        ...

    def remove(self, entry: Entry, only_damaged: bool = False) -> None:
        """Remove an entry, with `only_damaged` only if it is damaged; raises `OSError`."""
        ...

    def tidy(self) -> None:
        """Remove what dead processes left behind, and the recorded uses of entries that no longer exist."""
        ...


class FolderShelf:
    """Entries in a folder, which may be shared by several machines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seals = Seals()
        self._notes = uuid.uuid4().hex
        self._tidied: set[Path] = set()

    def __reduce__(self) -> tuple[type[FolderShelf], tuple[Path]]:
        """Return the shelf for another process: the same folder, without the state of this process."""
        return FolderShelf, (self.folder.absolute(),)

    @property
    def location(self) -> str:
        """Return the folder as text."""
        return str(self.folder)

    @property
    def run_files(self) -> RunFiles:
        """Return where to put the files of running experiments: beside the folder."""
        return RunFiles(self.folder.parent)

    def path_of(self, key: Key) -> Path:
        """Return the folder of an entry."""
        return entries.folder_of(self.folder, key)

    def place_of(self, key: Key) -> str:
        """Return the folder of an entry as text."""
        return str(self.path_of(key))

    def read(self, key: Key) -> tuple[Arrays, Manifest]:
        """Return the arrays of an entry and its manifest; raises `OSError` and `Damaged`."""
        return entries.read(self.path_of(key), key, self._seals)

    def write(self, key: Key, arrays: Arrays, costs: Mapping[str, entries.SavedCost]) -> None:
        """Write an entry; raises `OSError`. The first write of a kind first removes what dead processes left behind."""
        folder = self.path_of(key)
        if folder.parent not in self._tidied:
            self._tidied.add(folder.parent)
            entries.tidy(folder.parent)
        entries.write(folder, key, arrays, costs)

    def find_missing(self, keys: Iterable[Key]) -> set[str]:
        """Return the digests of the keys without an entry."""
        return {key.digest for key in keys if not self.path_of(key).is_dir()}

    def alone(self, key: Key, wait: bool = True) -> AbstractContextManager[bool]:
        """Hold the lock beside an entry."""
        return alone(self.path_of(key).with_suffix(".lock"), key.kind.name, wait)

    def alone_in_sweep(self, sweep: str) -> AbstractContextManager[bool]:
        """Hold the lock of a sweep."""
        return alone(self.run_files.sweeps / f"{sweep}.lock", "the same sweep")

    def remove_damaged(self, key: Key) -> str | None:
        """Remove an entry if it is damaged, and return what was damaged. Raises `OSError`."""
        return entries.remove_damaged(self.path_of(key))

    def discard(self, key: Key) -> None:
        """Remove the entry of a key. Raises `OSError`."""
        entries.remove(self.path_of(key))

    def note_use(self, use: EntryUse, digests: Iterable[str]) -> None:
        """Append a use of entries to the file of this process. Raises `OSError`."""
        entries.note_use(self.folder, self._notes, use, digests)

    def list_entries(self, *kinds: str) -> list[Entry]:
        """Return the entries, least recently used first; with kinds, only those of these."""
        return entries.list_entries(self.folder, *kinds)

    def find_damage(self, entry: Entry) -> str | None:
        """Read an entry in full and return what is damaged; None if it is intact or was removed."""
        return entries.find_damage(Path(entry.place))

    def remove(self, entry: Entry, only_damaged: bool = False) -> None:
        """Remove an entry, with `only_damaged` only if it is damaged; raises `OSError`."""
        (entries.remove_damaged if only_damaged else entries.remove)(Path(entry.place))

    def tidy(self) -> None:
        """Remove what dead processes left behind, and the recorded uses of entries that no longer exist."""
        for kind in self.folder.glob("*/"):
            entries.tidy(kind)
        entries.forget_uses(self.folder)
