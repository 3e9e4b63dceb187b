"""The store on disk: named arrays under the hash of what they depend on, shared by all runs and processes.

An entry is a folder of .npy files and a manifest, made aside and renamed into place, so a half-written one is never
seen; arrays are memory-mapped when read. What takes less time to build than to keep stays in memory. The store also
keeps account of what work an evaluation needs and what it costs, whether done now or found done. It knows nothing of
what the arrays mean.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson
from filelock import FileLock

from retrievers.base import Arrays, Key

T = TypeVar("T")

WORTH_KEEPING_S = 0.05
"""What is built faster than this is not written to disk."""

MEMORY_ENTRIES = 256
"""How many entries and live objects are kept in memory, the least recently used going first."""

log = logging.getLogger("runner.store")


@dataclass(frozen=True)
class Cost:
    """What one piece of work took, its own time only, and whether it was found done."""

    kind: str
    seconds: float
    reused: bool = False


Costs = Mapping[str, Cost]
"""Pieces of work by digest, so that what two things share is counted once."""


class DiskStore:
    """A store in a folder, which may be shared by processes, with a memory of what was used last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._memory: OrderedDict[str, tuple[Any, Costs]] = OrderedDict()
        self._open: list[dict[str, Cost]] = []  # the work under way, outermost first
        self._nested_s = [0.0]  # the time that each spent in works within

    @contextmanager
    def account(self) -> Iterator[dict[str, Cost]]:
        """Collect what is used within the block, by digest."""
        self._open.append({})
        try:
            yield self._open[-1]
        finally:
            self._open.pop()

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        """Return the arrays kept under a key, from memory, from disk, or built now."""
        return self._remember(key, lambda: self._from_disk(key, build))  # type: ignore[no-any-return]

    def share(self, key: Key, make: Callable[[], T]) -> T:
        """Return the live object kept under a key, made once in this process."""
        return self._remember(key, lambda: self._measure(key, make))  # type: ignore[no-any-return]

    def _remember(self, key: Key, find: Callable[[], tuple[Any, Costs]]) -> Any:  # noqa: ANN401 (any value)
        start = time.perf_counter()
        if key.digest in self._memory:
            self._memory.move_to_end(key.digest)
            value, costs = self._memory[key.digest]
        else:
            value, costs = find()
            kept = {digest: replace(cost, reused=True) for digest, cost in costs.items()}
            self._memory[key.digest] = (value, kept)
            if len(self._memory) > MEMORY_ENTRIES:
                self._memory.popitem(last=False)
        if self._open:
            for digest, cost in costs.items():  # work done here is not "reused" because a later part finds it
                self._open[-1].setdefault(digest, cost)
        self._nested_s[-1] += time.perf_counter() - start
        return value

    def _measure(self, key: Key, make: Callable[[], T]) -> tuple[T, Costs]:
        """Make something and return it with what it cost, without and with the works within."""
        self._nested_s.append(0.0)
        start = time.perf_counter()
        try:
            with self.account() as costs:
                value = make()
        finally:
            nested = self._nested_s.pop()
        own = max(time.perf_counter() - start - nested, 0.0)
        return value, {key.digest: Cost(key.kind, own), **costs}

    def _from_disk(self, key: Key, build: Callable[[], Arrays]) -> tuple[Arrays, Costs]:
        entry = self.folder / key.kind.replace(" ", "_") / key.digest
        if (kept := _read(entry)) is not None:
            return kept
        start = time.perf_counter()
        with self._only_one(entry):
            if (kept := _read(entry)) is not None:
                return kept
            arrays, costs = self._measure(key, build)
            if time.perf_counter() - start < WORTH_KEEPING_S:
                return arrays, costs
            try:
                _write(entry, key, arrays, costs)
            except OSError as error:
                log.warning("%s is not kept in %s: %s", key.kind, self.folder, error.strerror or error)
                return arrays, costs
        kept = _read(entry)
        return (kept[0], costs) if kept is not None else (arrays, costs)

    @contextmanager
    def _only_one(self, entry: Path) -> Iterator[None]:
        """Let one process build an entry while others that want it wait; without a writable folder, build alone."""
        lock = entry.with_suffix(".lock")
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            guard = FileLock(lock)
            guard.acquire()
        except OSError:
            yield
            return
        try:
            yield
        finally:
            guard.release()


def _read(entry: Path) -> tuple[Arrays, Costs] | None:
    """Return an entry, or None where there is none or it is damaged (then it is removed)."""
    try:
        manifest = orjson.loads((entry / "manifest.json").read_bytes())
        arrays = {name: _map(entry / f"{name}.npy", size) for name, size in manifest["arrays"].items()}
        costs = {digest: Cost(kind, seconds, reused=True) for digest, (kind, seconds) in manifest["costs"].items()}
    except FileNotFoundError:
        if not entry.exists():
            return None
    except (OSError, ValueError, KeyError) as error:
        log.warning("%s is damaged and is built again (%s)", entry, error)
    else:
        return arrays, costs
    shutil.rmtree(entry, ignore_errors=True)
    return None


def _map(file: Path, size: int) -> np.ndarray[Any, Any]:
    if file.stat().st_size != size:
        raise ValueError(f"{file.name} has {file.stat().st_size} bytes instead of {size}")
    small = size < 65536  # a mapping would cost more than it spares, and an empty array can't be mapped
    array: np.ndarray[Any, Any] = np.load(file, mmap_mode=None if small else "r", allow_pickle=False)
    return array.view(np.ndarray)


def _write(entry: Path, key: Key, arrays: Arrays, costs: Costs) -> None:
    """Make an entry aside, its manifest last, and rename it into place."""
    aside = entry.with_name(f".{entry.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
    try:
        aside.mkdir(parents=True)
        for name, array in arrays.items():
            np.save(aside / f"{name}.npy", array, allow_pickle=False)
        manifest = {
            "kind": key.kind,
            "parts": dict(key.parts),
            "arrays": {name: (aside / f"{name}.npy").stat().st_size for name in arrays},
            "costs": {digest: (cost.kind, cost.seconds) for digest, cost in costs.items()},
        }
        (aside / "manifest.json").write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
        aside.rename(entry)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
