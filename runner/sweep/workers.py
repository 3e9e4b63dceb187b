"""Computes combinations: in this process, with workers on this machine (loky), or on a cluster.

Each crew runs calls that return a result or a failure; if a future raises, its worker died. Workers share one store and
do not log.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import platform
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import psutil
from numpy.typing import NDArray

from retrievers.excerpts import shorten_text
from runner.comparison.leaderboard import FailedCombination
from runner.config.objects import ConfigError
from runner.evaluation.bench import Bench, MeasuredExperiment
from runner.evaluation.experiment import Experiment
from runner.store.base import WorkStore
from runner.sweep.encoding import DocumentEncoding, encode_missing
from runner.sweep.identity import combination_id
from runner.sweep.racing import RaceBlock, measure_block
from runner.sweep.settings import SweepSettings
from runner.system.processes import processors, worker_process

Task = Experiment | RaceBlock | DocumentEncoding
Outcome = MeasuredExperiment | FailedCombination | NDArray[np.float64] | None
"""What an experiment measured, the values of a block of a race, or nothing of an encoding; or else a failure."""

LOOK_EVERY_S = 0.05
"""Seconds between two checks of the time and memory of a combination."""

GRACE_S = 5.0
"""Seconds after the time limit until a worker is ended that holds Python's GIL, which keeps checks from running."""

OVER_THE_LIMIT = 75
"""The exit code of a worker that ends itself because its work cannot be stopped otherwise."""


@dataclass(frozen=True)
class WorkerLimits:
    """The limits of a combination: its time in seconds, and the memory of its worker in MiB."""

    timeout_s: float | None = None
    memory_mb: float | None = None


SLURM_JOBS = 16
"""The number of SLURM jobs that run at a time, unless `sweep.workers` is set."""


class Crew(Protocol):
    """Workers that evaluate experiments."""

    @property
    def size(self) -> int:
        """Return the number of parallel calls."""
        ...

    def submit(self, combination: str, task: Task) -> Future[Outcome]:
        """Do a task of an experiment, whose identity must be `combination`."""
        ...


@runtime_checkable
class ReadAhead(Protocol):
    """A retriever that can read its data in a thread while another combination is evaluated."""

    def start_reading(self) -> None:
        """Start to read the data that `index` needs."""
        ...


def answers(tasks: Mapping[str, Experiment | RaceBlock], crew: Crew, retries: int) -> Iterator[tuple[str, Any]]:
    """Yield the outcome of each combination, or the values of its block of a race, in order of completion.

    A combination whose worker dies is retried up to `retries` times, after all others.
    """
    waiting = deque((combination, 0) for combination in tasks)
    running: dict[Future[Any], tuple[str, int]] = {}
    while waiting or running:
        while waiting and len(running) < crew.size:
            combination, tries = waiting.popleft()
            task, following = tasks[combination], tasks[waiting[0][0]] if waiting else None
            if isinstance(crew, _Alone) and isinstance(task, Experiment) and isinstance(following, Experiment):
                crew.start_reading(task, following)
            running[_submit(crew, combination, task)] = combination, tries
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            combination, tries = running.pop(future)
            lost = future.exception()
            if lost is None:
                yield combination, future.result()
            elif tries < retries:
                waiting.append((combination, tries + 1))
            else:
                why = shorten_text(str(lost), 300)
                attempts = ("", " on both attempts")[tries] if tries < 2 else f" on all {tries + 1} attempts"
                message = f"the worker died{attempts} ({type(lost).__name__}: {why})"
                trace = "".join(traceback.format_exception(lost))
                yield combination, FailedCombination(tasks[combination].name, message, trace)


def encode_documents(encoding: DocumentEncoding, crew: Crew) -> None:
    """Encode documents on all workers. Errors are not raised here, but when the combination is evaluated."""
    workers = min(crew.size, len(encoding.missing))
    wait([_submit(crew, encoding.combination, encoding) for _ in range(workers)])


def _submit(crew: Crew, combination: str, task: Task) -> Future[Any]:
    try:
        return crew.submit(combination, task)
    except Exception as error:  # if an experiment cannot be sent, only that experiment fails
        future: Future[Any] = Future()
        future.set_exception(error)
        return future


def crew_of(
    settings: SweepSettings, bench: Bench, begin: Callable[[str, str], None] | None = None
) -> AbstractContextManager[Crew]:
    """Return the workers of the settings, as a context manager that ends them; raises `ConfigError`.

    The sequential backend calls `begin` with each combination and its name before evaluating it.
    """
    if settings.backend == "sequential":
        return nullcontext(_Alone(bench, begin))
    crews = {"loky": _loky, "dask": _dask, "ray": _ray, "slurm": _slurm}
    return crews[settings.backend](settings, bench.store)


