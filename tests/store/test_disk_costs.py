"""What the entries of a store on disk cost, and which datasets use them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from retrievers.store import Arrays, Key
from retrievers.work import LSA, METER, POSTINGS, RANKINGS, WorkKind
from runner.store import entries
from runner.store.base import WORTH_KEEPING_S
from runner.store.disk import DiskStore
from tests.store.building import KEY, Clock, create_key, slowly

INNER = WorkKind("inner", "index")
OUTER = WorkKind("outer", "index")


def test_costs_are_exclusive_and_count_shared_work_once(tmp_path: Path, clock: Clock) -> None:
    inner = Key.of(INNER, "retrievers.search", n=1)
    outer = [Key.of(OUTER, "retrievers.search", n=n) for n in (1, 2)]
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
    tokens, postings, rankings = (Key.of(kind, "retrievers.search") for kind in (LSA, POSTINGS, RANKINGS))
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
    inner, outer = (Key.of(kind, "retrievers.search") for kind in (INNER, OUTER))
    store = DiskStore(tmp_path)

    def fail() -> Arrays:
        store.arrays(inner, slowly([]))
        time.sleep(WORTH_KEEPING_S)
        raise RuntimeError("no")

    with store.account() as costs, pytest.raises(RuntimeError, match="no"):
        store.arrays(outer, fail)
    assert {cost.kind: cost.reused for cost in costs.values()} == {"outer": False, "inner": False}
    assert costs[outer.digest].seconds >= WORTH_KEEPING_S


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
