"""Parts of hybrids whose answers are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import settings

from retrievers.base import NOTHING, Corpus, Rankings, build_rankings
from retrievers.choices import list_choices
from retrievers.composed.fusion import Hybrid
from retrievers.composed.fusion_methods import Method
from retrievers.store import MemoryStore, NoStore, Store
from tests.strategies.settings import at_most

Row = dict[int, float]
"""What a part found for a query: document -> score."""

IDS = "dbfaceg"
CORPUS = Corpus(list(IDS), [f"text {i}" for i in IDS])

METHODS: tuple[Method, ...] = tuple(list_choices(Method))


@dataclass(frozen=True)
class Given:
    """A retriever whose answers are given: one row a query, which is its position."""

    rows: tuple[tuple[tuple[int, float], ...], ...]
    fails: tuple[int, ...] = ()
    timed: bool = True

    def index(self, corpus: Corpus, store: Store) -> Given:
        return self

    @property
    def tie_order(self) -> Any:
        return CORPUS.tie_order

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        rankings = build_rankings([self.rows[int(query)] for query in queries], self.tie_order, k)
        errors = {i: f"no answer to {query}" for i, query in enumerate(queries) if int(query) in self.fails}
        seconds = np.full(len(queries), 0.5, dtype=np.float32) if self.timed else None
        return replace(rankings, seconds=seconds, errors=errors)


def given_rows(*rows: Row) -> Given:
    return Given(tuple(tuple(row.items()) for row in rows))


def fuse(hybrid: Hybrid, n: int = 1, k: int = 10) -> Rankings:
    return hybrid.index(CORPUS, MemoryStore()).search([str(i) for i in range(n)], k)


def by_id(rankings: Rankings, query: int = 0) -> dict[str, float]:
    documents, scores = rankings.documents[query], rankings.scores[query]
    return {IDS[d]: float(s) for d, s in zip(documents, scores, strict=True) if d != NOTHING}


EACH_METHOD = settings(max_examples=at_most(25))
"""How many examples a test of each method draws for one of them."""
