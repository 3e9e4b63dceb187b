"""Parallel work in threads, for code that releases Python's lock.

The number of threads is numba's: NUMBA_NUM_THREADS, or the processors available to the process. It does not affect
results and is not part of any key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def count_threads() -> int:
    """Return the number of threads to use."""
    from numba import config

    return int(config.NUMBA_NUM_THREADS)


def map_threads(work: Callable[[T], R], items: Iterable[T], threads: int | None = None) -> Iterator[R]:
    """Yield the result of each item, in order; items are taken only as fast as the threads process them."""
    threads = count_threads() if threads is None else threads
    if threads == 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        under_way: deque[Future[R]] = deque()
        for item in items:
            under_way.append(pool.submit(work, item))
            if len(under_way) > threads:
                yield under_way.popleft().result()
        for future in under_way:
            yield future.result()
