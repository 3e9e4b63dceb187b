from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from retrievers.base import Arrays, Key
from runner import store as stores
from runner.store import WORTH_KEEPING_S, DiskStore

KEY = Key.of("things", ["retrievers.base"], name="ünïcode / key")


def slowly(calls: list[str], name: str = "built") -> Callable[[], Arrays]:
    def build() -> Arrays:
        calls.append(name)
        time.sleep(WORTH_KEEPING_S * 1.5)
        return {"a": np.arange(20000, dtype=np.int32), "empty": np.zeros((0, 3)), "scalar": np.float32(2.5)}

    return build


@pytest.mark.parametrize("mapped_from", [1000, 10**9])
def test_what_one_process_built_another_finds_read_or_mapped(
    tmp_path: Path, mapped_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "MAPPED_BYTES", mapped_from)
    calls: list[str] = []
    first = DiskStore(tmp_path).arrays(KEY, slowly(calls))
    second = DiskStore(tmp_path).arrays(KEY, slowly(calls))
    assert calls == ["built"]
    assert {name: array.tolist() for name, array in first.items()} == {n: a.tolist() for n, a in second.items()}
    assert isinstance(second["a"].base, np.memmap) == (mapped_from == 1000)
    assert not any(array.flags.writeable for array in second.values())


