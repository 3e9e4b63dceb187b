"""What a store on disk keeps: arrays that one process builds and another reads, damage, memory, and costs."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from retrievers.store import Arrays
from runner.store import disk as stores
from runner.store import entries, seals
from runner.store.disk import DiskStore
from tests.store.building import KEY, create_key, slowly


@pytest.mark.parametrize("mapped_from", [1000, 10**9])
def test_what_one_process_built_another_finds_read_or_mapped(
    tmp_path: Path, mapped_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "MAPPED_BYTES", mapped_from)
    calls: list[str] = []
    first = DiskStore(tmp_path).arrays(KEY, slowly(calls))
    second = DiskStore(tmp_path).arrays(KEY, slowly(calls))
    assert calls == ["built"]
    assert {name: array.tolist() for name, array in first.items()} == {n: a.tolist() for n, a in second.items()}
    assert isinstance(second["a"].base, np.memmap) == (mapped_from == 1000)
    assert not any(array.flags.writeable for array in second.values())


@pytest.mark.usefixtures("clock")
def test_what_is_quick_to_build_is_not_written(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    value = store.arrays(KEY, lambda: {"a": np.ones(3)})
    assert store.arrays(KEY, lambda: {"a": np.zeros(3)}) is value
    assert not list(tmp_path.rglob("*.npy"))


@pytest.mark.parametrize("damage", ["truncate", "remove", "garble", "flip", "manifest", "no manifest"])
def test_a_damaged_entry_is_built_again_and_that_is_said(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []
    DiskStore(tmp_path).arrays(KEY, slowly(calls))
    (array,) = tmp_path.rglob("a.npy")
    if damage == "truncate":
        array.write_bytes(array.read_bytes()[:100])
    elif damage == "remove":
        array.unlink()
    elif damage == "garble":
        array.write_bytes(b"x" * array.stat().st_size)
    elif damage == "flip":
        content = bytearray(array.read_bytes())
        content[50_000] ^= 16
        array.write_bytes(content)
    elif damage == "manifest":
        (array.parent / "manifest.json").write_text("{")
    else:
        (array.parent / "manifest.json").unlink()
    again = DiskStore(tmp_path).arrays(KEY, slowly(calls, "again"))
    assert calls == ["built", "again"]
    assert again["a"].tolist() == list(range(20000))
    assert caplog.text.count("; computing it again") == 1
    DiskStore(tmp_path).arrays(KEY, slowly(calls, "third"))
    assert calls == ["built", "again"]


def test_a_damaged_entry_that_cannot_be_removed_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []
    DiskStore(tmp_path).arrays(KEY, slowly(calls))
    (array,) = tmp_path.rglob("a.npy")
    array.write_bytes(b"x" * array.stat().st_size)
    read_only(monkeypatch)
    again = DiskStore(tmp_path).arrays(KEY, slowly(calls, "again"))
    assert calls == ["built", "again"]
    assert again["a"].tolist() == list(range(20000))
    assert ": damaged, but cannot be removed (Read-only file system)" in caplog.text


def test_a_build_that_raises_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> Arrays:
        raise RuntimeError("no")

    store = DiskStore(tmp_path)
    with pytest.raises(RuntimeError, match="no"):
        store.arrays(KEY, fail)
    calls: list[str] = []
    store.arrays(KEY, slowly(calls))
    assert calls == ["built"]


def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be made or renamed from now on, as in a folder on a read-only file system."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    for name in ("mkdir", "rename", "unlink"):
        monkeypatch.setattr(Path, name, refuse)


def test_a_read_only_folder_is_read_and_costs_only_the_keeping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []
    DiskStore(tmp_path).arrays(KEY, slowly(calls))
    read_only(monkeypatch)
    store = DiskStore(tmp_path)
    with store.account() as costs:
        assert store.arrays(KEY, slowly(calls))["a"].sum() > 0
        assert store.arrays(create_key(1), slowly(calls, "another"))["a"].sum() > 0
    store.note_use(costs, "scifact", "f", "bm25")
    assert calls == ["built", "another"]
    assert len(caplog.records) == 1
    assert "cannot be stored" in caplog.text


def test_on_a_full_disk_what_was_built_is_returned_and_that_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []
    written = entries._Summed.write

    def write(file: entries._Summed, data: bytes) -> int:
        if file.size > 1000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(file, data)

    store = DiskStore(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(entries._Summed, "write", write)
        patched.setattr(np, "save", in_pieces)
        for n in range(3):
            assert store.arrays(create_key(n), slowly(calls, str(n)))["a"].tolist() == list(range(20000))
    assert calls == ["0", "1", "2"]
    assert [record.getMessage() for record in caplog.records] == [
        f"things and later results cannot be stored in {tmp_path}: No space left on device"
    ]
    assert not list((tmp_path / "things").iterdir())
    DiskStore(tmp_path).arrays(create_key(0), slowly(calls, "with room"))
    DiskStore(tmp_path).arrays(create_key(0), slowly(calls, "not again"))
    assert calls == ["0", "1", "2", "with room"]


def in_pieces(file: entries._Summed, array: np.ndarray[Any, Any], **_: object) -> None:
    for piece in np.array_split(array.ravel(), 10):
        file.write(piece.tobytes())


def test_a_folder_that_cannot_be_written_costs_only_the_keeping(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    calls: list[str] = []
    assert DiskStore(blocked).arrays(KEY, slowly(calls))["a"].sum() > 0
    assert calls == ["built"]


@pytest.mark.usefixtures("clock")
def test_arrays_in_memory_are_bounded_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MEMORY_BYTES", 10_000)
    store = DiskStore(tmp_path)
    kept = [store.arrays(create_key(n), lambda: {"a": np.zeros(500)}) for n in range(4)]  # of 4,000 bytes each
    assert store.arrays(create_key(3), dict) is kept[3]
    assert store.arrays(create_key(2), dict) is kept[2]
    assert store.arrays(create_key(0), lambda: {"a": np.zeros(5000)}) is not kept[0]  # more than all that is allowed
    assert len(store.arrays(create_key(0), dict)["a"]) == 5000
    assert store.arrays(create_key(2), dict) == {}


def test_many_arrays_drive_no_live_object_out(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    thing = store.share(KEY, object)
    for n in range(2 * stores.LIVE_OBJECTS):
        store.arrays(create_key(n), lambda: {"a": np.zeros(1)})
    assert store.share(KEY, object) is thing
    for n in range(stores.LIVE_OBJECTS):
        store.share(create_key(n), object)
    assert store.share(KEY, object) is not thing


def test_few_heavy_objects_stay_alive(tmp_path: Path) -> None:
    store, heavy = DiskStore(tmp_path), SimpleNamespace(live_weight=stores.LIVE_OBJECTS // 2)
    store.share(KEY, object)
    for n in range(2):
        store.share(create_key(n), lambda: heavy)
    assert all(store.share(create_key(n), object) is heavy for n in range(2))
    store.share(create_key(2), lambda: heavy)
    assert store.share(create_key(0), object) is not heavy  # the least recently used one is gone


def test_mapped_arrays_are_not_held_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "MAPPED_BYTES", 1000)
    store = DiskStore(tmp_path)
    first, second = (store.arrays(KEY, slowly([])) for _ in range(2))
    assert first is not second
    assert first["a"].tolist() == second["a"].tolist()


def test_entries_read_from_disk_are_cached_in_memory(tmp_path: Path) -> None:
    DiskStore(tmp_path).arrays(KEY, slowly([]))
    store = DiskStore(tmp_path)
    assert store.arrays(KEY, slowly([])) is store.arrays(KEY, slowly([]))


def test_an_entry_that_cannot_be_read_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def load(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    calls: list[str] = []
    DiskStore(tmp_path).arrays(KEY, slowly(calls))
    with monkeypatch.context() as patched:
        patched.setattr(np, "load", load)
        DiskStore(tmp_path).arrays(KEY, slowly(calls, "again"))
    assert ": cannot be read (Too many open files); computing it again" in caplog.text
    DiskStore(tmp_path).arrays(KEY, slowly(calls, "third"))
    assert calls == ["built", "again"]


def test_live_objects_stay_in_the_process(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    thing = store.share(KEY, object)
    assert store.share(KEY, object) is thing
    assert not list(tmp_path.rglob("*"))
