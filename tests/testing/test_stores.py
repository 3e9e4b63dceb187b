"""The checks for authors of places for cached work: each fault is named; ours pass in tests/store/test_contract.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from retrievers.store import Arrays, Key
from runner.store.base import Entry, EntryUse
from runner.store.entries import Manifest, SavedCost
from runner.store.shelf import FolderShelf
from runner.testing.stores import KIND, check_shelf


class Overwriting(FolderShelf):
    def write(self, key: Key, arrays: Arrays, costs: Mapping[str, SavedCost]) -> None:
        self.discard(key)
        super().write(key, arrays, costs)


class Writable(FolderShelf):
    def read(self, key: Key) -> tuple[Arrays, Manifest]:
        arrays, manifest = super().read(key)
        return {name: np.array(array) for name, array in arrays.items()}, manifest


class Unlocked(FolderShelf):
    @contextmanager
    def alone(self, key: Key, wait: bool = True) -> Iterator[bool]:
        yield True


class Partial(FolderShelf):
    def write(self, key: Key, arrays: Arrays, costs: Mapping[str, SavedCost]) -> None:
        whole = {name: array for name, array in arrays.items() if array.dtype != object}
        super().write(key, whole, costs)
        super().write(key, arrays, costs)
        if len(whole) < len(arrays):
            raise OSError("disk full")


class Forgetful(FolderShelf):
    def note_use(self, use: EntryUse, digests: object) -> None: ...


class Keeping(FolderShelf):
    def remove(self, entry: Entry, only_damaged: bool = False) -> None: ...


class Empty(FolderShelf):
    def find_missing(self, keys: object) -> set[str]:
        return set()


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (Overwriting, "after another write of the same key: wrote"),
        (Writable, "a can be written to"),
        (Unlocked, "should yield False while another process is in the block"),
        (Partial, "after a write that failed: read should raise FileNotFoundError"),
        (Forgetful, "note_use should add a use to the entry"),
        (Keeping, "an entry is listed after it was removed"),
        (Empty, "find_missing should name the keys without an entry"),
    ],
)
def test_a_fault_of_a_shelf_is_named(kind: type[FolderShelf], fault: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=rf"{kind.__name__}.*{fault}"):
        check_shelf(lambda: kind(tmp_path))


def test_a_place_with_entries_is_refused(tmp_path: Path) -> None:
    check_shelf(lambda: FolderShelf(tmp_path))
    FolderShelf(tmp_path).write(Key.of(KIND, "retrievers.search", n=9), {"a": np.arange(3)}, {})
    with pytest.raises(AssertionError, match="should open an empty place"):
        check_shelf(lambda: FolderShelf(tmp_path))
