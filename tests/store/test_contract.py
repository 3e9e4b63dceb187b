"""What every store promises, wherever its entries are: in a folder, in memory behind fsspec, or in an object store."""

from __future__ import annotations

import pickle
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import fsspec
import numpy as np
import pytest

from benchmarks.stand_in.object_stores import SERVERS
from retrievers.base import create_empty_rankings
from retrievers.store import ENGINE_BYTES, Arrays, Key, check_rows
from retrievers.stored_rankings import UnkeptRankings, unpack_rankings
from retrievers.work import WorkKind
from runner.config.objects import ConfigError
from runner.store import disk, lock, seals
from runner.store.disk import DiskStore
from runner.store.lock import LockFile, alone
from runner.store.opening import open_store
from runner.store.remote import LockObject, ObjectShelf
from runner.store.settings import StoreSettings
from runner.system.object_stores import Objects
from runner.system.processes import holder
from runner.testing.stores import check_shelf
from tests.object_stores import serve_bucket

Machine = Callable[[str], DiskStore]
"""Opens the same store as another machine would, which is given by its name."""


def key(n: int = 0, kind: str = "small things") -> Key:
    return Key.of(WorkKind(kind, "index"), "retrievers.search", n=n, name="ünïcode / key")


def arrays_of(n: int) -> Arrays:
    return {"a": np.arange(n, n + 2000), "empty": np.zeros((0, 3)), "scalar": np.array(2.5, dtype=np.float32)}


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    yield from serve_bucket()


@pytest.fixture(scope="module")
def gs() -> Iterator[str]:
    yield from serve_bucket("gs")


@pytest.fixture(scope="module")
def az() -> Iterator[str]:
    yield from serve_bucket("az")


