"""Worker processes on this machine, each of which ends with the process that started it; and names of processes.

Nothing here knows what they work on.
"""

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
"""How a worker starts; None: in a new interpreter, as loky starts it."""

LOOK_FOR_PARENT_S = 1.0
"""How often a worker looks whether the process that it works for is there."""

_LARGEST_PID = 2**31 - 1


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def holder() -> str:
    """Return a name for this process, without spaces, that `is_gone` understands."""
    return f"{_place()}.{os.getpid()}"


def is_gone(holder: str) -> bool:
    """Return whether a process is known to have ended, which is known only of processes on this machine."""
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
    """Return what processes that see one another share: the machine, its boot, its set of process ids."""
    from retrievers.store import fingerprint  # loads NumPy, which the help does not need

    parts = [platform.node()]
    with suppress(OSError):  # Linux alone has these; containers may share a name
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8")
        parts += [boot, str(Path("/proc/self/ns/pid").readlink())]
    return fingerprint(*parts)[:12]


def worker_process(threads: int) -> Any:  # noqa: ANN401 (loky has no types)
    """Return an executor of one process, whose libraries use so many threads; its death costs its own call alone."""
    from joblib.externals.loky import ProcessPoolExecutor

    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    limits = dict.fromkeys(names, str(threads))
    return ProcessPoolExecutor(1, context=CONTEXT, initializer=_belong_to, initargs=(os.getpid(),), env=limits)


@contextmanager
def main_module_not_imported_again() -> Iterator[None]:
    """Keep spawned processes from importing the program's main module, which would run a script without a guard again.

    Python does not import a main module again that was started as `python -m PACKAGE`: this one is marked as such, as
    long as any thread is in the block.
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
"""What the main module had before it was marked, once for each block that is open."""


def _belong_to(parent: int) -> None:
    """Leave the terminal's signals to the process that ends its workers; end when that process is gone."""
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)

    def end_with_parent() -> None:
        while os.getppid() == parent and _is_running(parent):
            time.sleep(LOOK_FOR_PARENT_S)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _is_running(parent: int) -> bool:
    """Return whether a parent runs, on Windows, where the parent of a process stays the same after its end."""
    if sys.platform != "win32":
        return True
    import psutil

    return psutil.pid_exists(parent)
