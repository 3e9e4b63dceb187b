"""Logs runs in a separate process, where MLflow loads and writes while the next combination is computed."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from runner.config.objects import ConfigError
from runner.evaluation.result import Result
from runner.tracking.logged import LoggedRun, State, Sweep, state_of, this_time
from runner.tracking.opening import WRITING, explain_errors, patience
from runner.tracking.process import InlineExecutor, start_process
from runner.tracking.record import DatasetMade, Dropped, Failed, Finished
from runner.tracking.settings import Tracking
from runner.tracking.store import choose_store
from runner.tracking.tracker import Tracker
from runner.tracking.unlogged import Waiting

P = ParamSpec("P")
T = TypeVar("T")

MOST_WAITING_BYTES = 64 << 20
"""The largest number of bytes of results that wait in memory to be logged, for example while MLflow loads."""

AGAIN_S = 15.0
"""Seconds before another attempt to use a tracking store that failed."""

MOST_DEATHS = 3
"""The largest number of restarts of the logging process after it died."""

LEAVING_S = 3.0
"""Seconds that an interrupted command waits for results that are being logged."""

_NOT_READY = "tracking: the work was stopped before MLflow was ready"

Entry = Finished | Failed | Dropped | Waiting


class BackgroundTracker:
    """Logs in batches in another process while the next combination is computed.

    If the tracking store fails, the work continues: `take_unlogged` returns what could not be logged, and the store is
    tried again later. If the logging process dies, a new one replaces it, and nothing is logged twice. Leaving the
    context waits until everything is written, but only briefly after an interrupt.
    """

    def __init__(self, tracking: Tracking, clock: Callable[[], float] = time.monotonic) -> None:
        self.tracking, self._clock = tracking, clock
        self._store = choose_store(tracking)
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
        if self._store.is_direct:
            self.state("")  # raises an error before any work if the file is not a database
            with explain_errors(tracking, "cannot be opened"):
                self._store.check()
        else:  # raises an error if a server cannot be reached
            try:
                self.recover()
            except BaseException:
                self._end(now=True)
                raise
        if place := self._store.relocate():
            from runner.pages import console

            console.note(place)

    def start(self) -> None:
        """Start loading MLflow, which takes seconds, in the background."""
        if self._executor is None:
            self._executor, self._opened = self._start_process()

    def report_death(self, marker: Path) -> None:
        """Make the logging process report the combination named in a marker if this process dies."""
        self._last_words = marker
        if self._lifeline is not None:
            with suppress(OSError):  # if that process is dead, the next one receives the marker when it starts
                self._lifeline.send(marker)

    def state(self, sweep_id: str, report: str = "") -> State:
        """Return the state of a sweep and the parent run of one of its reports; raises `ConfigError`."""
        if self._store.is_direct:
            with explain_errors(self.tracking, "cannot be read", "; set the file of an MLflow database"):
                return state_of(*self._store.read_sweep(sweep_id), report)
        return self._call(Tracker.state, sweep_id, report)

    def result(self, run: LoggedRun, rankings: bool = False) -> Result:
        """Return the record of a run whose folder is not on this machine; raises `ResultError`, `ConfigError`."""
        return self._call(Tracker.result, run, rankings)

    def has_file(self, run: LoggedRun, name: str) -> bool:
        """Return whether a run has an artifact at the top of its folder; raises `ConfigError`."""
        return self._call(Tracker.has_file, run, name)

    def add_files(self, run: LoggedRun, files: Mapping[str, str]) -> None:
        """Add texts to the artifacts of a finished run; raises `ConfigError`."""
        self._call(Tracker.add_files, run, files)

    def reject(self, run: LoggedRun, why: str) -> None:
        """Mark a finished run as failed; raises `ConfigError`."""
        self._call(Tracker.reject, run, why)

    def recover(self) -> int:
        """Mark runs of dead processes as KILLED and return their number; raises `ConfigError`."""
        return self._call(Tracker.recover)

    def log_at_once(self, entry: Finished | Failed | DatasetMade | Waiting, again: bool = False) -> LoggedRun:
        """Log a finished evaluation or a dataset and return its run; raises `ConfigError`.

        With `again`, the run may have been logged before; that run is then returned.
        """
        (run,) = self._call(Tracker.log, [entry], None, again)
        return run if self.keeps_runs else LoggedRun("", None)

    def log(self, entry: Entry) -> None:
        """Queue a finished evaluation; raises `ConfigError` if the tracking store cannot be opened."""
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
        """Queue the start of a sweep's parent run; evaluations logged from now on are its combinations."""
        self._sweep = replace(sweep, process=this_time())
        self._submit(Tracker.recover)
        self._submit(Tracker.start_sweep, self._sweep)

    @property
    def keeps_runs(self) -> bool:
        """Return whether runs can be read after this process has ended; not with `tracking=none`."""
        return self._store.keeps_runs

    @property
    def in_sweep(self) -> bool:
        """Return whether a sweep has been started but not finished."""
        return self._sweep is not None

    @property
    def _started_sweep(self) -> Sweep:
        if self._sweep is None:  # logging was given up before the sweep was started
            raise ConfigError(_NOT_READY)
        return self._sweep

    def finish_sweep(
        self,
        best: Result | None,
        reports: Mapping[str, str],
        status: str,
        tags: Mapping[str, str] | None = None,
        spending: Mapping[str, float] | None = None,
    ) -> LoggedRun | None:
        """Close the sweep as `Tracker.finish_sweep` does, and return its run if it is kept; raises `ConfigError`."""
        self.flush()
        own, paid = dict(tags or {}), dict(spending or {})
        run = self._call(Tracker.finish_sweep, self._started_sweep, best, dict(reports), status, own, paid)
        self._sweep = None
        return run if self.keeps_runs else None

    def find_sweep_run(self) -> LoggedRun:
        """Return the parent run of the sweep that was started; raises `ConfigError`."""
        return self._call(Tracker.start_sweep, self._started_sweep)

    def link(self, runs: Collection[str]) -> None:
        """Tag combinations of another command as also reported by this sweep; raises `ConfigError`."""
        self._call(Tracker.link, self._started_sweep, runs)

    def flush(self) -> None:
        """Wait until every queued evaluation is logged or has failed to be logged."""
        with self._changed:
            self._changed.wait_for(lambda: not self._queue and not self._in_flight)

    def hurry(self) -> None:
        """Try a failed tracking store again at once; it may already have logged some evaluations."""
        self._again, self._doubt = 0.0, True

    def leave(self) -> None:
        """Log what can be logged within `LEAVING_S` after an interrupt, and give up on the rest.

        MLflow may take minutes to load and to create its database; in that case its process is ended, and `left` is
        set.
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
            with suppress(OSError):  # the process may already be dead
                self._lifeline.send(None)
            self._lifeline.close()
            self.flush()

    def take_unlogged(self) -> list[Entry]:
        """Return the evaluations that could not be logged, each once."""
        with self._changed:
            taken, self._unlogged = self._unlogged, []
        return taken

    def __enter__(self) -> Self:
        """Return the tracker."""
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        """Wait until everything is written, but only briefly after an interrupt."""
        try:
            if kind is KeyboardInterrupt:
                self.leave()
            else:
                self.flush()
        finally:
            self._end()

    def _call(self, method: Callable[Concatenate[Tracker, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method of the tracker and return its result; raises `ConfigError`."""
        while True:
            self.start()
            executor = self._executor
            try:
                return self._submit(method, *args, **kwargs).result()
            except BrokenProcessPool as error:
                self._start_again(executor, error)

    def _submit(self, method: Callable[Concatenate[Tracker, P], T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit a call of a method of the tracker and return its future."""
        if self.left:
            raise ConfigError(_NOT_READY)
        self.start()
        executor = self._executor
        assert executor is not None  # noqa: S101 (it was started)
        try:
            self._last = sent = executor.submit(_call, self.tracking, method, args, kwargs)
        except BrokenProcessPool as error:
            self._start_again(executor, error)
            return self._submit(method, *args, **kwargs)
        return sent

    def _send(self) -> None:
        """Send the queue as a batch if no other batch is in flight."""
        if not self._in_flight and self._queue:
            self._in_flight = tuple(self._queue)
            self._queue.clear()
            self._changed.notify_all()
            self._submit_batch()

    def _submit_batch(self) -> None:
        try:
            sent = self._submit(Tracker.log, self._in_flight, self._sweep, self._doubt)
        except BaseException as error:  # every batch must be either logged or given up
            self._refuse_batch(error)
            if not isinstance(error, ConfigError):
                raise
        else:
            sent.add_done_callback(partial(self._finish_batch, self._executor))

    def _finish_batch(self, executor: Executor | None, sent: Future[Any]) -> None:
        with self._changed:
            error = sent.exception()
            if isinstance(error, BrokenProcessPool):
                self._doubt = True
                try:  # first, as a dead executor holds its lock during this call, and waits for itself if it is used
                    if not self.left:
                        self._start_again(executor, error)
                except ConfigError as trouble:
                    self._refuse_batch(trouble)
                else:
                    self._submit_batch()
                return
            if error is not None:
                self._refuse_batch(error)
                return
            self.trouble, self._deaths = None, 0
            self._in_flight = ()
            self._changed.notify_all()
            self._send()

    def _refuse_batch(self, error: BaseException) -> None:
        """Give up logging a batch and the queue behind it for now; `take_unlogged` returns them."""
        self.trouble = error if isinstance(error, ConfigError) else ConfigError(f"tracking: {error}")
        self._again, self._doubt = self._clock() + AGAIN_S, True
        self._unlogged += [*self._in_flight, *self._queue]
        self._in_flight = ()
        self._queue.clear()
        self._changed.notify_all()

    def _start_process(self) -> tuple[Executor, Future[None]]:
        """Return an executor, in another process if possible, and the future of opening the tracking store in it."""
        # The process of a launcher logs by itself, because not every kind of process can start another one.
        in_place = not (self.keeps_runs and self.tracking.background)
        if in_place or multiprocessing.current_process().name != "MainProcess":
            executor: Executor = InlineExecutor()
        else:
            executor, self._lifeline = start_process()
            if self._last_words is not None:
                self.report_death(self._last_words)
        return executor, executor.submit(_open, self.tracking)

    def _end(self, now: bool = False) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=now)

    def _start_again(self, broken: Executor | None, error: BrokenProcessPool) -> None:
        """Replace a dead process, unless it has already been replaced."""
        with self._changed:
            if self._executor is not broken:
                return
            self._deaths += 1
            if self._deaths > MOST_DEATHS:
                way_out = "free some memory, or log in this process with tracking.background=false"
                raise ConfigError(f"tracking: the logging process was killed repeatedly; {way_out}") from error
            self._executor, self._opened = self._start_process()


_trackers: dict[Tracking, Tracker] = {}
"""The open trackers of the logging process."""


def _open(tracking: Tracking) -> None:
    _trackers[tracking] = Tracker(tracking)


def _call(tracking: Tracking, method: Callable[..., T], args: Sequence[object], kwargs: Mapping[str, object]) -> T:
    if tracking not in _trackers:
        _open(tracking)
    with explain_errors(tracking, "cannot be written"), patience(WRITING):
        return method(_trackers[tracking], *args, **kwargs)