def test_what_is_quick_to_build_is_not_written(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    value = store.arrays(KEY, lambda: {"a": np.ones(3)})
    assert store.arrays(KEY, lambda: {"a": np.zeros(3)}) is value
    assert not list(tmp_path.rglob("*.npy"))


@pytest.mark.parametrize("damage", ["truncate", "remove", "garble", "manifest"])
def test_a_damaged_entry_is_built_again(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[str] = []
    DiskStore(tmp_path).arrays(KEY, slowly(calls))
    (array,) = tmp_path.rglob("a.npy")
    if damage == "truncate":
        array.write_bytes(array.read_bytes()[:100])
    elif damage == "remove":
        array.unlink()
    elif damage == "garble":
        array.write_bytes(b"x" * array.stat().st_size)
    else:
        (array.parent / "manifest.json").write_text("{")
    again = DiskStore(tmp_path).arrays(KEY, slowly(calls, "again"))
    assert calls == ["built", "again"]
    assert again["a"].tolist() == list(range(20000))


def test_a_build_that_raises_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> Arrays:
        raise RuntimeError("no")

    store = DiskStore(tmp_path)
    with pytest.raises(RuntimeError, match="no"):
        store.arrays(KEY, fail)
    calls: list[str] = []
    store.arrays(KEY, slowly(calls))
    assert calls == ["built"]


def test_a_killed_build_leaves_nothing_that_is_read(tmp_path: Path) -> None:
    program = f"""
import os, numpy as np, time
from pathlib import Path
from runner import store
from retrievers.base import Key
save = np.save
def die(*args, **kwargs):
    save(*args, **kwargs)
    os.kill(os.getpid(), 9)
np.save = die
s = store.DiskStore(Path({str(tmp_path)!r}))
s.arrays(Key.of("things", ["retrievers.base"], name="ünïcode / key"), lambda: (time.sleep(0.1), {{"a": np.ones(9)}})[1])
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    calls: list[str] = []
    DiskStore(tmp_path).arrays(KEY, slowly(calls))
    assert calls == ["built"]


def test_a_folder_that_cannot_be_written_costs_only_the_keeping(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    calls: list[str] = []
    assert DiskStore(blocked).arrays(KEY, slowly(calls))["a"].sum() > 0
    assert calls == ["built"]


def test_costs_are_exclusive_and_count_shared_work_once(tmp_path: Path) -> None:
    inner = Key.of("inner", ["retrievers.base"], n=1)
    outer = [Key.of("outer", ["retrievers.base"], n=n) for n in (1, 2)]
    store = DiskStore(tmp_path)

    def build(key: Key) -> Callable[[], Arrays]:
        def work() -> Arrays:
            store.arrays(inner, slowly([]))
            time.sleep(WORTH_KEEPING_S * 1.2)
            return {"a": np.ones(1)}

        return work

    for reused, place in ((False, store), (True, store), (True, DiskStore(tmp_path))):
        store = place
        with store.account() as costs:
            for key in outer:
                store.arrays(key, build(key))
        assert sorted(cost.kind for cost in costs.values()) == ["inner", "outer", "outer"]
        assert all(cost.reused == reused for cost in costs.values())
        outers = [cost.seconds for cost in costs.values() if cost.kind == "outer"]
        assert all(WORTH_KEEPING_S < seconds < 2 * WORTH_KEEPING_S for seconds in outers)


def numbered(n: int) -> Key:
    return Key.of("things", ["retrievers.base"], n=n)


def test_arrays_in_memory_are_bounded_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MEMORY_BYTES", 10_000)
    store = DiskStore(tmp_path)
    kept = [store.arrays(numbered(n), lambda: {"a": np.zeros(500)}) for n in range(4)]  # of 4,000 bytes each
    assert store.arrays(numbered(3), dict) is kept[3]
    assert store.arrays(numbered(2), dict) is kept[2]
    assert store.arrays(numbered(0), lambda: {"a": np.zeros(5000)}) is not kept[0]  # more than all that is allowed
    assert len(store.arrays(numbered(0), dict)["a"]) == 5000
    assert store.arrays(numbered(2), dict) == {}


def test_many_arrays_drive_no_live_object_out(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    thing = store.share(KEY, object)
    for n in range(2 * stores.LIVE_OBJECTS):
        store.arrays(numbered(n), lambda: {"a": np.zeros(1)})
    assert store.share(KEY, object) is thing
    for n in range(stores.LIVE_OBJECTS):
        store.share(numbered(n), object)
    assert store.share(KEY, object) is not thing


def test_mapped_arrays_are_not_held_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MAPPED_BYTES", 1000)
    store = DiskStore(tmp_path)
    first, second = (store.arrays(KEY, slowly([])) for _ in range(2))
    assert first is not second
    assert first["a"].tolist() == second["a"].tolist()


def test_what_is_read_from_disk_is_kept_in_memory(tmp_path: Path) -> None:
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
    assert "can't be read, and its work is done again: Too many open files" in caplog.text
    DiskStore(tmp_path).arrays(KEY, slowly(calls, "third"))
    assert calls == ["built", "again"]


@pytest.mark.parametrize(
    "build", [lambda: {"a": np.ones(3)}, slowly([]), lambda: 1 / 0], ids=["quick", "slow", "fails"]
)
def test_no_lock_is_left_behind(tmp_path: Path, build: Callable[[], Arrays]) -> None:
    with suppress(ZeroDivisionError):
        DiskStore(tmp_path).arrays(KEY, build)
    assert not list(tmp_path.rglob("*.lock"))


def test_one_builds_at_a_time_though_locks_come_and_go(tmp_path: Path) -> None:
    spans: list[tuple[float, float]] = []

    def build() -> Arrays:  # too quick to be kept, so that each builds in its turn
        start = time.monotonic()
        time.sleep(WORTH_KEEPING_S / 5)
        spans.append((start, time.monotonic()))
        return {"a": np.ones(1)}

    threads = [threading.Thread(target=lambda: DiskStore(tmp_path).arrays(KEY, build)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(spans) == 8
    assert all(one[1] <= next_one[0] for one, next_one in pairwise(sorted(spans)))


def test_who_waits_for_another_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stores, "TOLD_EVERY_S", 0.05)
    caplog.set_level(logging.INFO, "runner.store")
    begun = threading.Event()

    def build() -> Arrays:
        begun.set()
        time.sleep(0.5)
        return {"a": np.ones(1)}

    first = threading.Thread(target=lambda: DiskStore(tmp_path).arrays(KEY, build))
    first.start()
    begun.wait()
    assert DiskStore(tmp_path).arrays(KEY, dict)["a"].tolist() == [1]
    first.join()
    assert set(caplog.messages) == {"waiting for things, which another process makes"}


def test_what_killed_processes_left_goes_after_a_day(tmp_path: Path) -> None:
    folder = tmp_path / "things"
    old, young = folder / ".abc.1.2", folder / ".abc.3.4"
    for aside in (old, young):
        aside.mkdir(parents=True)
        (aside / "a.npy").write_bytes(b"x")
    os.utime(old, (time.time() - stores.LEFTOVER_S - 60,) * 2)
    DiskStore(tmp_path).arrays(KEY, slowly([]))
    assert (old.exists(), young.exists()) == (False, True)
    assert DiskStore(tmp_path).arrays(KEY, dict)["a"].sum() > 0


def test_live_objects_stay_in_the_process(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    thing = store.share(KEY, object)
    assert store.share(KEY, object) is thing
    assert not list(tmp_path.rglob("*"))
