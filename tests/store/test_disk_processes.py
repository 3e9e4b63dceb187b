"""Several processes with one store on disk: each entry is built once, and a killed process does no harm."""

from __future__ import annotations

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
from typing import Any

import numpy as np
import pytest

from retrievers.base import Corpus, Rankings, create_empty_rankings
from retrievers.composed.fusion import Hybrid
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.search import search_cached
from retrievers.store import Arrays, NoStore, Store
from runner.store import disk as stores
from runner.store import entries, lock, seals
from runner.store.base import WORTH_KEEPING_S
from runner.store.disk import DiskStore
from runner.system import processes
from tests.store.building import KEY, create_key, slowly
from tests.warm import WARM


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


def test_reads_are_correct_even_if_processes_are_killed_at_any_time(tmp_path: Path) -> None:
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
