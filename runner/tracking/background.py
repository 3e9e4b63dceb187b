"""The store of runs in a process of its own: MLflow loads and writes there while the next combination computes.

Calls are carried out in their order. What one of them raises is raised here at a later call, or at the end, and those
that follow it are not tried.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from runner.config.objects import ConfigError
from runner.result import Result
from runner.tracking.settings import Tracking
from runner.tracking.tracker import LoggedRun, Tracker, told

MOST_WAITING = 16
"""How many calls may wait, so that results do not pile up in memory."""


class BackgroundTracker:
    """The methods of `Tracker`, each returning the future of its answer. Leaving the context waits for all."""

    def __init__(self, tracking: Tracking) -> None:
        self._tracking = tracking
        self._executor: Executor = _Inline()
        # A process that a launcher made logs by itself: not every kind of it can make another.
        if tracking.background and multiprocessing.current_process().name == "MainProcess":
            self._executor = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_belong_to_parent)
        self._waiting: deque[Future[Any]] = deque()
        with _interrupts_ignored():  # the process starts here, and inherits this
            opened = self._submit("open")
        if not tracking.uri.startswith("sqlite:"):  # it may be out of reach, which is better said before any work
            try:
                opened.result()
            except BaseException:
                self._executor.shutdown(cancel_futures=True)
                raise

    def log_result(
        self, result: Result, parameters: Mapping[str, str], reports: Mapping[str, str]
    ) -> Future[LoggedRun]:
        """Log a finished evaluation as one run."""
        return self._submit("log_result", result, dict(parameters), dict(reports))

    def log_failure(self, name: str, parameters: Mapping[str, str], error: str, trace: str) -> Future[LoggedRun]:
        """Log an evaluation that raised as a FAILED run, with its traceback."""
        return self._submit("log_failure", name, dict(parameters), error, trace)

    def start_sweep(self, name: str, axes: Mapping[str, str], combinations: int) -> None:
        """Open the parent run of a sweep; what is logged from now on is part of it."""
        self._submit("start_sweep", name, dict(axes), combinations)

    def finish_sweep(self, best: Result | None, reports: Mapping[str, str], status: str) -> Future[LoggedRun]:
        """Close the sweep with its reports."""
        return self._submit("finish_sweep", best, dict(reports), status)

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        """Wait until all is written; raise what went wrong there, unless something went wrong here."""
        try:
            if isinstance(what, BrokenProcessPool):
                raise what
            while self._waiting and kind is None:
                self._waiting.popleft().result()
        except BrokenProcessPool as error:
            way_out = "is there memory for it? tracking.background=false logs without one"
            raise ConfigError(f"tracking: the process that logs was ended by another; {way_out}") from error
        finally:
            self._executor.shutdown()  # what was handed over is written, whatever happened here

    def _submit(self, method: str, *arguments: Any) -> Future[Any]:  # noqa: ANN401 (any method's)
        future = self._executor.submit(_call, self._tracking, method, arguments)
        self._waiting.append(future)
        while self._waiting[0] is not future and (self._waiting[0].done() or len(self._waiting) > MOST_WAITING):
            self._waiting.popleft().result()
        return future


class _Inline(Executor):
    """Carries a call out at once, here."""

    def submit(self, call: Any, /, *arguments: Any, **named: Any) -> Future[Any]:  # noqa: ANN401 (any call)
        future: Future[Any] = Future()
        future.set_result(call(*arguments, **named))
        return future


_open: dict[Tracking, Tracker | ConfigError] = {}
"""The tracker of the process that calls are carried out in, or what went wrong with it."""


def _call(tracking: Tracking, method: str, arguments: tuple[Any, ...]) -> Any:  # noqa: ANN401 (any method's)
    try:
        if method == "open":
            _open[tracking] = Tracker(tracking)
            return None
        tracker = _open[tracking]
        if isinstance(tracker, ConfigError):  # each call would wait for a lost server anew
            raise tracker
        with told(tracking, "cannot be written to"):
            return getattr(tracker, method)(*arguments)
    except ConfigError as error:
        _open[tracking] = error
        raise


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only that one hears of them
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _belong_to_parent() -> None:
    """Leave Ctrl-C to the process that has the terminal and ends this one in order; end when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
