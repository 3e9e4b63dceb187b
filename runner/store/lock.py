"""One process at a time, wherever it runs: locks that are files in a folder which machines may share.

A lock is a file that only one can create, which holds on a network's folder too, where `flock` is often missing or ends
at the machine. It names its holder, who touches it as long as it lives. It gives way when the holder is known to be
dead, or was not seen to touch it for a while by the clock of who waits: nobody waits for ever. So two may hold it at a
time; it is there to save work, and what it guards must be right without it.
"""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from retrievers.store import fingerprint

BEAT_S = 4.0
"""How often who holds a lock touches it."""

STALE_S = 30.0
"""For how long a lock is not touched before it gives way."""

NAMELESS_S = 1.0
"""The same for a lock without a name, whose holder ended, or so it seems, between creating it and signing it."""

TOLD_EVERY_S = 5.0
"""How often it is said that another process is waited for."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.25
"""How long who waits looks away, at first and at most."""

log = logging.getLogger("runner.store")


def holder() -> str:
    """Return a name for this process, without spaces, that `is_gone` understands."""
    return f"{_place()}.{os.getpid()}"


def is_gone(holder: str) -> bool:
    """Tell whether a process is known to have ended, which is known of those on this machine only."""
    place, _, pid = holder.partition(".")
    if place != _place():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError, ValueError):  # another user's, or nobody's name
        return False
    with suppress(OSError):  # it may have ended without its parent having asked for it yet
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False


@contextmanager
def alone(lock: Path, what: str) -> Iterator[None]:
    """Let one process at a time into the block; where no lock can be made, go ahead without."""
    mine = f"{holder()} {uuid.uuid4().hex}"
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        _acquire(lock, mine, what)
    except OSError:
        yield
        return
    try:
        _HEART.hold(lock, mine)
        yield
    finally:
        _HEART.drop(lock)
        with suppress(OSError):
            if _who(lock) == mine:  # it gave way to another if this process was stopped for a while
                lock.unlink()


class _Heart:
    """Touches the locks that this process holds, in a thread that is made for the first of them."""

    def __init__(self) -> None:
        self._held: dict[Path, str] = {}
        self._thread: threading.Thread | None = None

    def hold(self, lock: Path, mine: str) -> None:
        """Begin to touch a lock, as long as it is this one."""
        self._held[lock] = mine
        if self._thread is None or not self._thread.is_alive():  # it is not alive in a process that was forked
            self._thread = threading.Thread(target=self._beat, name="locks", daemon=True)
            self._thread.start()

    def drop(self, lock: Path) -> None:
        """Touch a lock no more."""
        self._held.pop(lock, None)

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_S)
            for lock, mine in list(self._held.items()):
                with suppress(OSError):
                    if _who(lock) == mine:
                        os.utime(lock)


_HEART = _Heart()


@cache
def _place() -> str:
    """Return what is the same for processes that see one another: the machine, its boot, its set of process ids."""
    told = [platform.node()]
    with suppress(OSError):  # Linux alone has these; containers may share a name
        told += [Path("/proc/sys/kernel/random/boot_id").read_text(), str(Path("/proc/self/ns/pid").readlink())]
    return fingerprint(*told)[:12]


def _acquire(lock: Path, mine: str, what: str) -> None:
    """Create a lock, waiting for it to go, or to be left behind."""
    seen: tuple[str, int] | None = None
    since = told = time.monotonic()
    pause = FIRST_PAUSE_S
    while not _created(lock, mine):
        state, now = _state(lock), time.monotonic()
        if state != seen:
            seen, since = state, now
        if state is not None:
            name, _, _ = state[0].partition(" ")
            if is_gone(name) or now - since >= (STALE_S if name else NAMELESS_S):
                lock.unlink(missing_ok=True)
                continue
        if now - told >= TOLD_EVERY_S:
            told = now
            log.info("waiting for %s, which another process makes", what)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)


def _created(lock: Path, mine: str) -> bool:
    try:
        file = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except FileExistsError:
        return False
    try:
        os.write(file, mine.encode())
    except OSError:
        lock.unlink()
        raise
    finally:
        os.close(file)
    return True


def _state(lock: Path) -> tuple[str, int] | None:
    """Return who holds a lock and when it was touched last, None if it is gone."""
    try:
        with lock.open(errors="replace") as file:  # opening it makes a network's file system look again
            return file.read(), os.fstat(file.fileno()).st_mtime_ns
    except FileNotFoundError:
        return None


def _who(lock: Path) -> str | None:
    state = _state(lock)
    return state and state[0]
