"""Retrievers that misbehave in ways that only a process of their own survives."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar, Literal

import numpy as np

from retrievers.base import Corpus, Rankings, build_rankings
from retrievers.capabilities import Capabilities
from retrievers.store import NoStore, Store
from runner.sweep import workers


@dataclass(frozen=True)
class Unruly:
    """Finds document `number` first; before that it dies, hangs past its time limit or eats memory.

    `dies` is how often its worker is killed, counted by files in `folder`, so that a later try may succeed.
    """

    number: int = 0
    does: Literal["search", "die", "exit", "late", "eat", "raise"] = "search"
    dies: int = 1
    folder: str = ""
    seconds: float = 60.0

    def index(self, corpus: Corpus, store: Store) -> UnrulySearcher:
        """Return a searcher."""
        return UnrulySearcher(self, corpus)


@dataclass(frozen=True)
class Service(Unruly):
    """A service, whose results are never taken from an earlier time."""

    capabilities: ClassVar[Capabilities] = Capabilities(live=True)


@dataclass(frozen=True)
class UnrulySearcher:
    """Misbehaves as its settings say."""

    settings: Unruly
    corpus: Corpus

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the same document for each query."""
        folder, does = Path(self.settings.folder), self.settings.does
        if does == "raise":
            raise RuntimeError("no luck")
        if does == "late":  # the time limit of this worker passes now
            workers.time = SimpleNamespace(monotonic=lambda: math.inf)  # type: ignore[assignment]  # its clock
            time.sleep(self.settings.seconds)
        if does == "eat":
            eaten = [np.ones(2**24) for _ in range(4)]  # 512 MiB
            time.sleep(self.settings.seconds)
            del eaten
        if does == "exit":
            os._exit(3)
        if does == "die" and len(list(folder.iterdir())) < self.settings.dies:
            (folder / str(time.monotonic_ns())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return build_rankings([[(self.settings.number, 1.0)]] * len(queries), self.corpus.tie_order, k)
