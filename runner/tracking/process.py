"""The logging process: it ignores signals, reports a crash of the working process, and ends when that has ended."""

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
"""How the logging process starts. Forking a process with threads could leave a lock held forever."""


def start_process() -> tuple[Executor, Connection]:
    """Return an executor with one process, and its lifeline: the process ends when the lifeline closes.

    The path of a marker may be sent through the lifeline; if this process dies, the combination that the marker names
    is reported.
    """
    end, lifeline = CONTEXT.Pipe(duplex=False)
    executor = ProcessPoolExecutor(1, CONTEXT, initializer=_live_on, initargs=(end,))
    with end, _ignore_interrupts():
        executor.submit(os.getpid)  # the process starts here and inherits the ignored signals
    return executor, lifeline


class InlineExecutor(Executor):
    """Runs each call at once in this process."""

    def submit(self, call: Any, /, *arguments: Any, **named: Any) -> Future[Any]:  # noqa: ANN401 (any call)
        """Run a call and return its completed future."""
        future: Future[Any] = Future()
        try:
            future.set_result(call(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The signals that a shutdown or a closing terminal sends to all processes of a command."""


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Make a process that starts in the block ignore Ctrl-C and block SIGTERM and SIGHUP from its start.

    Signals to this process that arrive meanwhile are delayed, except Ctrl-C, which is ignored.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING) if hasattr(signal, "pthread_sigmask") else None
    main = threading.current_thread() is threading.main_thread()  # only the main thread receives Ctrl-C
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
        if blocked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _live_on(lifeline: Connection) -> None:
    """Ignore signals, which the working process handles, and exit when that process closes the lifeline or dies."""
    for number in (signal.SIGINT, *_ENDING):
        signal.signal(number, signal.SIG_IGN)

    def end_with_lifeline() -> None:
        marker: Path | None = None
        with suppress(EOFError, OSError):
            while True:
                marker = lifeline.recv()
                from runner.pages import console  # noqa: F401 (loaded in advance, to report a death at once)
        if marker is not None:
            report_death(marker)
        os._exit(1)

    threading.Thread(target=end_with_lifeline, daemon=True).start()
