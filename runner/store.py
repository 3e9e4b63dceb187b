"""The store on disk: named arrays under the hash of what they depend on, shared by all runs and processes.

An entry is a folder of .npy files and a manifest, made aside and renamed into place, so a half-written one is never
seen; large arrays are memory-mapped when read. What takes less time to build than to keep stays in memory. The store
also keeps account of what work an evaluation needs and what it costs, whether done now or found done. It knows nothing
of what the arrays mean.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson
from filelock import FileLock, Timeout

from retrievers.base import Arrays, Key

T = TypeVar("T")

WORTH_KEEPING_S = 0.05
"""What is built faster than this is not written to disk."""

LIVE_OBJECTS = 256
"""How many live objects are kept in memory, the least recently used going first."""

MEMORY_BYTES = 512 << 20
"""How many bytes of arrays are kept in memory, the least recently used going first."""

MAPPED_BYTES = 8 << 20
"""Files from this size are mapped, not read. Each mapping holds a file open, of which a process may have few."""

TOLD_EVERY_S = 5.0
"""How often it is said that another process is waited for."""

LEFTOVER_S = 24 * 3600
"""How old a half-made entry is when whoever made it must be gone."""

log = logging.getLogger("runner.store")


@dataclass(frozen=True)
class Cost:
    """What one piece of work took, its own time only, and whether it was found done."""

    kind: str
    seconds: float
    reused: bool = False


Costs = Mapping[str, Cost]
"""Pieces of work by digest, so that what two things share is counted once."""


class _Memory:
    """What was used last, as much as `most` says; the newest stays whatever it weighs."""

    def __init__(self, most: int) -> None:
        self._most, self._total = most, 0
        self._kept: OrderedDict[str, tuple[Any, Costs, int]] = OrderedDict()

    def find(self, digest: str) -> tuple[Any, Costs] | None:
        if digest not in self._kept:
            return None
        self._kept.move_to_end(digest)
        value, costs, _ = self._kept[digest]
        return value, costs

    def keep(self, digest: str, value: Any, costs: Costs, weight: int) -> None:  # noqa: ANN401 (any value)
        self._kept[digest] = (value, costs, weight)
        self._total += weight
        while self._total > self._most and len(self._kept) > 1:
            _, (_, _, gone) = self._kept.popitem(last=False)
            self._total -= gone


class DiskStore:
    """A store in a folder, which may be shared by processes, with a memory of what was used last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._live, self._arrays = _Memory(LIVE_OBJECTS), _Memory(MEMORY_BYTES)
        self._tidied: set[Path] = set()
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
        return self._remember(self._arrays, _bytes, key, lambda: self._from_disk(key, build))  # type: ignore[no-any-return]

    def share(self, key: Key, make: Callable[[], T]) -> T:
        """Return the live object kept under a key, made once in this process."""
        return self._remember(self._live, lambda _: 1, key, lambda: self._measure(key, make))  # type: ignore[no-any-return]

    def _remember(
        self, memory: _Memory, weigh: Callable[[Any], int | None], key: Key, find: Callable[[], tuple[Any, Costs]]
    ) -> Any:  # noqa: ANN401 (any value)
        start = time.perf_counter()
        if (kept := memory.find(key.digest)) is not None:
            value, costs = kept
        else:
            value, costs = find()
            if (weight := weigh(value)) is not None:
                done = {digest: replace(cost, reused=True) for digest, cost in costs.items()}
                memory.keep(key.digest, value, done, weight)
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
        with self._only_one(entry, key.kind):
            if (kept := _read(entry)) is not None:
                return kept
            start = time.perf_counter()
            arrays, costs = self._measure(key, build)
            if time.perf_counter() - start < WORTH_KEEPING_S:
                return arrays, costs
            try:
                self._tidy(entry.parent)
                _write(entry, key, arrays, costs)
            except OSError as error:
                log.warning("%s is not kept in %s: %s", key.kind, self.folder, error.strerror or error)
                return arrays, costs
        kept = _read(entry)
        return (kept[0], costs) if kept is not None else (arrays, costs)

    @contextmanager
    def _only_one(self, entry: Path, kind: str) -> Iterator[None]:
        """Let one process build an entry while others that want it wait; without a writable folder, build alone."""
        lock = entry.with_suffix(".lock")
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            guard = _acquired(lock, kind)
        except OSError:
            yield
            return
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()  # while it is held: who waits for it sees that it is gone, and makes a new one
            guard.release()

    def _tidy(self, folder: Path) -> None:
        """Remove, once for each folder, what killed processes left in it."""
        if folder not in self._tidied:
            self._tidied.add(folder)
            for aside in folder.glob(".*"):
                with suppress(OSError):
                    if time.time() - aside.stat().st_mtime > LEFTOVER_S:
                        shutil.rmtree(aside)


def _acquired(lock: Path, kind: str) -> FileLock:
    guard = FileLock(lock)
    while True:
        try:
            guard.acquire(timeout=TOLD_EVERY_S)
        except Timeout:
            log.info("waiting for %s, which another process makes", kind)
        else:
            return guard


def _bytes(arrays: Arrays) -> int | None:
    """Return what arrays take in memory; None where one is mapped, which is made anew in no time."""
    if any(isinstance(array.base, np.memmap) for array in arrays.values()):
        return None
    return sum(array.nbytes for array in arrays.values())


def _read(entry: Path) -> tuple[Arrays, Costs] | None:
    """Return an entry, or None where there is none, it can't be read, or it is damaged (then it is removed)."""
    try:
        manifest = orjson.loads((entry / "manifest.json").read_bytes())
        arrays = {name: _map(entry / f"{name}.npy", size) for name, size in manifest["arrays"].items()}
        costs = {digest: Cost(kind, seconds, reused=True) for digest, (kind, seconds) in manifest["costs"].items()}
    except (FileNotFoundError, NotADirectoryError):
        if not entry.exists():
            return None
    except OSError as error:
        log.warning("%s can't be read, and its work is done again: %s", entry, error.strerror or error)
        return None
    except (ValueError, KeyError) as error:
        log.warning("%s is damaged and is built again (%s)", entry, error)
    else:
        return arrays, costs
    shutil.rmtree(entry, ignore_errors=True)
    return None


def _map(file: Path, size: int) -> np.ndarray[Any, Any]:
    if file.stat().st_size != size:
        raise ValueError(f"{file.name} has {file.stat().st_size} bytes instead of {size}")
    array: np.ndarray[Any, Any] = np.load(file, mmap_mode="r" if size >= MAPPED_BYTES else None, allow_pickle=False)
    array.flags.writeable = False
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
