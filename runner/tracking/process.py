"""The process that logs: it outlives signals and a crash of the process that works, and ends after it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from runner.tracking.under_way import report_death

CONTEXT: BaseContext = multiprocessing.get_context("spawn")
"""How the process that logs starts. A fork of a process with threads could wait forever for a lock."""


def start_process() -> tuple[Executor, Connection]:
    """Return an executor of one process, and its lifeline: the process ends when the lifeline closes.

    A path that is sent through the lifeline is that of a marker; the process reports what it names if this one dies.
    """
    end, lifeline = CONTEXT.Pipe(duplex=False)
    executor = ProcessPoolExecutor(1, CONTEXT, initializer=_live_on, initargs=(end,))
    with end, _ignore_interrupts():
        executor.submit(os.getpid)  # the process starts here, and inherits this
    return executor, lifeline


class InlineExecutor(Executor):
    """Runs each call at once in this process."""

    def submit(self, call: Any, /, *arguments: Any, **named: Any) -> Future[Any]:  # noqa: ANN401 (any call)
        """Return the future of a call, which is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(call(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that a shutdown or a closing terminal sends to all processes of a command."""


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Let a process that starts in the block inherit that no signal but SIGKILL ends it; delay signals to this one."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING) if hasattr(signal, "pthread_sigmask") else None
    main = threading.current_thread() is threading.main_thread()  # only that one receives Ctrl-C
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
        if blocked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _live_on(lifeline: Connection) -> None:
    """Ignore signals, which the process that works handles, and end once that process closes the lifeline or dies."""
    for number in (signal.SIGINT, *_ENDING):
        signal.signal(number, signal.SIG_IGN)

    def end_with_lifeline() -> None:
        marker: Path | None = None
        with suppress(EOFError, OSError):
            while True:
                marker = lifeline.recv()
                from runner.reports import console  # noqa: F401 (loaded now: at a death there is no time)
        if marker is not None:
            report_death(marker)
        os._exit(1)

    threading.Thread(target=end_with_lifeline, daemon=True).start()
