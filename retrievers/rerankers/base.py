"""The interface of rerankers: candidate texts in, their scores and a log out. A reranker is a value: its settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from retrievers.notes import QueryLog
from retrievers.store import Store


@dataclass(frozen=True, eq=False)
class CandidateScores:
    """The scores of a query's candidates, float32 in their order, and the log of the work."""

    scores: NDArray[np.float32]
    log: QueryLog = field(default_factory=QueryLog)


Rerank = Callable[[Sequence[str], Sequence[Sequence[str]], Store], list[CandidateScores]]
"""Takes queries, the texts of each query's candidates, best first, and a store for shared work; scores each query."""


@runtime_checkable
class Reranker(Protocol):
    """Settings of a reranker, as a frozen value whose repr is its identity."""

    def open(self, store: Store) -> Rerank:
        """Return the function that scores candidates; a model is opened through the store by its first use."""
        ...
