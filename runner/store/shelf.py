"""Where a store keeps its entries: what it asks of the place, and a folder as the plainest one.

Entries on a shelf are complete or absent. Nothing here knows what is kept in memory, or what work costs.
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
    """A place of entries that several processes share."""

    @property
    def location(self) -> str:
        """Return where the entries are, for people."""
        ...

    @property
    def run_files(self) -> RunFiles:
        """Return where the files of runs under way belong, on this machine."""
        ...

    def place_of(self, key: Key) -> str:
        """Return where the entry of a key is or would be, for people."""
        ...

    def read(self, key: Key) -> tuple[Arrays, Manifest]:
        """Return the arrays of an entry, large ones mapped, and its manifest.

        Raises `FileNotFoundError` where there is no entry, `Damaged`, and `OSError` for an entry that cannot be read.
        """
        ...

    def write(self, key: Key, arrays: Arrays, costs: Mapping[str, tuple[str, float]]) -> None:
        """Keep an entry, which others see when it is complete; an existing one stays. Raises `OSError`."""
        ...

    def alone(self, key: Key, wait: bool = True) -> AbstractContextManager[bool]:
        """Run the block in one process at a time for each key, if possible.

        Yield True, or without `wait` False if another process is in the block.
        """
        ...

    def alone_in_sweep(self, sweep: str) -> AbstractContextManager[bool]:
        """Run the block in one process at a time for each sweep, if possible."""
        ...

    def find_missing(self, keys: Iterable[Key]) -> set[str]:
        """Return the digests of the keys without an entry. Raises `OSError`."""
        ...

    def remove_damaged(self, key: Key) -> str | None:
        """Remove an entry if it is damaged, and return what was wrong. Raises `OSError`."""
        ...

    def note_use(self, use: EntryUse, digests: Iterable[str]) -> None:
        """Note a use of entries. Raises `OSError`."""
        ...

    def list_entries(self) -> list[Entry]:
        """Return every entry, the least recently used first."""
        ...

    def find_damage(self, entry: Entry) -> str | None:
        """Read an entry in full and return what is wrong with it; None if it is whole, or gone."""
        ...

    def remove(self, entry: Entry, only_damaged: bool = False) -> None:
        """Remove an entry, or remove it if it is damaged; raises `OSError`."""
        ...

    def tidy(self) -> None:
        """Remove what dead processes left, and notes on entries that are gone."""
        ...


class FolderShelf:
    """Entries in a folder, which machines may share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seals = Seals()
        self._notes = uuid.uuid4().hex
        self._tidied: set[Path] = set()

    def __reduce__(self) -> tuple[type[FolderShelf], tuple[Path]]:
        """Return the shelf for another process: the same folder, without what this process knows of it."""
        return FolderShelf, (self.folder.absolute(),)

    @property
    def location(self) -> str:
        """Return the folder as text."""
        return str(self.folder)

    @property
    def run_files(self) -> RunFiles:
        """Return the files of runs under way, which are beside the folder."""
        return RunFiles(self.folder.parent)

    def path_of(self, key: Key) -> Path:
        """Return the folder of an entry."""
        return entries.folder_of(self.folder, key)

    def place_of(self, key: Key) -> str:
        """Return the folder of an entry as text."""
        return str(self.path_of(key))

    def read(self, key: Key) -> tuple[Arrays, Manifest]:
        """Return the arrays of an entry and its manifest; raises `OSError` and `Damaged`."""
        return entries.read(self.path_of(key), self._seals)

    def write(self, key: Key, arrays: Arrays, costs: Mapping[str, tuple[str, float]]) -> None:
        """Write an entry, the first of a kind after what dead processes left is removed; raises `OSError`."""
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
        return alone(self.path_of(key).with_suffix(".lock"), key.kind, wait)

    def alone_in_sweep(self, sweep: str) -> AbstractContextManager[bool]:
        """Hold the lock of a sweep."""
        return alone(self.run_files.sweeps / f"{sweep}.lock", "the same sweep")

    def remove_damaged(self, key: Key) -> str | None:
        """Remove an entry if it is damaged, and return what was wrong. Raises `OSError`."""
        return entries.remove_damaged(self.path_of(key))

    def note_use(self, use: EntryUse, digests: Iterable[str]) -> None:
        """Append a use of entries to this process's notes. Raises `OSError`."""
        entries.note_use(self.folder, self._notes, use, digests)

    def list_entries(self) -> list[Entry]:
        """Return every entry, the least recently used first."""
        return entries.list_entries(self.folder)

    def find_damage(self, entry: Entry) -> str | None:
        """Read an entry in full and return what is wrong with it; None if it is whole, or gone."""
        return entries.find_damage(Path(entry.place))

    def remove(self, entry: Entry, only_damaged: bool = False) -> None:
        """Remove an entry, or remove it if it is damaged; raises `OSError`."""
        (entries.remove_damaged if only_damaged else entries.remove)(Path(entry.place))

    def tidy(self) -> None:
        """Remove what dead processes left, and notes on entries that are gone."""
        for kind in self.folder.glob("*/"):
            entries.tidy(kind)
        entries.forget_uses(self.folder)
