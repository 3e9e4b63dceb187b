from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retrievers.store import Arrays, Key
from retrievers.work import WorkKind
from runner.store import entries, seals
from runner.store.base import EntryUse
from runner.store.entries import (
    find_damage,
    folder_of,
    list_entries,
    note_use,
    read,
    remove,
    remove_damaged,
    tidy,
    write,
)
from runner.store.seals import Damaged, Seals
from runner.system.processes import _place, holder

SMALL_THINGS = WorkKind("small things", "index")
THINGS = WorkKind("things", "index")

KEY = Key.of(SMALL_THINGS, "retrievers.search", corpus="c", name="ünïcode / key")
ARRAYS: Arrays = {
    "a": np.arange(600, dtype=np.int32).reshape(2, 300),
    "empty": np.zeros((0, 3)),
    "scalar": np.array(2.5, dtype=np.float32),
    "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
}
COSTS = {KEY.digest: ("small things", 1.5), "other": ("postings", 0.1)}


def make_entry(store: Path, key: Key = KEY, arrays: Arrays = ARRAYS) -> Path:
    write(folder_of(store, key), key, arrays, COSTS)
    return folder_of(store, key)


def flip(file: Path, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[bit // 8 % len(content)] ^= 1 << bit % 8
    file.write_bytes(content)


def same(arrays: Arrays) -> bool:
    return arrays.keys() == ARRAYS.keys() and all(
        array.dtype == ARRAYS[name].dtype and np.array_equal(array, ARRAYS[name]) for name, array in arrays.items()
    )


@pytest.mark.parametrize("mapped_from", [1, 1000, 10**9])
def test_what_was_written_is_read_or_mapped(tmp_path: Path, mapped_from: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "MAPPED_BYTES", mapped_from)
    arrays, manifest = read(make_entry(tmp_path), KEY, Seals())
    assert same(arrays)
    assert not any(array.flags.writeable for array in arrays.values())
    assert isinstance(arrays["a"].base, np.memmap) == (mapped_from < 2400)
    assert (manifest.kind, manifest.parts) == (KEY.kind.name, dict(KEY.parts))
    assert {digest: tuple(cost) for digest, cost in manifest.costs.items()} == COSTS


def test_sizes_and_checksums_are_those_of_the_files(tmp_path: Path) -> None:
    folder = make_entry(tmp_path)
    for name, (size, crc32) in read(folder, KEY, Seals())[1].arrays.items():
        content = (folder / f"{name}.npy").read_bytes()
        assert (size, crc32) == (len(content), zlib.crc32(content))
    assert find_damage(folder) is None


@given(file=st.sampled_from(["manifest.json", *(f"{name}.npy" for name in ARRAYS)]), bit=st.integers(0, 10**5))
@example(file="a.npy", bit=8 * 1000 + 3)
def test_no_bit_can_flip_unseen(file: str, bit: int) -> None:
    with tempfile.TemporaryDirectory() as store:
        folder = make_entry(Path(store))
        flip(folder / file, bit)
        assert find_damage(folder) is not None
        with pytest.raises(Damaged):
            read(folder, KEY, Seals())


@pytest.mark.parametrize("file", ["manifest.json", "a.npy", "empty.npy"])
@pytest.mark.parametrize("how", ["cut", "emptied", "removed", "grown"])
def test_a_file_that_is_not_whole_is_seen(tmp_path: Path, file: str, how: str) -> None:
    folder = make_entry(tmp_path)
    path = folder / file
    content = path.read_bytes()
    if how == "removed":
        path.unlink()
    else:
        path.write_bytes({"cut": content[:-1], "emptied": b"", "grown": content + b"x"}[how])
    wrong = find_damage(folder)
    assert wrong is not None
    assert file in wrong
    with pytest.raises(Damaged, match=file):
        read(folder, KEY, Seals())


def test_what_can_be_sealed_is_on_the_disk_before_its_entry_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    folder = folder_of(tmp_path, KEY)

    def fsync(file: int) -> None:
        assert not folder.exists()
        synced.append(os.fstat(file).st_size)

    monkeypatch.setattr(seals, "SEALED_BYTES", 1000)
    monkeypatch.setattr(os, "fsync", fsync)
    make_entry(tmp_path)
    assert synced == [(folder / "a.npy").stat().st_size]


def test_arrays_of_two_builds_are_never_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_entry(tmp_path, arrays={"a": np.zeros(9), "b": np.zeros(9)})
    load = np.load

    def replaced_meanwhile(file: Path, **how: Any) -> Any:
        if file.name == "b.npy":
            remove(folder)
            make_entry(tmp_path, arrays={"a": np.ones(9), "b": np.ones(9)})
        return load(file, **how)

    monkeypatch.setattr(np, "load", replaced_meanwhile)
    with pytest.raises(Damaged, match="replaced while it was read"):
        read(folder, KEY, Seals())


def test_another_s_entry_of_the_same_key_stays(tmp_path: Path) -> None:
    first = make_entry(tmp_path).stat().st_ino
    assert make_entry(tmp_path).stat().st_ino == first
    assert [path.name for path in (tmp_path / "small_things").iterdir()] == [KEY.digest]


def test_what_cannot_be_written_whole_leaves_nothing(tmp_path: Path) -> None:
    program = f"""
import resource, sys, numpy as np
from pathlib import Path
from retrievers.store import Key
from retrievers.work import WorkKind
from runner.store.entries import write
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
key = Key.of(WorkKind("things", "index"), "retrievers.search", n=1)
try:
    write(Path({str(tmp_path)!r}) / "things" / key.digest, key, {{"a": np.ones(100), "b": np.ones(9000)}}, {{}})
except OSError as error:
    sys.exit(error.errno)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == errno.EFBIG
    assert not list((tmp_path / "things").iterdir())


def test_an_entry_is_removed_while_others_have_it_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "MAPPED_BYTES", 1)
    folder = make_entry(tmp_path)
    arrays, _ = read(folder, KEY, Seals())
    remove(folder)
    assert not list((tmp_path / "small_things").iterdir())
    assert same(arrays)
    remove(folder)  # another did it meanwhile
    with pytest.raises(FileNotFoundError):
        read(folder, KEY, Seals())


@pytest.mark.parametrize("way", [remove, remove_damaged])
def test_an_entry_has_lost_its_name_before_its_files_go(
    tmp_path: Path, way: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_entry(tmp_path)
    flip(folder / "a.npy", 9000)
    seen: list[bool] = []
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: seen.append(folder.exists()))
    way(folder)
    assert seen == [False]


def test_a_damaged_entry_is_removed_and_an_intact_one_stays(tmp_path: Path) -> None:
    folder = make_entry(tmp_path)
    assert remove_damaged(folder) is None
    assert same(read(folder, KEY, Seals())[0])
    flip(folder / "a.npy", 9000)
    assert remove_damaged(folder) == "a.npy has changed since it was written"
    assert remove_damaged(folder) is None
    assert not list(folder.parent.iterdir())


@pytest.mark.parametrize(
    ("maker", "age", "goes"),
    [
        (holder, 0, False),
        (lambda: f"{_place()}.{dead()}", 0, True),
        (lambda: "another-host.4711", 0, False),
        (lambda: "another-host.4711", entries.LEFTOVER_S + 60, True),
        (holder, entries.LEFTOVER_S + 60, True),
    ],
    ids=["alive", "dead", "elsewhere", "elsewhere, old", "old"],
)
def test_what_is_left_goes_when_its_maker_is_gone(
    tmp_path: Path, maker: Callable[[], str], age: float, goes: bool
) -> None:
    folder = make_entry(tmp_path)
    aside = folder.with_name(f".{folder.name}.{maker()}.0123abcd")
    aside.mkdir()
    (aside / "a.npy").write_bytes(b"x")
    lock = folder.with_suffix(".lock")
    lock.write_text(f"{maker()} 0123abcd")
    for left in (aside, lock):
        os.utime(left, (time.time() - age,) * 2)
    tidy(folder.parent)
    assert (aside.exists(), lock.exists()) == (not goes, not goes)
    assert same(read(folder, KEY, Seals())[0])


def dead() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_only_entries_are_listed_and_only_what_entries_leave_is_tidied(tmp_path: Path) -> None:
    others = [tmp_path / "src" / name for name in ("code", ".git", ".venv.old.1.2", "poetry.lock", "0" * 31)]
    for other in others:
        (other / "inner").mkdir(parents=True)
        os.utime(other, (0, 0))
    (tmp_path / "src" / "pdm.lock").write_text("")
    os.utime(tmp_path / "src" / "pdm.lock", (0, 0))
    tidy(tmp_path / "src")
    assert list_entries(tmp_path) == []
    assert all(other.exists() for other in [*others, tmp_path / "src" / "pdm.lock"])


def test_an_entry_is_listed_with_its_kind_parts_size_and_times(tmp_path: Path) -> None:
    folder = make_entry(tmp_path)
    (entry,) = list_entries(tmp_path)
    assert (entry.place, entry.kind, entry.parts, entry.seconds) == (str(folder), KEY.kind.name, dict(KEY.parts), 1.5)
    assert entry.bytes == sum(file.stat().st_size for file in folder.iterdir())
    assert entry.made == (folder / "manifest.json").stat().st_mtime
    assert entry.used == entry.made


def test_a_damaged_entry_is_listed_by_its_place(tmp_path: Path) -> None:
    folder = make_entry(tmp_path)
    (folder / "manifest.json").write_text("{")
    (entry,) = list_entries(tmp_path)
    assert (entry.kind, entry.parts, entry.place) == ("small things", {}, str(folder))


def test_a_store_that_is_not_there_has_no_entries(tmp_path: Path) -> None:
    assert list_entries(tmp_path / "nowhere") == []


def test_an_entry_lists_every_noted_use(tmp_path: Path) -> None:
    first, second = (Key.of(THINGS, "retrievers.search", n=n) for n in (1, 2))
    for key in (first, second):
        make_entry(tmp_path, key)
    later = time.time() + 100
    uses = [
        EntryUse(later, "scifact", "f1", "bm25"),
        EntryUse(later + 9, "scifact", "f1", "k1=2"),
        EntryUse(5.0, "other", "f2", "x"),
    ]
    note_use(tmp_path, "one", uses[0], [first.digest, second.digest])
    note_use(tmp_path, "two", uses[1], [first.digest, "of an entry that is gone"])
    note_use(tmp_path, "one", uses[2], [first.digest])
    found = {entry.digest: entry for entry in list_entries(tmp_path)}
    assert set(found[first.digest].uses) == set(uses)
    assert found[second.digest].uses == (uses[0],)
    assert [entry.digest for entry in list_entries(tmp_path)] == [second.digest, first.digest]  # by their last use
    assert found[first.digest].used == later + 9


def test_a_note_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    folder = make_entry(tmp_path)
    use = EntryUse(1.0, "scifact", "f1", "bm25")
    note_use(tmp_path, "one", use, [folder.name])
    notes = tmp_path / entries.USES / "one.jsonl"
    notes.write_bytes(notes.read_bytes() + notes.read_bytes()[:30])
    note_use(tmp_path, "one", use, [folder.name])
    assert list_entries(tmp_path)[0].uses == (use, use)
    assert orjson.loads(notes.read_bytes().splitlines()[1])["entries"] == [folder.name]


def test_notes_on_what_is_gone_are_forgotten(tmp_path: Path) -> None:
    folder = make_entry(tmp_path)
    note_use(tmp_path, "one", EntryUse(1.0, "a", "f", "r"), [folder.name, "gone"])
    note_use(tmp_path, "two", EntryUse(1.0, "a", "f", "r"), ["gone"])
    entries.forget_uses(tmp_path)
    assert [file.name for file in (tmp_path / entries.USES).iterdir()] == ["one.jsonl"]
