from __future__ import annotations

import errno
import logging
import os
import pickle
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from retrievers.analyzer import Analyzer
from retrievers.base import Corpus, Rankings, create_empty_rankings
from retrievers.bm25 import BM25
from retrievers.fusion import Hybrid
from retrievers.search import search_cached
from retrievers.store import Arrays, Key, NoStore, Store
from retrievers.work import METER
from runner import processes
from runner.store import disk as stores
from runner.store import entries, lock, seals
from runner.store.base import WORTH_KEEPING_S
from runner.store.disk import DiskStore
from tests.warm import WARM

KEY = Key.of("things", ["retrievers.base"], name="ünïcode / key")


class Clock:
    """The time that work is measured by, where it passes only when a test says so."""

    now = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    return clock


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


def test_costs_are_exclusive_and_count_shared_work_once(tmp_path: Path, clock: Clock) -> None:
    inner = Key.of("inner", ["retrievers.base"], n=1)
    outer = [Key.of("outer", ["retrievers.base"], n=n) for n in (1, 2)]
    store = DiskStore(tmp_path)

    def build(key: Key) -> Callable[[], Arrays]:
        def work() -> Arrays:
            store.arrays(inner, very_slowly)
            clock.now += WORTH_KEEPING_S * 1.5
            return {"a": np.ones(1)}

        return work

    def very_slowly() -> Arrays:
        clock.now += 60
        return {"a": np.ones(1)}

    for reused, place in ((False, store), (True, store), (True, DiskStore(tmp_path))):
        store = place
        with store.account() as costs:
            for key in outer:
                store.arrays(key, build(key))
        assert sorted(cost.kind for cost in costs.values()) == ["inner", "outer", "outer"]
        assert all(cost.reused == reused for cost in costs.values())
        outers = [cost.seconds for cost in costs.values() if cost.kind == "outer"]
        assert outers == pytest.approx([WORTH_KEEPING_S * 1.5] * 2)


def test_an_index_has_its_size_and_all_work_what_its_calls_cost(tmp_path: Path, clock: Clock) -> None:
    """What an index is built from is an intermediate result: search does not read it."""
    tokens, postings, rankings = (Key.of(kind, ["retrievers.base"]) for kind in ("lsa", "postings", "rankings"))
    store = DiskStore(tmp_path)

    def build(nanos: int, size: int, inner: Callable[[], object] = list) -> Callable[[], Arrays]:
        def work() -> Arrays:
            inner()
            METER.add(nanos)
            clock.now += 1
            return {"a": np.zeros(size)}

        return work

    build_postings = build(5, 100, lambda: store.arrays(tokens, build(2, 1000)))
    for place in (store, DiskStore(tmp_path)):
        with place.account() as costs:
            place.arrays(rankings, build(0, 7, lambda: store.arrays(postings, build_postings)))
        kinds = {cost.kind: (cost.bytes, cost.money) for cost in costs.values()}
        assert kinds == {"lsa": (0, 2e-9), "postings": (800, 5e-9), "rankings": (0, 0)}


def test_what_raises_is_counted_with_the_works_within_it(tmp_path: Path) -> None:
    inner, outer = (Key.of(kind, ["retrievers.base"]) for kind in ("inner", "outer"))
    store = DiskStore(tmp_path)

    def fail() -> Arrays:
        store.arrays(inner, slowly([]))
        time.sleep(WORTH_KEEPING_S)
        raise RuntimeError("no")

    with store.account() as costs, pytest.raises(RuntimeError, match="no"):
        store.arrays(outer, fail)
    assert {cost.kind: cost.reused for cost in costs.values()} == {"outer": False, "inner": False}
    assert costs[outer.digest].seconds >= WORTH_KEEPING_S


def create_key(n: int) -> Key:
    return Key.of("things", ["retrievers.base"], n=n)


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
    assert ": cannot be read (Too many open files); computing it again" in caplog.text
    DiskStore(tmp_path).arrays(KEY, slowly(calls, "third"))
    assert calls == ["built", "again"]


@pytest.mark.parametrize(
    "build", [lambda: {"a": np.ones(3)}, slowly([]), lambda: 1 / 0], ids=["quick", "slow", "fails"]
)
def test_no_lock_is_left_behind(tmp_path: Path, build: Callable[[], Arrays]) -> None:
    with suppress(ZeroDivisionError):
        DiskStore(tmp_path).arrays(KEY, build)
    assert not list(tmp_path.rglob("*.lock"))