@pytest.fixture(params=["folder", "memory", *SERVERS])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the place of a new store."""
    if request.param == "folder":
        return str(tmp_path / "shared")
    root = "memory://store" if request.param == "memory" else request.getfixturevalue(request.param)
    return f"{root}/{uuid.uuid4().hex}"


@pytest.fixture
def machine(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)  # everything is worth keeping
    monkeypatch.chdir(tmp_path)

    def start(name: str) -> DiskStore:
        store = open_store(StoreSettings(address, str(tmp_path / name)))
        assert isinstance(store, DiskStore)
        return store

    return start


@pytest.fixture(autouse=True)
def _in_no_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))


def fail() -> Arrays:
    raise AssertionError("built although it is kept")


def same(one: Arrays, other: Arrays) -> bool:
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and np.array_equal(one[name], other[name]) for name in one
    )


def test_what_one_machine_built_another_finds(machine: Machine) -> None:
    built = machine("one").arrays(key(), lambda: arrays_of(5))
    other = machine("two")
    with other.account() as costs:
        read = other.arrays(key(), fail)
    assert same(built, read)
    assert not any(array.flags.writeable for array in read.values())
    assert costs[key().digest].reused


def test_a_store_that_was_sent_elsewhere_is_the_same(machine: Machine) -> None:
    machine("one").arrays(key(), lambda: arrays_of(5))
    assert same(pickle.loads(pickle.dumps(machine("one"))).arrays(key(), fail), arrays_of(5))


def test_a_shelf_keeps_the_contract(machine: Machine) -> None:
    check_shelf(lambda: machine("one").shelf)


def test_an_entry_that_is_sent_in_parts_is_written_once(machine: Machine) -> None:
    large = {"a": np.arange(1 << 20)}  # gcsfs sends 5 MiB and more by a resumable upload
    machine("one").shelf.write(key(), large, {})
    machine("two").shelf.write(key(), {"a": np.zeros(1 << 20, dtype=np.int64)}, {})
    assert same(machine("three").arrays(key(), fail), large)


def test_a_build_that_raises_leaves_nothing(machine: Machine) -> None:
    with pytest.raises(AssertionError):
        machine("one").arrays(key(), fail)
    assert machine("two").list_entries() == []
    assert same(machine("two").arrays(key(), lambda: arrays_of(3)), arrays_of(3))


def test_unsettled_rankings_are_returned_and_rebuilt_each_time(machine: Machine) -> None:
    store, built = machine("one"), [replace(create_empty_rankings(3, 2), settled=False) for _ in range(4)]
    waiting = list(built)
    for rankings in built[:2]:
        with store.account() as costs:
            assert unpack_rankings(store.arrays(key(), lambda: UnkeptRankings(waiting.pop(0)))) is rankings
        assert not costs[key().digest].reused
    for rankings in built[2:]:
        with store.account() as costs:
            assert store.share(key(1), lambda: waiting.pop(0)) is rankings
        assert not costs[key(1).digest].reused
    assert not store.list_entries()
    assert same(machine("two").arrays(key(), lambda: arrays_of(5)), arrays_of(5))


def test_entries_are_listed_with_who_used_them(machine: Machine) -> None:
    store = machine("one")
    for n in (1, 2):
        with store.account() as costs:
            store.arrays(key(n), lambda n=n: arrays_of(n))  # type: ignore[misc]  # a default
        store.note_use(costs, f"dataset {n}", f"print {n}", f"run {n}")
    store.note_use(costs, "dataset 3", "print 3", "run 3")
    first, second = machine("two").list_entries()
    assert (first.kind, first.digest, first.parts) == ("small things", key(1).digest, dict(key(1).parts))
    assert [(use.dataset, use.run) for use in first.uses] == [("dataset 1", "run 1")]
    assert {(use.dataset, use.run) for use in second.uses} == {("dataset 2", "run 2"), ("dataset 3", "run 3")}
    assert first.bytes > sum(array.nbytes for array in arrays_of(1).values())
    assert 0 <= time.time() - first.made < 600
    assert first.used <= second.used


def test_long_manifests_and_bytes_on_servers_are_listed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.store.remote._HEAD_BYTES", 600)
    machine("one").arrays(key(), lambda: {ENGINE_BYTES: np.array(10**9)})
    (entry,) = machine("two").list_entries()
    assert 10**9 < entry.bytes < 10**9 + 10**5
    assert entry.parts == dict(key().parts)


def test_a_removed_entry_is_built_again(machine: Machine) -> None:
    one, two = machine("one"), machine("two")
    with one.account() as costs:
        one.arrays(key(), lambda: arrays_of(1))
    one.note_use(costs, "d", "f", "r")
    (entry,) = two.list_entries()
    two.remove(entry)
    two.tidy()
    assert two.list_entries() == []
    two.remove(entry)  # another process was quicker
    assert same(machine("two").arrays(key(), lambda: arrays_of(2)), arrays_of(2))
    assert machine("three").list_entries()[0].uses == ()


def damage(store: DiskStore) -> None:
    """Flip a bit of the only entry."""
    shelf = store.shelf
    if isinstance(shelf, ObjectShelf):
        (status,) = (s for s in shelf._objects.list_all() if s.name.endswith(".tar"))
        content = bytearray(shelf._objects.read(status.name))
        content[len(content) // 2] ^= 1
        shelf._objects.write(status.name, bytes(content))
    else:
        file = next(Path(store.location).rglob("a.npy"))
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)


def test_a_damaged_entry_is_reported_and_built_again(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    machine("one").arrays(key(), lambda: arrays_of(1))
    damage(machine("one"))
    two = machine("two")
    (entry,) = two.list_entries()
    assert "has changed since it was written" in (two.find_damage(entry) or "")
    assert same(two.arrays(key(), lambda: arrays_of(2)), arrays_of(2))
    assert caplog.text.count("; computing it again") == 1
    (entry,) = two.list_entries()
    assert two.find_damage(entry) is None
    assert same(machine("three").arrays(key(), fail), arrays_of(2))


def swap(store: DiskStore, one: Key, other: Key) -> None:
    """Give each of two entries the place of the other."""
    shelf = store.shelf
    if isinstance(shelf, ObjectShelf):
        names = [shelf.place_of(of).removeprefix(shelf._address("")) for of in (one, other)]
        contents = [shelf._objects.read(name) for name in names]
        for name, content in zip(names, reversed(contents), strict=True):
            shelf._objects.write(name, content)
    else:
        first, second = (Path(shelf.place_of(of)) for of in (one, other))
        first.rename(first.with_name("aside"))
        second.rename(first)
        first.with_name("aside").rename(second)


@pytest.mark.parametrize("kind", ["small things", "other things"])
def test_the_entry_of_another_key_is_reported_and_built_again(
    kind: str, machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = key(1), key(2, kind)
    for n, of in enumerate((one, other), start=1):
        machine("one").arrays(of, lambda n=n: arrays_of(n))  # type: ignore[misc]  # a default
    swap(machine("one"), one, other)
    two = machine("two")
    names = {of.digest: f"{of.kind.name.replace(' ', '_')}/{of.digest}" for of in (one, other)}
    wrong = {entry.digest: two.find_damage(entry) for entry in two.list_entries()}
    assert wrong == {
        one.digest: f"it is a copy of {names[other.digest]}",
        other.digest: f"it is a copy of {names[one.digest]}",
    }
    for n, of in enumerate((one, other), start=1):
        assert same(two.arrays(of, lambda n=n: arrays_of(n)), arrays_of(n))  # type: ignore[misc]  # a default
    assert caplog.text.count("(it is a copy of ") == caplog.text.count("; computing it again") == 2
    for n, of in enumerate((one, other), start=1):
        assert same(machine("three").arrays(of, fail), arrays_of(n))
    assert [two.find_damage(entry) for entry in two.list_entries()] == [None, None]


def test_the_copy_of_another_entry_on_this_machine_is_not_used(machine: Machine) -> None:
    for n in (1, 2):
        machine("one").arrays(key(n), lambda n=n: arrays_of(n))  # type: ignore[misc]  # a default
    shelf = machine("one").shelf
    if isinstance(shelf, ObjectShelf):
        first, second = (shelf._copies.path_of(key(n)) for n in (1, 2))
        shutil.rmtree(first)
        shutil.copytree(second, first)
        assert same(machine("one").arrays(key(1), fail), arrays_of(1))


def test_an_entry_with_the_parts_of_another_key_is_built_again(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    forged = replace(key(2), digest=key(1).digest)
    machine("one").shelf.write(forged, arrays_of(2), {})
    two = machine("two")
    assert same(two.arrays(key(1), lambda: arrays_of(1)), arrays_of(1))
    assert caplog.text.count("damaged (it was built from other parts: n); computing it again") == 1
    assert same(machine("three").arrays(key(1), fail), arrays_of(1))


def test_arrays_that_cannot_be_those_of_the_key_are_built_again(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    checked = key().with_check(check_rows, 2005, ("a",))
    machine("one").shelf.write(key(), arrays_of(5), {})
    built = {"a": np.arange(2005)}
    assert same(machine("two").arrays(checked, lambda: built), built)
    assert caplog.text.count("a has the shape (2000,) instead of 2,005 rows); computing it again") == 1
    assert same(machine("three").arrays(checked, fail), built)


def test_an_entry_of_version_0_2_which_lacks_its_digest_is_used(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        dumps = seals.dumps
        patch.setattr(seals, "dumps", lambda content, *more: dumps({k: v for k, v in content.items() if k != "digest"}))
        machine("one").arrays(key(), lambda: arrays_of(1))
    assert same(machine("two").arrays(key(), fail), arrays_of(1))
    assert [machine("two").find_damage(entry) for entry in machine("two").list_entries()] == [None]


def test_only_damaged_entries_are_removed_on_request(machine: Machine) -> None:
    one = machine("one")
    one.arrays(key(), lambda: arrays_of(1))
    (entry,) = one.list_entries()
    one.remove(entry, only_damaged=True)
    assert len(one.list_entries()) == 1
    damage(one)
    one.remove(entry, only_damaged=True)
    assert one.list_entries() == []
    assert one.find_damage(entry) is None


def test_machines_build_an_entry_once(machine: Machine) -> None:
    builds: list[str] = []

    def build(name: str) -> Arrays:
        builds.append(name)
        time.sleep(0.1)
        return arrays_of(1)

    threads = [
        threading.Thread(target=lambda store=store, n=n: store.arrays(key(), lambda: build(n)))  # type: ignore[misc]  # defaults
        for n in ("one", "two", "three")
        for store in [machine(n)]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 1


def test_an_entry_that_another_machine_builds_is_not_waited_for(machine: Machine) -> None:
    one, two = machine("one"), machine("two")

    def build() -> Arrays:
        assert two.arrays_unless_busy(key(), fail) is None
        assert two.find_missing([key(), key(2)]) == {key().digest, key(2).digest}
        return arrays_of(1)

    assert same(one.arrays_unless_busy(key(), build) or {}, arrays_of(1))
    assert same(two.arrays_unless_busy(key(), fail) or {}, arrays_of(1))
    assert machine("three").find_missing([key(), key(2)]) == {key(2).digest}


def test_machines_take_turns_in_a_sweep(machine: Machine) -> None:
    inside: list[str] = []

    def enter(store: DiskStore, name: str) -> None:
        with store.alone_in_sweep("a" * 32):
            inside.append(name)
            time.sleep(0.05)
            inside.append(name)

    threads = [threading.Thread(target=enter, args=(machine(name), name)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inside in (["one"] * 2 + ["two"] * 2, ["two"] * 2 + ["one"] * 2)


@pytest.fixture
def held(address: str) -> lock.Lock:
    """Return a lock, which nobody holds."""
    if "://" in address:
        return LockObject(Objects(address), ".locks/x")
    return LockFile(Path(address) / "x.lock")


def test_a_lock_is_created_once_and_changes_when_it_is_touched(held: lock.Lock) -> None:
    assert held.read() is None
    assert held.create("me 1")
    assert not held.create("you 2")
    before = held.read()
    time.sleep(0.02)  # the resolution of a file system's times
    held.touch("me 1")
    after = held.read()
    assert before is not None
    assert after is not None
    assert before[0] == after[0] == "me 1"
    assert before[1] != after[1]
    held.remove()
    held.remove()
    assert held.read() is None


def test_a_lock_of_another_machine_gives_way_after_a_while(held: lock.Lock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "STALE_S", 0.1)
    held.create("another-machine.1 x")
    with alone(held, "a thing"):
        assert (held.read() or ("",))[0].startswith(holder())
    assert held.read() is None


@pytest.mark.parametrize("protocol", SERVERS)
def test_a_store_out_of_reach_is_one_line(protocol: str, request: pytest.FixtureRequest) -> None:
    assert open_store(StoreSettings(f"{request.getfixturevalue(protocol)}/empty")).list_entries() == []
    missing = f"{protocol}://no-such-bucket-here/x"
    with pytest.raises(
        ConfigError, match=rf"^store\.path={missing}( at http://\S+)?: cannot be listed \(.*\); check the"
    ):
        open_store(StoreSettings(missing))


@pytest.mark.parametrize("address", ["https://example.org/x", "file:///tmp/x", "s3:/bucket", "s3://"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match="set a local path, or an address such as s3://BUCKET/FOLDER, gs://BUCKET"):
        StoreSettings(address)


def test_copies_are_in_the_cache_folder_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)
    store = open_store(StoreSettings("memory://store/x"))
    store.arrays(key(), lambda: arrays_of(1))
    assert list((tmp_path / "home" / "retrieval-runner" / "store" / "memory" / "store" / "x").glob("*/*/a.npy"))
    assert str(store.run_files.folder) == "mlruns"


def test_a_server_that_does_not_answer_costs_one_attempt_and_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)
    store = open_store(StoreSettings("memory://silent/x", str(tmp_path)))
    attempts: list[str] = []

    def fail_to_connect(path: str, *_: object, **__: object) -> None:
        attempts.append(path)
        raise RuntimeError("no route to host")

    system = fsspec.filesystem("memory", use_listings_cache=False)
    for name in ("cat_file", "get_file", "pipe_file", "put_file", "rm_file"):
        monkeypatch.setattr(system, name, fail_to_connect)
    for n in range(3):
        assert same(store.arrays(key(n), lambda n=n: arrays_of(n)), arrays_of(n))  # type: ignore[misc]  # a default
    assert len(attempts) == 1
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "cannot be read (silent did not answer); computing it again", "silent did not answer",
    ]  # fmt: skip
    monkeypatch.setattr("runner.system.object_stores._DOWN_UNTIL", {})
    monkeypatch.undo()
    monkeypatch.setattr(disk, "WORTH_KEEPING_S", 0.0)
    assert same(DiskStore(tmp_path).arrays(key(2), fail), arrays_of(2))  # they are kept on this machine