def crew_of_one(bench: Bench) -> AbstractContextManager[Crew]:
    """Return a single worker process, so that a crash does not affect this process."""
    return _loky(SweepSettings(backend="loky", workers=1), bench.store)


def attempt(bench: Bench, task: Experiment | RaceBlock) -> Outcome:
    """Measure an experiment or search a block of it; an error of its retriever becomes a failure."""
    try:
        return measure_block(task, bench) if isinstance(task, RaceBlock) else bench.measure(task)
    except (Exception, SystemExit) as error:
        what = " ".join(str(error).split())
        trace = "".join(traceback.format_exception(error))
        return FailedCombination(task.name, f"{type(error).__name__}: {what}", trace)


_mine = threading.local()
"""State of a worker between calls, per thread: some clusters run calls in threads, and stores are not thread-safe."""


def work(combination: str, task: Task, store: WorkStore, limits: WorkerLimits, threads: int) -> Outcome:
    """Do a task in a worker of any backend.

    It fails if code, data or libraries differ from those of the process that sent it, as this is another combination.
    """
    _limit_threads(threads)
    experiment = task if isinstance(task, Experiment) else task.experiment
    benches: dict[str, Bench] = _mine.__dict__.setdefault("benches", {})
    if store.location not in benches:
        benches[store.location] = Bench(copy(store))  # threads of a cluster worker may receive the same store
    bench = benches[store.location]
    try:
        same = combination_id(experiment, bench.dataset(experiment)) == combination
    except (OSError, ValueError) as error:
        return FailedCombination(experiment.name, f"{type(error).__name__}: {' '.join(str(error).split())}")
    if not same:
        message = (
            f"the worker on {platform.node()} has other code, data or libraries than the process that started the sweep"
        )
        return FailedCombination(experiment.name, message)
    if isinstance(task, DocumentEncoding):
        with suppress(ValueError, OSError):  # the combination fails with the same error
            encode_missing(task, bench)
        return None
    if limits == WorkerLimits():
        return attempt(bench, task)
    return _within(limits, experiment, lambda: attempt(bench, task))


def _within(limits: WorkerLimits, experiment: Experiment, call: Callable[[], Outcome]) -> Outcome:
    """Run a call in a thread within limits; if it exceeds one, return a failure and end the worker."""
    answers: list[Outcome] = []
    thread = threading.Thread(target=lambda: answers.append(call()), daemon=True)
    process, end = psutil.Process(), time.monotonic() + (limits.timeout_s or float("inf"))
    if limits.timeout_s is not None:  # ends a worker that holds Python's GIL
        faulthandler.dump_traceback_later(limits.timeout_s + GRACE_S, exit=True, file=2)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(LOOK_EVERY_S)
            used = process.memory_info().rss / 2**20
            if answers:
                break
            if time.monotonic() > end:
                return _end_worker(experiment, f"took more than sweep.timeout_s={limits.timeout_s:g}")
            if limits.memory_mb is not None and used > limits.memory_mb:
                return _end_worker(experiment, f"took {used:,.0f} MiB, more than sweep.memory_mb={limits.memory_mb:g}")
    finally:
        faulthandler.cancel_dump_traceback_later()
    return answers[0]


def _end_worker(experiment: Experiment, why: str) -> FailedCombination:
    threading.Timer(GRACE_S / 10, os._exit, (OVER_THE_LIMIT,)).start()  # after the answer is sent
    return FailedCombination(experiment.name, f"{experiment.name} {why}", "")


def _limit_threads(threads: int) -> None:
    """Limit a worker to its share of the processors."""
    if _mine.__dict__.get("threads") == threads:
        return
    import numba
    from threadpoolctl import threadpool_limits

    _mine.threads = threads
    numba.config.NUMBA_NUM_THREADS = threads  # read by `retrievers.threads`
    threadpool_limits(threads)


class _Alone:
    """Runs calls in the process of the sweep, one at a time."""

    size = 1

    def __init__(self, bench: Bench, begin: Callable[[str, str], None] | None) -> None:
        self._bench, self._begin = bench, begin
        self._read: set[str] = set()

    def start_reading(self, experiment: Experiment, following: Experiment) -> None:
        """Start to read the data of the next experiment, unless an earlier one had the same retriever."""
        self._read.add(repr(experiment.retriever))
        if isinstance(following.retriever, ReadAhead) and repr(following.retriever) not in self._read:
            following.retriever.start_reading()

    def submit(self, combination: str, task: Task) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        if isinstance(task, DocumentEncoding):  # they are encoded when the combination is evaluated
            future.set_result(None)
            return future
        if self._begin is not None:
            self._begin(combination, task.name)
        future.set_result(attempt(self._bench, task))
        return future


