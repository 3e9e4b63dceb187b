"""One process at a time, wherever it runs: locks that are files in a folder, or objects, which machines may share.

A lock is something that only one process can create, which also works in a network folder, where `flock` is often
missing or limited to one machine. It names its holder, which touches it as long as it lives. The lock is taken over
when its holder is known to be dead, or has not touched it for a while by the waiting process's clock. So two processes
may hold it at the same time: it saves work, and what it guards must be correct without it.
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

from runner.processes import holder, is_gone

BEAT_S = 4.0
"""The interval at which a holder touches its lock."""

STALE_S = 30.0
"""The age of the last touch from which a lock is taken over."""

NAMELESS_S = 1.0
"""The same for a lock without a name, whose holder seems to have ended between creating and signing it."""

REPORT_EVERY_S = 5.0
"""The interval at which waiting for another process is reported."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.25
"""The pause between two attempts to take a lock, at first and at most."""

log = logging.getLogger("runner.store")


class Lock(Protocol):
    """A lock as a value that can be hashed: four operations, which raise `OSError`."""

    def create(self, text: str) -> bool:
        """Create the lock with a text that names its holder; return False if it exists."""
        ...

    def read(self) -> tuple[str, object] | None:
        """Return the text of the lock, and something that changes when it is touched; None if there is no lock."""
        ...

    def touch(self, text: str) -> None:
        """Show that the holder lives; `text` is that of the lock."""
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
            # Opening it makes a network file system look again.
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
    """Run the block in one process at a time; where no lock can be created, run it without.

    Yield True, or without `wait` False if another process holds the lock.
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
            if _who(lock) == mine:  # another process took it over if this one was stopped for a while
                lock.remove()


class _Heart:
    """Touches the locks that this process holds, in a thread that starts with the first of them."""

    def __init__(self) -> None:
        self._held: dict[Lock, str] = {}
        self._thread: threading.Thread | None = None

    def hold(self, lock: Lock, mine: str) -> None:
        """Start touching a lock, as long as it is this process's."""
        self._held[lock] = mine
        if self._thread is None or not self._thread.is_alive():  # it is not alive in a forked process
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
    """Create a lock, or take over that of a dead process; if asked, wait for either. Return whether it was created."""
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
