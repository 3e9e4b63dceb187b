"""What a place for cached work owes the program, to be checked by its own tests."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable

import numpy as np

from retrievers import search
from retrievers.store import Arrays, Key
from retrievers.work import WorkKind
from runner.store.base import EntryUse
from runner.store.disk import DiskStore
from runner.store.shelf import Shelf
from runner.testing.requirements import require

KIND = WorkKind("checked work", "index", external=True, exists=False)
"""A kind of work that a store keeps however little time it takes."""

ARRAYS: Arrays = {"a": np.arange(2000), "empty": np.zeros((0, 3)), "scalar": np.array(2.5, dtype=np.float32)}


def check_shelf(open_shelf: Callable[[], Shelf]) -> None:
    """Raise `AssertionError` with what a `Shelf` owes the program.

    `open_shelf` opens the same empty place each time, as another process would.
    """
    one, two = open_shelf(), open_shelf()
    name = type(one).__name__
    first, second, third = (Key.of(KIND, search.__name__, n=n, name="ünïcode / key") for n in range(3))
    require(not one.list_entries(), f"{name}: open_shelf should open an empty place")
    _check_missing(one, first, name)

    one.write(first, ARRAYS, {})
    for shelf in (two, open_shelf(), pickle.loads(pickle.dumps(two))):  # noqa: S301 (its own bytes)
        _check_arrays(shelf.read(first)[0], name)
    two.write(first, {"a": np.zeros(3)}, {})
    _check_arrays(one.read(first)[0], f"{name}, after another write of the same key")
    missing = two.find_missing([first, second])
    require(missing == {second.digest}, f"{name}: find_missing should name the keys without an entry, not {missing}")

    _check_failed_write(one, two, second, name)
    _check_locks(one, two, second, name)
    _check_builds(open_shelf, third, name)
    _check_entries(one, two, first, name)


def _check_missing(shelf: Shelf, key: Key, name: str) -> None:
    try:
        shelf.read(key)
    except FileNotFoundError:
        return
    raise AssertionError(f"{name}: read should raise FileNotFoundError for a key without an entry")


def _check_arrays(arrays: Arrays, name: str) -> None:
    require(arrays.keys() == ARRAYS.keys(), f"{name}: wrote {[*ARRAYS]}, read {[*arrays]}")
    for part, expected in ARRAYS.items():
        array = arrays[part]
        same = array.dtype == expected.dtype and np.array_equal(array, expected)
        require(same, f"{name}: {part} was written as {expected!r} and read as {array!r}")
        require(not array.flags.writeable, f"{name}: {part} can be written to, though others read it too")


def _check_failed_write(one: Shelf, two: Shelf, key: Key, name: str) -> None:
    """Check that a write that fails leaves nothing: an array of objects cannot be stored."""
    try:
        one.write(key, {**ARRAYS, "objects": np.array([object()])}, {})
    except Exception:
        _check_missing(two, key, f"{name}, after a write that failed")
    else:
        raise AssertionError(f"{name}: write should raise an error for an array of objects")


def _check_locks(one: Shelf, two: Shelf, key: Key, name: str) -> None:
    with one.alone(key) as free:
        require(free, f"{name}: alone should yield True for a key that no process holds")
        with two.alone(key, wait=False) as again:
            require(not again, f"{name}: alone should yield False while another process is in the block")
    with two.alone(key, wait=False) as free:
        require(free, f"{name}: alone should yield True after the other process has left the block")
    with one.alone_in_sweep("0" * 32):
        pass


def _check_builds(open_shelf: Callable[[], Shelf], key: Key, name: str) -> None:
    """Check that a store on the shelf builds an entry once."""
    builds: list[int] = []

    def build() -> Arrays:
        builds.append(1)
        return ARRAYS

    for _ in range(2):
        DiskStore(open_shelf()).arrays(key, build)
    require(len(builds) == 1, f"{name}: a stored entry was built again")
    open_shelf().discard(key)
    _check_missing(open_shelf(), key, f"{name}, after discard")


def _check_entries(one: Shelf, two: Shelf, key: Key, name: str) -> None:
    """Check that the only entry is listed with its use, is intact, and is removed on request."""
    one.note_use(EntryUse(time.time(), "a dataset", "f" * 32, "a run"), [key.digest])
    require(not two.list_entries("nothing"), f"{name}: list_entries lists entries of another kind")
    listed = two.list_entries()
    require(len(listed) == 1, f"{name}: list_entries should list 1 entry, not {len(listed)}")
    (entry,) = listed
    about = (entry.kind, entry.digest, entry.parts)
    require(about == (KIND.name, key.digest, dict(key.parts)), f"{name}: the entry is listed as {about}")
    require(entry.bytes >= sum(array.nbytes for array in ARRAYS.values()), f"{name}: {entry.bytes} bytes are too few")
    uses = [(use.dataset, use.run) for use in entry.uses]
    require(uses == [("a dataset", "a run")], f"{name}: note_use should add a use to the entry, which has {uses}")
    damage = two.find_damage(entry) or two.remove_damaged(key)
    require(damage is None, f"{name}: an intact entry is said to be damaged: {damage}")
    two.remove(entry, only_damaged=True)
    require(two.list_entries(), f"{name}: remove with only_damaged removed an intact entry")
    for shelf in (two, one):  # the second time, another process was quicker
        shelf.remove(entry)
    one.tidy()
    require(not one.list_entries(), f"{name}: an entry is listed after it was removed")
    _check_missing(one, key, f"{name}, after remove")
