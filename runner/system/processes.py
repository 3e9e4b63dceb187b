"""Worker processes on this machine, which end with the process that started them, and names of processes."""

from __future__ import annotations

import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

CONTEXT: BaseContext | None = None
"""How a worker starts; None for loky's default, a new interpreter."""

LOOK_FOR_PARENT_S = 1.0
"""Seconds between a worker's checks that its parent process is still running."""

_LARGEST_PID = 2**31 - 1


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def holder() -> str:
    """Return a name for this process, without spaces, that `is_gone` understands."""
    return f"{_place()}.{os.getpid()}"


def is_gone(holder: str) -> bool:
    """Return whether a process has ended; False for a process of another machine, which cannot be checked."""
    place, _, pid = holder.partition(".")
    if place != _place() or not pid.isdecimal() or int(pid) > _LARGEST_PID:
        return False
    import psutil  # os.kill(pid, 0) would send Ctrl-C on Windows

    try:
        status = psutil.Process(int(pid)).status()
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:  # another user's process
        return False
    return bool(status == psutil.STATUS_ZOMBIE)  # it has ended, but its parent has not waited for it yet


@cache
def _place() -> str:
    """Return an id that is equal for processes that can see each other: same machine, boot and PID namespace."""
    from retrievers.store import fingerprint  # loads NumPy, which --help does not need

    parts = [platform.node()]
    with suppress(OSError):  # only Linux has these files; containers may share a name
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8")
        parts += [boot, str(Path("/proc/self/ns/pid").readlink())]
    return fingerprint(*parts)[:12]


def worker_process(threads: int) -> Any:  # noqa: ANN401 (loky has no types)
    """Return an executor with one process, whose libraries use `threads` threads; if it dies, only its call is lost."""
    from joblib.externals.loky import ProcessPoolExecutor

    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    limits = dict.fromkeys(names, str(threads))
    return ProcessPoolExecutor(1, context=CONTEXT, initializer=belong_to, initargs=(os.getpid(),), env=limits)


@contextmanager
def main_module_not_imported_again() -> Iterator[None]:
    """Keep spawned processes from importing the main module, which would run a script without a main guard again.

    Python does not import the main module again if it was started as `python -m PACKAGE`. The main module is marked as
    such while any thread is in the block.
    """
    main = sys.modules["__main__"]
    with _marking:
        if not _original_specs:
            spec = getattr(main, "__spec__", None)
            if spec is None or not spec.name.endswith(".__main__"):
                main.__spec__ = ModuleSpec("runner.__main__", None)
        else:
            spec = _original_specs[-1]
        _original_specs.append(spec)
    try:
        yield
    finally:
        with _marking:
            spec = _original_specs.pop()
            if not _original_specs:
                main.__spec__ = spec


_marking = threading.Lock()
_original_specs: list[ModuleSpec | None] = []
"""The spec of the main module before it was marked, once for each open block."""


def belong_to(parent: int) -> None:
    """Ignore the terminal's signals, which the parent handles, and exit when the parent has ended."""
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)

    def end_with_parent() -> None:
        while os.getppid() == parent and _is_running(parent):
            time.sleep(LOOK_FOR_PARENT_S)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _is_running(parent: int) -> bool:
    """Return whether the parent is running. Only Windows needs this: elsewhere the parent id changes when it ends."""
    if sys.platform != "win32":
        return True
    import psutil

    return psutil.pid_exists(parent)
