"""What every reranker shares: candidates in, their scores out, with an account of what that took.

A reranker is a value: its settings. It sees texts, and knows nothing of who found them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from retrievers.multistage import QueryLog
from retrievers.store import Store


@dataclass(frozen=True, eq=False)
class CandidateScores:
    """The scores (float32) of a query's candidates, in their order, and what it took to find them."""

    scores: NDArray[np.float32]
    account: QueryLog = field(default_factory=QueryLog)


Rerank = Callable[[Sequence[str], Sequence[Sequence[str]], Store], list[CandidateScores]]
"""Queries, and for each its candidates' texts, best first; work worth sharing between searches goes through the store.

Returns what is judged of each query."""


@runtime_checkable
class Reranker(Protocol):
    """Settings of a way to judge candidates, as a frozen value whose repr is its identity."""

    def ready(self, store: Store) -> Rerank:
        """Return the function that judges; what is costly to open goes through the store, when it is first needed."""
        ...
