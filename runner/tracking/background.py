"""The store of runs in a process of its own: MLflow loads and writes there while the next combination computes.

It knows nothing of what is logged, and keeps nothing on disk.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from runner.config.objects import ConfigError
from runner.result import Result
from runner.tracking.logged import LoggedRun, State, Sweep, sqlite_state, this_time
from runner.tracking.opening import WRITING, explain_errors, patience
from runner.tracking.record import Failed, Finished
from runner.tracking.settings import Tracking
from runner.tracking.tracker import Tracker
from runner.tracking.under_way import report_death
from runner.tracking.unlogged import Waiting

MOST_WAITING_BYTES = 64 << 20
"""What may wait to be logged, so that it does not pile up in memory; small results are many while MLflow loads."""

AGAIN_S = 15.0
"""How long a store of runs that failed is left alone before it is tried again."""

MOST_DEATHS = 3
"""How often the process that logs is started again after it died."""

LEAVING_S = 3.0
"""How long a user who stops the work waits for what is being logged."""

Entry = Finished | Failed | Waiting


class BackgroundTracker:
    """A `Tracker` beside the work. What is logged waits and goes over in batches, while the next is computed.

    A store of runs that fails does not end the work: what could not be logged is handed back by `take_unlogged`, and
    it is tried again after a while. If the process that logs dies, another takes its place, and logs nothing twice.
    Leaving the context waits until all is written, but for who is interrupted.
    """

    def __init__(self, tracking: Tracking, clock: Callable[[], float] = time.monotonic) -> None:
        self.tracking, self._clock = tracking, clock
        self._changed = threading.Condition(threading.RLock())
        self._queue: deque[Entry] = deque()
        self._in_flight: Sequence[Entry] = ()
        self._unlogged: list[Entry] = []
        self._again, self._deaths, self._doubt = 0.0, 0, False
        self.trouble: ConfigError | None = None
        self._executor: Executor | None = None
        self._opened: Future[None] | None = None
        self._last: Future[Any] | None = None
        self._lifeline: Connection | None = None
        self._last_words: Path | None = None
        self.left = False
        self._sweep: Sweep | None = None
        if tracking.uri.startswith("sqlite:"):
            sqlite_state(tracking, "")  # what is no database is better said before any work
        else:  # as is what is out of reach
            try:
                self.ask("recover")
            except BaseException:
                self._end(now=True)
                raise

    def start(self) -> None:
        """Begin to load MLflow, which takes seconds, beside the work."""
        if self._executor is None:
            self._executor, self._opened = self._start_process()

    def report_death(self, marker: Path) -> None:
        """Have the process that logs report it if this process dies, with what a file says is under way."""
        self._last_words = marker
        if self._lifeline is not None:
            with suppress(OSError):  # it may be dead; the next one hears it as it starts
                self._lifeline.send(marker)

    def ask(self, method: str, *arguments: Any) -> Any:  # noqa: ANN401 (any method's)
        """Return what a method of `Tracker` returns; raises `ConfigError`."""
        while True:
            self.start()
            executor = self._executor
            try:
                return self.submit(method, *arguments).result()
            except BrokenProcessPool as error:
                self._start_again(executor, error)

    def submit(self, method: str, *arguments: Any) -> Future[Any]:  # noqa: ANN401 (any method's)
        """Return the future of what a method of `Tracker` returns."""
        if self.left:
            raise ConfigError("tracking: MLflow was not ready when the work was stopped")
        self.start()
        executor = self._executor
        assert executor is not None  # noqa: S101 (it was started)
        try:
            self._last = executor.submit(_call, self.tracking, method, arguments)
            return self._last
        except BrokenProcessPool as error:
            self._start_again(executor, error)
            return self.submit(method, *arguments)

    def state(self, sweep_id: str, report: str = "") -> State:
        """Return how far a sweep is, and the parent run of one of its reports; raises `ConfigError`."""
        if self.tracking.uri.startswith("sqlite:"):
            return sqlite_state(self.tracking, sweep_id, report)
        state: State = self.ask("state", sweep_id, report)
        return state

    def log(self, entry: Entry) -> None:
        """Log an evaluation that is over, soon; raises `ConfigError` where there is no store of runs to log to."""
        with self._changed:
            if self._opened is not None and self._opened.done() and not (self._deaths or self.left):
                self._opened.result()
            if self.left or (self.trouble is not None and self._clock() < self._again):
                self._unlogged.append(entry)
                return
            self._queue.append(entry)
            self._send()
            self._changed.wait_for(lambda: sum(entry.bytes for entry in self._queue) <= MOST_WAITING_BYTES)

    def start_sweep(self, sweep: Sweep) -> None:
        """Open the parent run of a sweep, soon; what is logged from now on is part of it."""
        self._sweep = replace(sweep, process=this_time())
        self.submit("recover")
        self.submit("start_sweep", self._sweep)

    @property
    def in_sweep(self) -> bool:
        """Tell whether a sweep was started."""
        return self._sweep is not None

    def finish_sweep(
        self, best: Result | None, reports: Mapping[str, str], status: str, tags: Mapping[str, str] | None = None
    ) -> LoggedRun:
        """Close the sweep with its reports and tags; raises `ConfigError`."""
        self.flush()
        run: LoggedRun = self.ask("finish_sweep", self._sweep, best, dict(reports), status, dict(tags or {}))
        self._sweep = None
        return run

    def link(self, runs: Collection[str]) -> None:
        """Tag combinations that another command computed as reported by the sweep too; raises `ConfigError`."""
        self.ask("link", self._sweep, runs)

    def flush(self) -> None:
        """Wait until all that was handed over is logged, or handed back."""
        with self._changed:
            self._changed.wait_for(lambda: not self._queue and not self._in_flight)

    def hurry(self) -> None:
        """Try a store of runs that failed again, at once, with what it may have taken already."""
        self._again, self._doubt = 0.0, True

    def leave(self) -> None:
        """Log what can be logged soon, for who is interrupted, and hand back the rest.

        MLflow may take minutes to load and to make its database, and then nothing else is waited for: its process is
        ended, and `left` tells so.
        """
        if self._executor is None or self.left:
            return
        end, opened = self._clock() + LEAVING_S, self._opened is not None and self._opened.done()
        with self._changed:
            waiting = bool(self._queue or self._in_flight)
        if opened or waiting:
            wait([self._last] if self._last else [], LEAVING_S)
            with self._changed:
                rest = max(end - self._clock(), 0)
                opened = self._changed.wait_for(lambda: not self._queue and not self._in_flight, rest)
                opened = opened and (self._last is None or self._last.done())
        if not opened and self._lifeline is not None:
            self.left = True
            with suppress(OSError):  # it may be dead already
                self._lifeline.send(None)
            self._lifeline.close()
            self.flush()

    def take_unlogged(self) -> list[Entry]:
        """Return what could not be logged, each once."""
        with self._changed:
            taken, self._unlogged = self._unlogged, []
        return taken

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        """Wait until all is written, not for long where the user interrupts."""
        try:
            if kind is KeyboardInterrupt:
                self.leave()
            else:
                self.flush()
        finally:
            self._end()

    def _send(self) -> None:
        """Send what waits as a batch, if none is on its way."""
        if not self._in_flight and self._queue:
            self._in_flight = tuple(self._queue)
            self._queue.clear()
            self._changed.notify_all()
            self._submit_batch()

    def _submit_batch(self) -> None:
        try:
            sent = self.submit("log", self._in_flight, self._sweep, self._doubt)
        except BaseException as error:  # a batch always ends, logged or handed back
            self._hand_back(error)
            if not isinstance(error, ConfigError):
                raise
        else:
            sent.add_done_callback(self._finish_batch)

    def _finish_batch(self, sent: Future[Any]) -> None:
        with self._changed:
            error = sent.exception()
            if isinstance(error, BrokenProcessPool):
                self._doubt = True
                self._submit_batch()
                return
            if error is not None:
                self._hand_back(error)
                return
            self.trouble, self._deaths = None, 0
            self._in_flight = ()
            self._changed.notify_all()
            self._send()

    def _hand_back(self, error: BaseException) -> None:
        """Give up a batch, and all that waits behind it for now."""
        self.trouble = error if isinstance(error, ConfigError) else ConfigError(f"tracking: {error}")
        self._again, self._doubt = self._clock() + AGAIN_S, True
        self._unlogged += [*self._in_flight, *self._queue]
        self._in_flight = ()
        self._queue.clear()
        self._changed.notify_all()

    def _start_process(self) -> tuple[Executor, Future[None]]:
        """Return a process, or this one, and the future of its opening the store of runs."""
        # A process that a launcher made logs by itself: not every kind of it can make another.
        if not self.tracking.background or multiprocessing.current_process().name != "MainProcess":
            return _Inline(), _Inline().submit(_call, self.tracking, "open", ())
        context = multiprocessing.get_context("spawn")
        end, self._lifeline = context.Pipe(duplex=False)
        executor = ProcessPoolExecutor(1, context, initializer=_live_on, initargs=(end,))
        if self._last_words is not None:
            self._lifeline.send(self._last_words)
        with end, _interrupts_ignored():  # the process starts here, and inherits this
            return executor, executor.submit(_call, self.tracking, "open", ())

    def _end(self, now: bool = False) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=now)

    def _start_again(self, broken: Executor | None, error: BrokenProcessPool) -> None:
        """Start another process in the place of one that died, unless somebody did so already."""
        with self._changed:
            if self._executor is not broken:
                return
            self._deaths += 1
            if self._deaths > MOST_DEATHS:
                way_out = "is there memory for it? tracking.background=false logs without one"
                raise ConfigError(f"tracking: the process that logs was ended by another; {way_out}") from error
            self._executor, self._opened = self._start_process()


class _Inline(Executor):
    """Carries a call out at once, here."""

    def submit(self, call: Any, /, *arguments: Any, **named: Any) -> Future[Any]:  # noqa: ANN401 (any call)
        future: Future[Any] = Future()
        try:
            future.set_result(call(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


_open: dict[Tracking, Tracker] = {}
"""The trackers that are open in the process that calls are carried out in."""


def _call(tracking: Tracking, method: str, arguments: tuple[Any, ...]) -> Any:  # noqa: ANN401 (any method's)
    if method == "open" or tracking not in _open:
        _open[tracking] = Tracker(tracking)
    if method == "open":
        return None
    with explain_errors(tracking, "cannot be written to"), patience(WRITING):
        return getattr(_open[tracking], method)(*arguments)


_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What a shutdown or a closing terminal sends to all processes of a command; the one that works ends the others."""


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Start a process in the block that no signal but a kill ends; this one hears of what came meanwhile after it."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING) if hasattr(signal, "pthread_sigmask") else None
    main = threading.current_thread() is threading.main_thread()  # only that one hears of Ctrl-C
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
        if blocked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _live_on(lifeline: Connection) -> None:
    """Leave signals to the process that works and ends this one in order; end when it lets go, or is gone."""
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
