from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runner.store import lock
from runner.store.lock import alone
from runner.system.processes import _place, holder, is_gone
from tests.warm import WARM

ELSEWHERE = "another-host.4711"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "thing.lock"


@contextmanager
def child(target: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """Run a function in another process, which is killed at the end."""
    process = WARM.Process(target=target, args=arguments, daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def hold(file: Path, begun: Any) -> None:
    with alone(file, "a thing"):
        begun.set()
        time.sleep(60)


def count(file: Path, counter: Path, times: int) -> None:
    for _ in range(times):
        with alone(file, "a thing"):
            n = int(counter.read_text())
            time.sleep(0.001)
            counter.write_text(str(n + 1))


def test_one_process_at_a_time_is_in_the_block(file: Path, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    processes = [WARM.Process(target=count, args=(file, counter, 20)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert counter.read_text() == "80"
    assert not file.exists()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_lock_of_a_process_that_was_killed_gives_way_at_once(
    file: Path, how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = WARM.Event()
    with child(hold, file, begun) as process:
        begun.wait()
        os.kill(process.pid, how)
        process.join()
        assert file.exists()
        clock = Clock(lambda _: None)
        monkeypatch.setattr(lock, "time", clock)
        with alone(file, "a thing"):
            assert clock.now == 0


def test_a_killed_process_counts_as_gone_before_it_is_reaped() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = f"{_place()}.{process.pid}"
    assert not is_gone(name)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is not forgotten
    assert is_gone(name)
    process.communicate()
    assert is_gone(name)


@pytest.mark.parametrize("name", ["", ELSEWHERE, "x", "{here}.{me}", "{here}.x", f"{{here}}.{2**70}"])
def test_who_is_not_known_to_be_dead_is_not_gone(name: str) -> None:
    assert not is_gone(name.format(here=_place(), me=os.getpid()))


class Clock:
    """A time that passes when somebody waits, and what is done whenever it does."""

    def __init__(self, tick: Callable[[float], None]) -> None:
        self.now, self._tick = 0.0, tick

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        if threading.current_thread() is not threading.main_thread():  # what touches locks lives in another time
            return time.sleep(seconds)
        self.now += seconds
        return self._tick(self.now)


@pytest.fixture
def left(file: Path) -> Path:
    """Return a lock of another machine's process; the clocks of machines differ."""
    file.parent.mkdir()
    file.write_text(f"{ELSEWHERE} abc")
    os.utime(file, (0, 0))
    return file


@pytest.mark.parametrize(
    ("text", "after"), [(f"{ELSEWHERE} abc", lock.STALE_S), ("\0garbage\n", lock.STALE_S), ("", lock.NAMELESS_S)]
)
def test_an_untouched_lock_expires(left: Path, text: str, after: float, monkeypatch: pytest.MonkeyPatch) -> None:
    left.write_text(text)
    clock = Clock(lambda _: None)
    monkeypatch.setattr(lock, "time", clock)
    with alone(left, "a thing"):
        assert after <= clock.now <= after + lock.LONGEST_PAUSE_S
        assert left.read_text().startswith(holder())
    assert not left.exists()


def test_a_lock_that_is_touched_is_waited_for(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def touch(now: float) -> None:
        if now < 10 * lock.STALE_S:
            os.utime(left, (int(now / lock.BEAT_S),) * 2)

    clock = Clock(touch)
    monkeypatch.setattr(lock, "time", clock)
    with alone(left, "a thing"):
        assert 10.5 * lock.STALE_S < clock.now < 11.5 * lock.STALE_S


def test_a_lock_that_is_given_back_is_taken_soon(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(lambda now: left.unlink() if now > 7 and left.exists() else None)
    monkeypatch.setattr(lock, "time", clock)
    with alone(left, "a thing"):
        assert 7 < clock.now <= 7 + 2 * lock.LONGEST_PAUSE_S


def held_with_a_quick_heart(file: Path, begun: Any) -> None:
    lock.BEAT_S = 0.02
    hold(file, begun)


def test_who_holds_a_lock_touches_it(file: Path) -> None:
    begun = WARM.Event()
    with child(held_with_a_quick_heart, file, begun):
        begun.wait()
        seen = set()
        for _ in range(200):
            seen.add(file.stat().st_mtime_ns)
            if len(seen) > 3:
                break
            time.sleep(0.02)
        assert len(seen) > 3


def test_a_lock_that_gave_way_is_not_taken_from_who_has_it_now(file: Path) -> None:
    with alone(file, "a thing"):
        file.write_text(f"{ELSEWHERE} abc")
    assert file.read_text() == f"{ELSEWHERE} abc"


def test_work_goes_ahead_where_a_lock_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("a file")
    with alone(tmp_path / "blocked" / "thing.lock", "a thing") as entered:
        assert entered
    assert (tmp_path / "blocked").read_text() == "a file"


def test_a_lock_that_cannot_be_written_is_not_left_empty(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.parent.mkdir()

    def full(*_: object) -> int:
        assert file.exists()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with alone(file, "a thing"):
        assert not file.exists()


@pytest.mark.parametrize("error", [None, RuntimeError])
def test_no_lock_is_left_behind(file: Path, error: type[Exception] | None) -> None:
    try:
        with alone(file, "a thing"):
            assert file.exists()
            if error:
                raise error
    except RuntimeError:
        pass
    assert not file.exists()
