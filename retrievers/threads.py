"""Work side by side in threads, for compiled code that lets go of Python's lock. It knows nothing of the work.

How many threads there are is what numba may use: NUMBA_NUM_THREADS, or the processors that the process may run on. It
decides no result, so it is part of no key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from numba import config

T = TypeVar("T")
R = TypeVar("R")


def count_threads() -> int:
    """Return how many threads may work side by side."""
    return int(config.NUMBA_NUM_THREADS)


def map_threads(work: Callable[[T], R], items: Iterable[T], threads: int | None = None) -> Iterator[R]:
    """Yield what is made of each item, in the items' order; of these no more are taken than threads can soon have."""
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
