"""Locks between processes, also on different machines: files in a folder, or objects in an object store.

A lock is created exclusively. This also works in network folders, where `flock` is often missing or limited to one
machine. The lock contains the name of its holder, which touches it regularly. Another process takes the lock over if
the holder is known to be dead, or has not touched the lock for `STALE_S` seconds by the clock of the waiting process.
So two processes may hold the lock at the same time: it only saves work, and the guarded work must be correct without
it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from runner.system.processes import holder, is_gone

BEAT_S = 4.0
"""Seconds between two touches of a lock by its holder."""

STALE_S = 30.0
"""Seconds without a touch after which a lock is taken over."""

NAMELESS_S = 1.0
"""The same for a lock without a name, whose holder probably died between creating the lock and writing its name."""

REPORT_EVERY_S = 5.0
"""Seconds between two reports that this process is waiting for another one."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.25
"""The first and the longest pause between two attempts to take a lock, in seconds."""

log = logging.getLogger("runner.store")


class Lock(Protocol):
    """A lock: a hashable value with four operations, which raise `OSError`."""

    def create(self, text: str) -> bool:
        """Create the lock with a text that names its holder; return False if it exists."""
        ...

    def read(self) -> tuple[str, object] | None:
        """Return the text of the lock and a value that changes with each touch; None if there is no lock."""
        ...

    def touch(self, text: str) -> None:
        """Show that the holder is alive; `text` is the text of the lock."""
        ...

    def remove(self) -> None:
        """Remove the lock if it exists."""
        ...


@dataclass(frozen=True)
class LockFile:
    """A lock that is a file."""

    path: Path

    def create(self, text: str) -> bool:
        """Create the file and its folder."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            file = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return False
        try:
            os.write(file, text.encode())
        except OSError:
            self.path.unlink()
            raise
        finally:
            os.close(file)
        return True

    def read(self) -> tuple[str, object] | None:
        """Return the content of the file and the time of its last modification."""
        try:
            # Opening the file makes a network file system refresh its status.
            with self.path.open(encoding="utf-8", errors="replace") as file:
                return file.read(), os.fstat(file.fileno()).st_mtime_ns
        except FileNotFoundError:
            return None

    def touch(self, text: str) -> None:
        """Set the time of the last modification."""
        os.utime(self.path)

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


@contextmanager
def alone(place: Path | Lock, what: str, wait: bool = True) -> Iterator[bool]:
    """Run the block in one process at a time; if no lock can be created, run it without one.

    Yield True; if `wait` is false and another process holds the lock, yield False.
    """
    lock: Lock = LockFile(place) if isinstance(place, Path) else place
    mine = f"{holder()} {uuid.uuid4().hex}"
    try:
        acquired = _acquire(lock, mine, what, wait)
    except OSError:
        yield True
        return
    if not acquired:
        yield False
        return
    try:
        _HEART.hold(lock, mine)
        yield True
    finally:
        _HEART.drop(lock)
        with suppress(OSError):
            if _who(lock) == mine:  # another process may have taken it over while this one was suspended
                lock.remove()


class _Heart:
    """Touches the locks that this process holds, in a thread that starts with the first lock."""

    def __init__(self) -> None:
        self._held: dict[Lock, str] = {}
        self._thread: threading.Thread | None = None

    def hold(self, lock: Lock, mine: str) -> None:
        """Start touching a lock; stop when another process has taken it over."""
        self._held[lock] = mine
        if self._thread is None or not self._thread.is_alive():  # threads do not survive a fork
            self._thread = threading.Thread(target=self._beat, name="locks", daemon=True)
            self._thread.start()

    def drop(self, lock: Lock) -> None:
        """Stop touching a lock."""
        self._held.pop(lock, None)

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_S)
            for lock, mine in list(self._held.items()):
                with suppress(OSError):
                    if _who(lock) == mine and lock in self._held:
                        lock.touch(mine)


_HEART = _Heart()


def _acquire(lock: Lock, mine: str, what: str, wait: bool) -> bool:
    """Create a lock or take over that of a dead process; return False if it is held and `wait` is false."""
    seen: tuple[str, object] | None = None
    since = reported = time.monotonic()
    pause = FIRST_PAUSE_S
    while not lock.create(mine):
        state, now = lock.read(), time.monotonic()
        if state != seen:
            seen, since = state, now
        if state is not None:
            name, _, _ = state[0].partition(" ")
            if is_gone(name) or now - since >= (STALE_S if name else NAMELESS_S):
                lock.remove()
                continue
        if not wait:
            return False
        if now - reported >= REPORT_EVERY_S:
            reported = now
            log.info("waiting for %s, which another process is computing", what)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
    return True


def _who(lock: Lock) -> str | None:
    state = lock.read()
    return state and state[0]
