"""Process items in parallel worker processes; one that dies costs only its current item."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Generic, Protocol, TypeVar

from runner.system.processes import worker_process

Item = TypeVar("Item")
Value = TypeVar("Value")


class _Executor(Protocol, Generic[Item, Value]):
    """An executor of one process."""

    def submit(self, work: Callable[[Item], Value], item: Item, /) -> Future[Value]: ...

    def shutdown(self, *, wait: bool, kill_workers: bool) -> None: ...


_Busy = dict[Future[Value], tuple[Item, _Executor[Item, Value]]]


def run_in_workers(
    work: Callable[[Item], Value], items: Iterable[Item], workers: int
) -> Iterator[tuple[Item, Value | BaseException]]:
    """Yield (item, result or exception) in order of completion; an item is taken when a worker is free.

    A single worker is this process. Otherwise, each worker is a separate process: one that dies is replaced, and its
    item yields the exception that reports the death. Closing the generator ends the workers.
    """
    if workers == 1:
        yield from ((item, _attempt(work, item)) for item in items)
        return
    free: list[_Executor[Item, Value]] = [worker_process(threads=1) for _ in range(workers)]
    busy: _Busy[Value, Item] = {}
    try:
        for item in items:
            process = free.pop()
            try:
                future = process.submit(work, item)
            except BrokenProcessPool:  # it died while idle
                process = worker_process(threads=1)
                future = process.submit(work, item)
            busy[future] = item, process
            while not free:
                yield from _collect(busy, free)
        while busy:
            yield from _collect(busy, free)
    finally:
        for process in (*free, *(process for _, process in busy.values())):
            process.shutdown(wait=True, kill_workers=True)


def _attempt(work: Callable[[Item], Value], item: Item) -> Value | Exception:
    try:
        return work(item)
    except Exception as error:
        return error


def _collect(
    busy: _Busy[Value, Item], free: list[_Executor[Item, Value]]
) -> Iterator[tuple[Item, Value | BaseException]]:
    """Wait for results, free their workers, and yield them."""
    for future in wait(busy, return_when=FIRST_COMPLETED).done:
        item, process = busy.pop(future)
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            process.shutdown(wait=False, kill_workers=True)
            process = worker_process(threads=1)
        free.append(process)
        yield item, future.result() if error is None else error
