"""What the program asks of a store: work kept between runs, an account of it, and a list of what is kept.

Nothing here knows where a store keeps things. `runner.store.opening` chooses the kind of store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from retrievers.store import Arrays, Key, Store
from retrievers.work import Cost

WORTH_KEEPING_S = 0.05
"""Arrays that are built faster than this are not kept between runs, unless they note work in a server."""

Costs = Mapping[str, Cost]
"""Pieces of work by digest, so that work shared by two others is counted once."""


@dataclass(frozen=True)
class EntryUse:
    """When a process first used an entry for a dataset, and the run in which it did."""

    at: float
    dataset: str
    fingerprint: str
    run: str


@dataclass(frozen=True, eq=False)
class Entry:
    """An entry of a store. Times are seconds since 1970; `parts` and `seconds` of a damaged entry are unknown.

    `place` is where people find it: a folder, or the address of an object.
    """

    place: str
    digest: str
    kind: str
    parts: Mapping[str, str]
    bytes: int
    seconds: float
    made: float
    uses: tuple[EntryUse, ...]

    @property
    def used(self) -> float:
        """Return when it was last used, as far as that was noted."""
        return max([self.made, *(use.at for use in self.uses)])


@dataclass(frozen=True)
class RunFiles:
    """Files of runs under way, in a folder of this machine: locks, results to be logged, journals of gradings."""

    folder: Path

    @property
    def gradings(self) -> Path:
        """Return the folder of the journals of gradings."""
        return self.folder / "grading"

    @property
    def unlogged(self) -> Path:
        """Return the folder of results that wait to be logged, a folder for each sweep."""
        return self.folder / "unlogged"

    @property
    def jobs(self) -> Path:
        """Return the folder of the files of jobs on a cluster."""
        return self.folder / "jobs"

    @property
    def sweeps(self) -> Path:
        """Return the folder of sweeps under way: their locks, and their lists of combinations under way."""
        return self.folder / "sweeps"


class WorkStore(Store, Protocol):
    """A store of work that several processes share. It can be pickled: another process opens the same store."""

    @property
    def location(self) -> str:
        """Return where the store is, for people."""
        ...

    @property
    def run_files(self) -> RunFiles:
        """Return where the files of runs under way belong."""
        ...

    def arrays_unless_busy(self, key: Key, build: Callable[[], Arrays]) -> Arrays | None:
        """Return the arrays of a key, or None if another process is building them."""
        ...

    def find_missing(self, keys: Iterable[Key]) -> set[str]:
        """Return the digests of the keys without an entry; none where the store cannot be read."""
        ...

    def alone_in_sweep(self, sweep: str) -> AbstractContextManager[bool]:
        """Run the block in one process at a time for each sweep, if possible."""
        ...

    def account(self) -> AbstractContextManager[Costs]:
        """Collect the work that is used within the block, by digest."""
        ...

    def note_use(self, costs: Costs, dataset: str, fingerprint: str, run: str) -> None:
        """Note which entries a run on a dataset used; `costs` are an account, `fingerprint` is the dataset's."""
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