class _Loky:
    """Processes on this machine, each in its own executor, so that only its own call is lost if one dies."""

    def __init__(self, settings: SweepSettings, store: WorkStore) -> None:
        cpus = processors()
        self.size = settings.workers or cpus
        self._threads = max(1, cpus // self.size)
        self._arguments = store, _limits(settings), self._threads
        self._limited = _limits(settings) != WorkerLimits()
        self._free: list[Any] = [worker_process(self._threads) for _ in range(self.size)]
        self._busy: dict[Future[Outcome], Any] = {}

    def submit(self, combination: str, task: Task) -> Future[Outcome]:
        for future in [future for future in self._busy if future.done()]:
            worker, answer = self._busy.pop(future), future.exception() or future.result()
            spent = isinstance(answer, BaseException) or (self._limited and isinstance(answer, FailedCombination))
            if spent:  # the worker has died or is about to end
                worker.shutdown(wait=False, kill_workers=True)
            self._free.append(worker_process(self._threads) if spent else worker)
        worker = self._free.pop()
        try:
            future = worker.submit(work, combination, task, *self._arguments)
        except Exception:  # the worker died while idle, or the call cannot be sent
            self._free.append(worker_process(self._threads))
            raise
        self._busy[future] = worker
        return future  # type: ignore[no-any-return]  # loky has no types

    def end(self) -> None:
        """End all workers; the results of running calls are discarded."""
        for worker in self._free:
            worker.shutdown(wait=True)
        for future, worker in self._busy.items():
            worker.shutdown(wait=future.done(), kill_workers=not future.done())


def _limits(settings: SweepSettings) -> WorkerLimits:
    return WorkerLimits(settings.timeout_s, settings.memory_mb)


@contextmanager
def _loky(settings: SweepSettings, store: WorkStore) -> Iterator[Crew]:
    crew = _Loky(settings, store)
    try:
        yield crew
    finally:
        crew.end()


@dataclass(frozen=True)
class _Cluster:
    """A cluster, to which calls are sent. If a node leaves, Dask repeats its calls itself, but Ray does not."""

    size: int
    call: Callable[[str, Task], Future[Outcome]]

    def submit(self, combination: str, task: Task) -> Future[Outcome]:
        return self.call(combination, task)


@contextmanager
def _dask(settings: SweepSettings, store: WorkStore) -> Iterator[Crew]:
    distributed: Any = importlib.import_module("distributed")

    local = {
        "n_workers": settings.workers,
        "threads_per_worker": 1,
        "dashboard_address": ":0",
    }  # another cluster may have 8787
    try:
        client = distributed.Client(settings.address, set_as_default=False, **({} if settings.address else local))
    except (OSError, ValueError) as error:
        raise ConfigError(f"sweep.address={settings.address}: {' '.join(str(error).split())}") from error
    with client:
        size = settings.workers or sum(client.nthreads().values())
        if not size:
            raise ConfigError(
                f"sweep.address={settings.address}: the cluster has no workers; start some with `dask worker ADDRESS`"
            )
        pool = client.get_executor(pure=False, retries=0)
        yield _Cluster(size, lambda *call: pool.submit(work, *call, store, _limits(settings), 1))


@contextmanager
def _ray(settings: SweepSettings, store: WorkStore) -> Iterator[Crew]:
    ray: Any = importlib.import_module("ray")

    try:
        cpus = None if settings.address else settings.workers
        ray.init(settings.address, num_cpus=cpus, log_to_driver=False, logging_level="WARNING", include_dashboard=False)
    except (OSError, ValueError) as error:
        raise ConfigError(f"sweep.address={settings.address}: {' '.join(str(error).split())}") from error
    try:
        size = settings.workers or int(ray.cluster_resources().get("CPU", 1))
        remote = ray.remote(num_cpus=1, max_retries=0)(work)
        yield _Cluster(size, lambda *call: remote.remote(*call, store, _limits(settings), 1).future())
    finally:
        ray.shutdown()


@contextmanager
def _slurm(settings: SweepSettings, store: WorkStore) -> Iterator[Crew]:
    from runner.sweep.jobs import JobCrew, list_queued, open_executor

    executor = open_executor(settings.address, store.run_files.jobs, settings.slurm)
    threads = int(settings.slurm.get("cpus_per_task", 1))
    run = partial(_run_calls, store=store, limits=_limits(settings), threads=threads)
    real = {} if settings.address else {"list_queued": list_queued}
    crew = JobCrew(executor, settings.workers or SLURM_JOBS, settings.per_job, run, **real)
    try:
        yield crew
    finally:
        crew.end()


def _run_calls(
    calls: Sequence[tuple[str, Task]], store: WorkStore, limits: WorkerLimits, threads: int
) -> list[Outcome]:
    return [work(*call, store, limits, threads) for call in calls]