@pytest.mark.usefixtures("clock")
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
    monkeypatch.setattr(lock, "REPORT_EVERY_S", 2 * WORTH_KEEPING_S)
    caplog.set_level(logging.INFO, "runner.store")
    begun, end = threading.Event(), time.monotonic() + 60

    def build() -> Arrays:
        begun.set()
        while not caplog.messages and time.monotonic() < end:
            time.sleep(0.01)
        return {"a": np.ones(1)}

    first = threading.Thread(target=lambda: DiskStore(tmp_path).arrays(KEY, build))
    first.start()
    begun.wait()
    assert DiskStore(tmp_path).arrays(KEY, dict)["a"].tolist() == [1]
    first.join()
    assert set(caplog.messages) == {"waiting for things, which another process is computing"}


def test_what_killed_processes_left_goes_with_the_next_entry_of_the_kind(tmp_path: Path) -> None:
    with WARM.Manager() as manager:
        begun = manager.Event()
        process = WARM.Process(target=stop_while_writing, args=(tmp_path, begun))
        process.start()
        begun.wait()
        process.kill()
        process.join()
    assert len(list((tmp_path / "things").iterdir())) == 2  # a half-made entry and a lock
    calls: list[str] = []
    DiskStore(tmp_path).arrays(create_key(1), slowly(calls))
    DiskStore(tmp_path).arrays(KEY, slowly(calls))
    assert len(calls) == 2
    assert sorted(path.name for path in (tmp_path / "things").iterdir()) == sorted([KEY.digest, create_key(1).digest])


def stop_while_writing(folder: Path, begun: Any) -> None:
    save = np.save

    def stop(*arguments: Any, **named: Any) -> None:
        save(*arguments, **named)
        begun.set()
        time.sleep(60)

    np.save = stop
    DiskStore(folder).arrays(KEY, slowly([]))


KEYS = 6
"""How many entries the processes below quarrel about."""


def expected(n: int) -> np.ndarray[Any, Any]:
    return np.arange(n * 1000, n * 1000 + 3000)


def quarrel(folder: Path, seed: int, wrong: Path) -> None:
    """Read, build and remove the same few entries for ever, and leave a file if one is not as it was built."""
    stores.WORTH_KEEPING_S, seals.MAPPED_BYTES, lock.STALE_S = 0, 4000, 1.0
    chance = random.Random(seed)
    while True:
        key = create_key(n := chance.randrange(KEYS))
        stamp = np.full(2000, chance.getrandbits(32))  # of this build, so that a mixture of two is seen
        store = DiskStore(folder)
        with store.account() as costs:
            found = store.arrays(key, lambda n=n, stamp=stamp: {"a": expected(n), "b": stamp, "c": stamp[:10]})  # type: ignore[misc]  # defaults
        store.note_use(costs, "quarrel", "f", f"run {n}")
        if not (np.array_equal(found["a"], expected(n)) and len(found["b"]) == 2000):
            wrong.write_text(f"{n}: {found}")
        if len({*found["b"].tolist(), *found["c"].tolist()}) > 1:
            wrong.write_text(f"{n} is a mixture: {found}")
        if chance.random() < 0.4:
            (entries.remove if chance.random() < 0.5 else entries.remove_damaged)(entries.folder_of(folder, key))


