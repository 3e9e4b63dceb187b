"""The store that all runs share: named arrays, keyed by a hash of their inputs.

If several processes need the same work at once, one of them does it. Arrays that take less than `WORTH_KEEPING_S` to
build stay in memory. Arrays that cannot be written or read are built again, so a full or failing disk only costs time.
The store also keeps an account of the work that an evaluation needs and of its cost, cached or not.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from retrievers.store import ENGINE_BYTES, Arrays, Key, may_keep
from retrievers.work import METER, Cost, WorkKind, kind_of
from runner.store.base import WORTH_KEEPING_S, Costs, Entry, EntryUse, RunFiles
from runner.store.entries import Manifest
from runner.store.seals import Damaged
from runner.store.shelf import FolderShelf, Shelf

T = TypeVar("T")

LIVE_OBJECTS = 256
"""The largest number of live objects in memory; the least recently used is dropped first.

An object with an attribute `live_weight` counts as so many.
"""

MEMORY_BYTES = 512 << 20
"""The largest number of bytes of arrays in memory; the least recently used are dropped first."""

log = logging.getLogger("runner.store")


class _BusyError(Exception):
    """Another process is building an entry."""


class _Memory:
    """The most recently used values, up to a total weight of `most`; the newest value always stays."""

    def __init__(self, most: int) -> None:
        self._most, self._total = most, 0
        self._kept: OrderedDict[str, tuple[Key, Any, Costs, int]] = OrderedDict()

    def find(self, digest: str) -> tuple[Key, Any, Costs] | None:
        if digest not in self._kept:
            return None
        self._kept.move_to_end(digest)
        key, value, costs, _ = self._kept[digest]
        return key, value, costs

    def keep(self, key: Key, value: Any, costs: Costs, weight: int) -> None:  # noqa: ANN401 (any value)
        self._kept[key.digest] = (key, value, costs, weight)
        self._total += weight
        while self._total > self._most and len(self._kept) > 1:
            _, (_, _, _, gone) = self._kept.popitem(last=False)
            self._total -= gone


class DiskStore:
    """A store of entries in a folder, or on another shelf, which keeps recently used values in memory."""

    def __init__(self, place: Path | Shelf) -> None:
        self.shelf: Shelf = FolderShelf(place) if isinstance(place, Path) else place
        self._live, self._arrays = _Memory(LIVE_OBJECTS), _Memory(MEMORY_BYTES)
        self._kept: dict[str, set[str]] = {}  # entries seen on disk, and the datasets for which their use was recorded
        self._reported: set[tuple[str, str]] = set()
        self._open: list[dict[str, Cost]] = []  # the work in progress, outermost first
        self._nested_s = [0.0]  # the seconds that each spent in nested work

    def __reduce__(self) -> tuple[type[DiskStore], tuple[Shelf]]:
        """Return the store for another process: the same place, with its own memory."""
        return DiskStore, (self.shelf,)

    @property
    def location(self) -> str:
        """Return the place of the entries, for display."""
        return self.shelf.location

    @property
    def run_files(self) -> RunFiles:
        """Return where to put the files of running experiments."""
        return self.shelf.run_files

    def alone_in_sweep(self, sweep: str) -> AbstractContextManager[bool]:
        """Run the block in one process at a time for each sweep, if possible."""
        return self.shelf.alone_in_sweep(sweep)

    @contextmanager
    def account(self) -> Iterator[dict[str, Cost]]:
        """Collect the work that the block uses, by digest."""
        self._open.append({})
        try:
            yield self._open[-1]
        finally:
            self._open.pop()

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        """Return the arrays of a key from memory or disk; build them if they are missing."""
        kept: Arrays = self._remember(self._arrays, _bytes, key, lambda: self._from_disk(key, build))
        return kept

    def arrays_unless_busy(self, key: Key, build: Callable[[], Arrays]) -> Arrays | None:
        """Return the arrays of a key, or None if another process is building them."""
        try:
            kept: Arrays = self._remember(self._arrays, _bytes, key, lambda: self._from_disk(key, build, wait=False))
        except _BusyError:
            return None
        return kept

    def list_keys(self, *kinds: WorkKind) -> list[Key]:
        """Return the keys of the entries of some kinds; none if the store cannot be read."""
        named = {kind.name: kind for kind in kinds}
        try:
            stored = [entry for entry in self.shelf.list_entries(*named) if entry.parts]
        except OSError:
            return []
        return [Key(named[entry.kind], entry.digest, tuple(sorted(entry.parts.items()))) for entry in stored]

    def borrow(self, key: Key, share: float) -> Arrays | None:
        """Return the arrays of an entry, None without it; a share of its seconds counts for the work in progress."""
        try:
            arrays, manifest = self.shelf.read(key)
        except (OSError, Damaged):
            return None
        costs = _load_costs(manifest)
        if key.digest in costs:
            self._nested_s[-1] -= share * costs[key.digest].seconds
        return arrays

    def find_missing(self, keys: Iterable[Key]) -> set[str]:
        """Return the digests of the keys without an entry; empty if the store cannot be read."""
        try:
            return self.shelf.find_missing(keys)
        except OSError:
            return set()

    def share(self, key: Key, make: Callable[[], T]) -> T:
        """Return the live object of a key, created once in this process."""
        kept: T = self._remember(self._live, _weigh_live, key, lambda: self._measure(key, make))
        return kept

    def note_use(self, costs: Costs, dataset: str, fingerprint: str, run: str) -> None:
        """Record which entries a run on a dataset used, once for each process and dataset.

        `costs` is an account; `fingerprint` is the dataset's.
        """
        fresh = [digest for digest in costs if fingerprint not in self._kept.get(digest, (fingerprint,))]
        if fresh:
            for digest in fresh:
                self._kept[digest].add(fingerprint)
            with suppress(OSError):
                self.shelf.note_use(EntryUse(time.time(), dataset, fingerprint, run), fresh)

    def list_entries(self) -> list[Entry]:
        """Return all entries, least recently used first."""
        return self.shelf.list_entries()

    def find_damage(self, entry: Entry) -> str | None:
        """Read an entry in full and return what is damaged; None if it is intact or was removed."""
        return self.shelf.find_damage(entry)

    def remove(self, entry: Entry, only_damaged: bool = False) -> None:
        """Remove an entry, with `only_damaged` only if it is damaged; raises `OSError`."""
        self.shelf.remove(entry, only_damaged)

    def tidy(self) -> None:
        """Remove what dead processes left behind, and the recorded uses of entries that no longer exist."""
        self.shelf.tidy()

    def _remember(
        self, memory: _Memory, weigh: Callable[[Any], int | None], key: Key, find: Callable[[], tuple[Any, Costs]]
    ) -> Any:  # noqa: ANN401 (any value)
        start = time.perf_counter()
        try:
            if (kept := memory.find(key.digest)) is not None:
                _, value, costs = kept
            else:
                value, costs = find()
                if may_keep(value) and (weight := weigh(value)) is not None:
                    done = {digest: replace(cost, reused=True) for digest, cost in costs.items()}
                    memory.keep(key, value, done, weight)
            self._book(costs)
            return value
        finally:
            self._nested_s[-1] += time.perf_counter() - start

    def _book(self, costs: Costs) -> None:
        if self._open:
            for digest, cost in costs.items():  # work done here stays "not reused" if a later part reuses it
                self._open[-1].setdefault(digest, cost)

    def _measure(self, key: Key, make: Callable[[], T]) -> tuple[T, Costs]:
        """Create a value and return it with its costs: its own, and those of nested work.

        The cost of work that raises counts too: it may have been paid for.
        """
        self._nested_s.append(0.0)
        start, before = time.perf_counter(), METER.money
        costs: dict[str, Cost] = {}
        value = None
        try:
            with self.account() as within:
                value = make()
                return value, costs
        finally:
            own = max(time.perf_counter() - start - self._nested_s.pop(), 0.0)
            paid = METER.money - before - sum(cost.money for cost in within.values() if not cost.reused)
            size = _size_index(key.kind, value)
            if size != 0:  # what an index was built from is an intermediate result
                within = {digest: replace(cost, bytes=0) for digest, cost in within.items()}
            costs.update({key.digest: Cost(key.kind.name, own, False, size, max(round(paid, 9), 0.0)), **within})
            self._book(costs)

    def _from_disk(self, key: Key, build: Callable[[], Arrays], wait: bool = True) -> tuple[Arrays, Costs]:
        with suppress(OSError, Damaged):
            return self._read(key)
        with self.shelf.alone(key, wait) as free:
            if not free:
                raise _BusyError
            if (entry := self._find(key)) is not None:  # another process has built it in the meantime
                return entry
            start = time.perf_counter()
            arrays, costs = self._measure(key, build)
            took = max(time.perf_counter() - start, costs[key.digest].seconds)  # with that of what was borrowed
            is_quick = took < WORTH_KEEPING_S and not key.kind.external
            if is_quick or not may_keep(arrays):
                return arrays, costs
            self._keep(key, arrays, costs)
            self._keep_within(costs)
        with suppress(OSError, Damaged):  # read them again, so that large arrays are memory-mapped
            arrays, _ = self._read(key)
        return arrays, costs

    def _read(self, key: Key) -> tuple[Arrays, Costs]:
        arrays, manifest = self.shelf.read(key)
        self._kept.setdefault(key.digest, set())
        return arrays, _load_costs(manifest)

    def _find(self, key: Key) -> tuple[Arrays, Costs] | None:
        """Return an entry, or None if it is missing or cannot be read; remove it if it is damaged."""
        try:
            return self._read(key)
        except FileNotFoundError:
            return None
        except Damaged:
            self._kept.pop(key.digest, None)
        except OSError as error:
            self._report(error, "%s: cannot be read (%s); computing it again", self.shelf.place_of(key))
            return None
        try:
            wrong = self.shelf.remove_damaged(key)
            if wrong is None:  # another process has built it again, or its files are intact but not those of the key
                try:
                    return self._read(key)
                except FileNotFoundError:
                    return None
                except Damaged as error:
                    wrong = str(error)
                    self.shelf.discard(key)
            log.warning("%s: damaged (%s); computing it again", self.shelf.place_of(key), wrong)
        except OSError as error:
            log.warning("%s: damaged, but cannot be removed (%s)", self.shelf.place_of(key), error.strerror or error)
        return None

    def _keep(self, key: Key, arrays: Arrays, costs: Costs) -> None:
        """Write an entry if possible."""
        try:
            saved = {digest: (c.kind, c.seconds, c.bytes, c.money) for digest, c in costs.items()}
            self.shelf.write(key, arrays, saved)
        except OSError as error:
            self._report(error, "%s and later results cannot be stored in %s: %s", key.kind.name, self.location)

    def _keep_within(self, costs: Costs) -> None:
        """Write the work within an entry that is kept with it, if it was too quick to be kept by itself."""
        for digest, cost in costs.items():
            if kind_of(cost.kind).kept_within and digest not in self._kept and (part := self._arrays.find(digest)):
                self._keep(*part)
                self._kept.setdefault(digest, set())

    def _report(self, error: OSError, message: str, *place: str) -> None:
        """Log a warning once per reason: a full disk or an unreachable server affects every entry."""
        why = error.strerror or str(error)
        if (message, why) not in self._reported:
            self._reported.add((message, why))
            log.warning(message, *place, why)


def _weigh_live(value: object) -> int:
    return int(getattr(value, "live_weight", 1))


def _load_costs(manifest: Manifest) -> Costs:
    return {
        digest: Cost(kind, seconds, True, *(more or (None if kind_of(kind).stores_index else 0,)))
        for digest, (kind, seconds, *more) in manifest.costs.items()
    }


def _size_index(kind: WorkKind, value: object) -> int | None:
    """Return the bytes of an index, also of one in a server; 0 for other work, None for an object of unknown size."""
    if not kind.stores_index:
        return 0
    if not isinstance(value, dict) or not all(isinstance(array, np.ndarray) for array in value.values()):
        return None
    return int(value[ENGINE_BYTES]) if ENGINE_BYTES in value else sum(array.nbytes for array in value.values())


def _bytes(arrays: Arrays) -> int | None:
    """Return the bytes that arrays take in memory; None if one is memory-mapped, as mapping it again takes no time."""
    if any(isinstance(array.base, np.memmap) for array in arrays.values()):
        return None
    return sum(array.nbytes for array in arrays.values())
