"""Late interaction: a vector for each token of documents and queries, compared by MaxSim, exactly.

The vectors of a corpus are in memory: some 100 kB a document. For larger corpora, rerank the hits of another retriever
(`retrievers.rerankers.late_interaction`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, Rankings, create_empty_rankings, rank
from retrievers.encoders.base import Vectors
from retrievers.encoders.multi_vector import RESULTS_VERSION as MODEL_VERSION
from retrievers.encoders.multi_vector import MultiVectorModel, TokenVectors
from retrievers.search import TIMED_QUERIES, Work, build_rankings_key
from retrievers.store import NoStore, Store
from retrievers.vectors.max_sim import score_max_sim

RESULTS_VERSION = f"late interaction 1, {MODEL_VERSION}"

_BLOCK = 1 << 22
"""How many dot products are held at a time: 16 MiB."""

_SPARE = 16
"""How many candidates beyond the hits are scored again in double precision, at first."""


@settings(frozen=True, config={"extra": "forbid"}, repr=False)
class LateInteraction(MultiVectorModel):
    """Settings of late interaction, those of its model (`retrievers.encoders.multi_vector.MultiVectorModel`)."""

    access: ClassVar[Access] = Access("models", names=("model",))
    MADE_BY: ClassVar[str] = MultiVectorModel.__module__

    def index(self, corpus: Corpus, store: Store) -> LateInteractionSearcher:
        """Return a searcher; the tokens of documents are encoded unless the store has their vectors."""
        return LateInteractionSearcher(self, corpus, self.embed_documents(corpus, store), store)

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the vectors of documents and queries."""
        needs = tuple(self.plan_encoding(corpus, queries, store))
        return Work(build_rankings_key(self, corpus, queries, k), needs)


@dataclass(frozen=True, eq=False)
class LateInteractionSearcher:
    """Compares queries with the tokens of all documents. `live` keeps the open model between searches."""

    settings: LateInteraction
    corpus: Corpus
    documents: TokenVectors
    live: Store

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query, each searched alone; only the first ones count as timed."""
        vectors, encoding = self.settings.embed_queries(queries, store, self.live)
        rankings, seconds = create_empty_rankings(len(queries), min(k, len(self.corpus))), encoding.copy()
        for row in range(len(queries)):
            if len(query := vectors[row]):
                began = time.perf_counter()
                best = rank_max_sim(query, self.documents, k, self.corpus.tie_order)
                rankings.fill(row, best)
                seconds[row] += time.perf_counter() - began
        seconds[TIMED_QUERIES:] = np.nan
        return Rankings(rankings.documents, rankings.scores, seconds)

    def diagnostics(self, queries: Sequence[str], k: int, store: Store) -> dict[str, float]:
        """Return what the model cut."""
        return self.settings.count_cuts(self.corpus, queries, store)


def rank_max_sim(query: Vectors, documents: TokenVectors, k: int, tie_order: NDArray[np.int32]) -> Rankings:
    """Return the k best documents for one query, by the tie rule, out of those with a token.

    The last digits of products in single precision depend on the other documents of a block. So the best candidates are
    scored again in double precision, more of them if another document could still be among the best.
    """
    rows = np.flatnonzero(np.diff(documents.offsets)).astype(np.int32)
    rough = _score_all(query, documents, rows)
    # The largest error of a sum of products in single precision.
    reach = float(np.linalg.norm(query, axis=1).sum()) * documents.largest_norm
    error = query.shape[1] * np.finfo(np.float32).eps * reach
    depth = k + _SPARE
    while True:
        depth = min(depth, len(rows))
        places = np.argpartition(-rough, depth - 1)[:depth] if depth else np.zeros(0, dtype=np.int64)
        scores = [score_max_sim(query, documents[row]) for row in rows[places].tolist()]
        best = rank(rows[places][None], np.array([scores], dtype=np.float32), tie_order, k)
        if depth == len(rows) or best.scores[0, -1] > rough[places].min() + error:
            return best
        depth *= 4


def _score_all(query: Vectors, documents: TokenVectors, rows: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the score of each document with a token, in single precision."""
    scores = np.empty(len(rows), dtype=np.float32)
    offsets = np.append(documents.offsets[rows], documents.offsets[-1])
    size, first = max(_BLOCK // len(query), 1), 0
    while first < len(rows):
        last = max(int(np.searchsorted(offsets, offsets[first] + size, side="right")) - 1, first + 1)
        products = query @ documents.vectors[offsets[first] : offsets[last]].T
        scores[first:last] = np.maximum.reduceat(products, offsets[first:last] - offsets[first], axis=1).sum(axis=0)
        first = last
    return scores
