"""The interface of a store: cached work, an account of its cost, and a list of the entries.

It does not depend on where entries are stored; `runner.store.opening` chooses the kind of store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from retrievers.store import Key, SharedStore
from retrievers.work import Cost

WORTH_KEEPING_S = 0.05
"""Arrays that take fewer seconds to build are not cached, unless they describe work in a server."""

Costs = Mapping[str, Cost]
"""Pieces of work by digest, so that work shared by two others counts once."""


@dataclass(frozen=True)
class EntryUse:
    """The first use of an entry by a process for a dataset: the time, the dataset and the run."""

    at: float
    dataset: str
    fingerprint: str
    run: str


@dataclass(frozen=True, eq=False)
class Entry:
    """An entry of a store. Times are seconds since 1970; a damaged entry has no `parts` and 0 `seconds`.

    `place` is a folder or the address of an object, for display.
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
        """Return the time of the last recorded use, or of creation."""
        return max([self.made, *(use.at for use in self.uses)])


@dataclass(frozen=True)
class RunFiles:
    """The files of running experiments, in a folder on this machine: locks, results to log, journals, counted looks."""

    folder: Path

    @property
    def gradings(self) -> Path:
        """Return the folder of the journals of gradings."""
        return self.folder / "grading"

    @property
    def unlogged(self) -> Path:
        """Return the folder of results still to be logged, with a subfolder for each sweep."""
        return self.folder / "unlogged"

    @property
    def looks(self) -> Path:
        """Return the folder of the looks at locked splits, with a subfolder for each split."""
        return self.folder / "looks"

    @property
    def jobs(self) -> Path:
        """Return the folder of the files of jobs on a cluster."""
        return self.folder / "jobs"

    @property
    def sweeps(self) -> Path:
        """Return the folder of running sweeps, with their locks and their lists of running combinations."""
        return self.folder / "sweeps"


class WorkStore(SharedStore, Protocol):
    """A store of work that several processes share. Unpickled in another process, it opens the same store."""

    @property
    def location(self) -> str:
        """Return where the store is, for display."""
        ...

    @property
    def run_files(self) -> RunFiles:
        """Return where to put the files of running experiments."""
        ...

    def find_missing(self, keys: Iterable[Key]) -> set[str]:
        """Return the digests of the keys without an entry; empty if the store cannot be read."""
        ...

    def alone_in_sweep(self, sweep: str) -> AbstractContextManager[bool]:
        """Run the block in one process at a time for each sweep, if possible."""
        ...

    def account(self) -> AbstractContextManager[Costs]:
        """Collect the work that the block uses, by digest."""
        ...

    def note_use(self, costs: Costs, dataset: str, fingerprint: str, run: str) -> None:
        """Record which entries a run on a dataset used; `costs` is an account, `fingerprint` the dataset's."""
        ...

    def list_entries(self) -> list[Entry]:
        """Return all entries, least recently used first."""
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
