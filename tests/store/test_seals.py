from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from retrievers.store import Key
from retrievers.work import WorkKind
from runner.store import seals
from runner.store.entries import find_damage, folder_of, read, write
from runner.store.seals import Damaged, Seals

LARGE_THINGS = WorkKind("large things", "index")

KEY = Key.of(LARGE_THINGS, "retrievers.search", n=1)
CONTENT = np.arange(5000, dtype=np.int32)
DAY_AGO = time.time_ns() - 86400 * 10**9


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of a few kilobytes be large, and seal them at once."""
    monkeypatch.setattr(seals, "MAPPED_BYTES", 1000)
    monkeypatch.setattr(seals, "SEALED_BYTES", 10_000)
    monkeypatch.setattr(seals, "SETTLED_S", -60.0)


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    """Return an entry with a large file that an earlier process verified."""
    folder = folder_of(tmp_path, KEY)
    write(folder, KEY, {"a": CONTENT, "small": CONTENT[:9]}, {})
    read(folder, KEY, Seals())
    probe, written = tmp_path / "probe", (folder / "a.npy").stat().st_ctime_ns
    probe.touch()
    while probe.stat().st_ctime_ns == written:  # from here on, a change has another time
        probe.touch()
    return folder


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of files in the order in which they are read in full from now on."""
    names: list[str] = []
    verify = seals.verify

    def counting(file: Path, size: int, crc32: int) -> None:
        names.append(file.name)
        verify(file, size, crc32)

    monkeypatch.setattr(seals, "verify", counting)
    return names


def flip(file: Path) -> None:
    """Flip a bit in place, which leaves the inode as it is."""
    with file.open("r+b") as opened:
        opened.seek(3000)
        (byte,) = opened.read(1)
        opened.seek(3000)
        opened.write(bytes([byte ^ 1]))


def flip_and_restore_the_times(file: Path) -> None:
    before = file.stat()
    flip(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def zero_a_page(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(bytes(4096))


def replace(file: Path) -> None:
    other = file.with_name("other")
    other.write_bytes(file.read_bytes()[:-1] + b"x")
    os.utime(other, ns=(DAY_AGO, DAY_AGO))
    other.replace(file)


@pytest.mark.parametrize("change", [flip, flip_and_restore_the_times, zero_a_page, replace])
@pytest.mark.parametrize("known", [True, False], ids=["this process", "another process"])
def test_a_change_to_a_large_file_is_seen(entry: Path, change: Callable[[Path], None], known: bool) -> None:
    process = Seals()
    if known:
        read(entry, KEY, process)
    change(entry / "a.npy")
    with pytest.raises(Damaged, match=r"^a\.npy has changed since it was written$"):
        read(entry, KEY, process)
    assert find_damage(entry) == "a.npy has changed since it was written"


def test_a_large_file_is_verified_once_for_all_processes(entry: Path, verified: list[str]) -> None:
    assert np.array_equal(read(entry, KEY, Seals())[0]["a"], CONTENT)
    assert verified == ["small.npy"]
    os.utime(entry / "a.npy", ns=(DAY_AGO, DAY_AGO))
    read(entry, KEY, Seals())
    read(entry, KEY, Seals())
    assert verified == ["small.npy", "a.npy", "small.npy", "small.npy"]


def test_a_mapped_file_is_verified_once_a_process(
    entry: Path, verified: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "SEALED_BYTES", 10**9)
    process = Seals()
    for _ in range(3):
        read(entry, KEY, process)
    assert verified == ["a.npy", *3 * ["small.npy"]]


def test_a_file_that_changed_a_moment_ago_is_not_sealed(
    tmp_path: Path, verified: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "SETTLED_S", 3600.0)
    folder = folder_of(tmp_path, KEY)
    write(folder, KEY, {"a": CONTENT}, {})
    for _ in range(2):
        read(folder, KEY, Seals())
    assert verified == ["a.npy", "a.npy"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a.npy": [1, 2, 3, 4, 5], "crc32": 7}', b"\xff\x00"])
def test_unreadable_seals_are_written_again(entry: Path, verified: list[str], content: bytes) -> None:
    intact = (entry / seals.SEALS).read_bytes()
    (entry / seals.SEALS).write_bytes(content)
    read(entry, KEY, Seals())
    assert verified == ["a.npy", "small.npy"]
    assert (entry / seals.SEALS).read_bytes() == intact


def test_a_store_that_cannot_be_written_is_verified_by_each_process(
    entry: Path, verified: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    (entry / seals.SEALS).unlink()
    monkeypatch.setattr(Path, "write_bytes", refuse)
    for _ in range(2):
        assert np.array_equal(read(entry, KEY, Seals())[0]["a"], CONTENT)
    assert verified == 2 * ["a.npy", "small.npy"]


def test_a_file_that_changes_while_it_is_verified_is_damaged(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verify = seals.verify

    def meanwhile(file: Path, size: int, crc32: int) -> None:
        verify(file, size, crc32)
        os.utime(file, ns=(DAY_AGO, DAY_AGO))

    flip(entry / "a.npy")
    flip(entry / "a.npy")  # it is as it was, and its times are not
    monkeypatch.setattr(seals, "verify", meanwhile)
    with pytest.raises(Damaged, match="changed while it was being verified"):
        read(entry, KEY, Seals())