def kill_now_and_then(folder: Path, wrong: Path, kills: int) -> None:
    """Let three processes quarrel, and replace one of them again and again, killed at any moment."""
    chance = random.Random(1)

    def begin(seed: int) -> int:
        if process := os.fork():
            return process
        try:
            quarrel(folder, seed, wrong)
        except Exception:
            wrong.write_text(traceback.format_exc())
        os._exit(1)

    processes = [begin(seed) for seed in range(3)]
    for seed in range(3, 3 + kills):
        time.sleep(chance.uniform(0.01, 0.06))
        process = processes.pop(chance.randrange(3))
        os.kill(process, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL  # it did not end with an error
        processes.append(begin(seed))
    for process in processes:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def test_whoever_is_killed_whenever_what_is_read_is_right(tmp_path: Path) -> None:
    folder, wrong = tmp_path / "store", tmp_path / "wrong"
    together([WARM.Process(target=kill_now_and_then, args=(folder, wrong, 60))])
    assert not wrong.exists(), wrong.read_text()
    left = [Path(entry.place) for entry in entries.list_entries(folder)]
    assert left
    assert [entries.find_damage(entry) for entry in left] == [None] * len(left)
    assert any(entry.uses for entry in entries.list_entries(folder))
    entries.tidy(folder / "things")
    there = sorted((folder / "things").iterdir())
    assert [path for path in there if path.suffix != ".lock" or path.read_text()] == sorted(left)  # unsigned ones wait


def build_each(folder: Path, begin: Any, built: Path, machine: str) -> None:
    if machine:
        processes._place = lambda: machine  # type: ignore[assignment]  # a process of its own
    begin.wait()
    for n in range(12):

        def work(n: int = n) -> Arrays:
            with built.open("a") as file:
                file.write(f"{n}\n")
            time.sleep(WORTH_KEEPING_S * 1.2)
            return {"a": expected(n)}

        assert np.array_equal(DiskStore(folder).arrays(create_key(n), work)["a"], expected(n))


@pytest.mark.parametrize("machines", [["", "", "", ""], ["one", "one", "another", "a third"]], ids=["one", "several"])
def test_what_several_processes_want_is_built_once_by_whatever_machine(tmp_path: Path, machines: list[str]) -> None:
    begin, built = WARM.Barrier(4), tmp_path / "built"
    together(WARM.Process(target=build_each, args=(tmp_path / "store", begin, built, where)) for where in machines)
    assert sorted(map(int, built.read_text().split())) == list(range(12))
    assert len(entries.list_entries(tmp_path / "store")) == 12
    assert not list(tmp_path.rglob("*.lock"))


def together(processes: Iterable[Any]) -> None:
    started = list(processes)
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0] * len(started)


@dataclass(frozen=True)
class Slow:
    """A retriever that takes its time, and leaves a line in a file whenever it searches."""

    searches: Path

    def index(self, corpus: Corpus, store: Store) -> Slow:
        return self

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        with self.searches.open("a") as file:
            file.write("searched\n")
        time.sleep(WORTH_KEEPING_S * 4)
        found = create_empty_rankings(len(queries), k)
        found.documents[:, 0], found.scores[:, 0] = 0, 1.0
        return replace(found, seconds=np.zeros(len(queries), dtype=np.float32))


def search_hybrid(folder: Path, begin: Any, searches: Path, alpha: float) -> None:
    corpus = Corpus(["a", "b"], ["red boat", "blue boat"])
    begin.wait()
    hybrid = Hybrid(parts={"slow": Slow(searches), "lexical": BM25(analyzer=Analyzer())}, alpha=alpha)
    assert search_cached(hybrid, corpus, ["red"], 2, DiskStore(folder)).documents[0, 0] == 0


def test_a_part_that_hybrids_of_several_processes_share_is_searched_once(tmp_path: Path) -> None:
    begin, searches = WARM.Barrier(2), tmp_path / "searches"
    together(
        WARM.Process(target=search_hybrid, args=(tmp_path / "store", begin, searches, alpha)) for alpha in (0.3, 0.6)
    )
    assert searches.read_text() == "searched\n"


def test_a_store_goes_to_another_process_as_its_folder(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    thing = store.share(KEY, lambda: threading.Lock())  # what can't be pickled stays here
    other = pickle.loads(pickle.dumps(store))
    assert other.location == str(tmp_path)
    assert other.share(KEY, object) is not thing


def test_uses_are_noted_once_a_dataset(tmp_path: Path, clock: Clock) -> None:
    def long() -> Arrays:
        clock.now += 2 * WORTH_KEEPING_S
        return {"a": np.ones(1)}

    store = DiskStore(tmp_path)
    for dataset, run in (("scifact", "k1=1"), ("scifact", "k1=2"), ("medquad", "k1=3")):
        with store.account() as costs:
            store.arrays(KEY, long)
            store.arrays(create_key(1), lambda: {"a": np.ones(1)})  # not kept on disk
        store.note_use(costs, dataset, f"fingerprint of {dataset}", run)
    again = DiskStore(tmp_path)
    with again.account() as costs:
        again.arrays(KEY, long)
    again.note_use(costs, "scifact", "fingerprint of scifact", "k1=4")
    (entry,) = entries.list_entries(tmp_path)
    assert [(use.dataset, use.run) for use in sorted(entry.uses, key=lambda use: use.at)] == [
        ("scifact", "k1=1"),
        ("medquad", "k1=3"),
        ("scifact", "k1=4"),
    ]
    assert {use.fingerprint for use in entry.uses} == {"fingerprint of scifact", "fingerprint of medquad"}


def test_live_objects_stay_in_the_process(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    thing = store.share(KEY, object)
    assert store.share(KEY, object) is thing
    assert not list(tmp_path.rglob("*"))
