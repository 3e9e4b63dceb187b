"""Searches an engine that has no HTTP interface, such as PostgreSQL, from threads that wait for its replies."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread

from runner.features.load.generator import Failure, Reply


class ThreadService:
    """An engine that is searched by at most `connections` threads; `search` takes the position of a query."""

    def __init__(self, search: Callable[[int], Reply], connections: int) -> None:
        self._search, self._free = search, connections
        self._requests: SimpleQueue[tuple[int, int] | None] = SimpleQueue()
        self._replies: SimpleQueue[tuple[int, Reply]] = SimpleQueue()
        self._threads = [Thread(target=self._work, daemon=True) for _ in range(connections)]
        for thread in self._threads:
            thread.start()

    def now(self) -> float:
        """Return the monotonic time."""
        return time.monotonic()

    def send(self, number: int, query: int) -> bool:
        """Give a query to a free thread; return False if there is none."""
        if not self._free:
            return False
        self._free -= 1
        self._requests.put((number, query))
        return True

    def receive(self, until: float) -> list[tuple[int, Reply]]:
        """Wait for replies, and return those that are there."""
        replies: list[tuple[int, Reply]] = []
        with suppress(Empty):
            replies.append(self._replies.get(timeout=max(until - time.monotonic(), 0)))
            while True:
                replies.append(self._replies.get_nowait())
        self._free += len(replies)
        return replies

    def abandon(self, number: int) -> None:
        """Do nothing: the thread is free again when the engine has replied."""

    def close(self) -> None:
        """End the threads, each after its search."""
        for _ in self._threads:
            self._requests.put(None)

    def _work(self) -> None:
        while (request := self._requests.get()) is not None:
            number, query = request
            try:
                reply = self._search(query)
            except Exception as error:  # of any engine
                reply = Failure(f"{type(error).__name__}: {error}")
            self._replies.put((number, reply))
