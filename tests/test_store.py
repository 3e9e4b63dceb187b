from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from retrievers.base import Arrays, Key
from runner.store import WORTH_KEEPING_S, DiskStore

KEY = Key.of("things", ["retrievers.base"], name="ünïcode / key")


def slowly(calls: list[str], name: str = "built") -> Callable[[], Arrays]:
    def build() -> Arrays:
        calls.append(name)
        time.sleep(WORTH_KEEPING_S * 1.5)
        return {"a": np.arange(20000, dtype=np.int32), "empty": np.zeros((0, 3)), "scalar": np.float32(2.5)}

    return build


def test_what_one_process_built_another_finds_memory_mapped(tmp_path: Path) -> None:
    calls: list[str] = []
    first = DiskStore(tmp_path).arrays(KEY, slowly(calls))
    second = DiskStore(tmp_path).arrays(KEY, slowly(calls))
    assert calls == ["built"]
    assert {name: array.tolist() for name, array in first.items()} == {n: a.tolist() for n, a in second.items()}
    assert not second["a"].flags.writeable


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


def test_live_objects_stay_in_the_process(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    thing = store.share(KEY, object)
    assert store.share(KEY, object) is thing
    assert not list(tmp_path.rglob("*"))
