"""Late interaction: a vector for each token of documents and queries, compared by MaxSim, exactly.

The vectors of a corpus are in memory: some 100 kB a document. For larger corpora, rerank the hits of another retriever
(`retrievers.rerankers.late_interaction`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus, Rankings, create_empty_rankings
from retrievers.encoders.multi_vector import MultiVectorModel, TokenVectors
from retrievers.max_sim import rank_max_sim
from retrievers.search import TIMED_QUERIES, Work, build_rankings_key
from retrievers.store import NoStore, Store


@settings(frozen=True, config={"extra": "forbid"}, repr=False)
class LateInteraction(MultiVectorModel):
    """Settings of late interaction, those of its model (`retrievers.encoders.multi_vector.MultiVectorModel`)."""

    def index(self, corpus: Corpus, store: Store) -> LateInteractionSearcher:
        """Return a searcher; the tokens of documents are encoded unless the store has their vectors."""
        return LateInteractionSearcher(self, corpus, self.embed_documents(corpus, store), store)

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the vectors of documents and queries."""
        needs = tuple(self.plan_encoding(corpus, queries, store))
        return Work("search", build_rankings_key(self, corpus, queries, k), needs)


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
        rankings, seconds = create_empty_rankings(len(queries), k), encoding.copy()
        for row in range(len(queries)):
            if len(query := vectors[row]):
                began = time.perf_counter()
                best = rank_max_sim(query, self.documents, k, self.corpus.tie_order)
                rankings.documents[row], rankings.scores[row] = best.documents[0], best.scores[0]
                seconds[row] += time.perf_counter() - began
        seconds[TIMED_QUERIES:] = np.nan
        return Rankings(rankings.documents, rankings.scores, seconds)
