"""A store that counts what is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from retrievers.store import Arrays, Key, MemoryStore


class Builds(MemoryStore):
    """A store that counts what is built, by kind."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        def counted() -> Arrays:
            self.count[key.kind.name] += 1
            return build()

        return super().arrays(key, counted)
