"""Reranking: the best of a first stage, whatever that is, in the order of a second, slower and surer look.

A reranked retriever is a retriever. The first stage's rankings go through the store, and so does what a reranker
wants kept. How either works is not known here.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import NOTHING, Corpus, Rankings, rank
from retrievers.multistage import Base, CachedBase, complete_rankings, list_hits
from retrievers.rerankers.base import Rerank, Reranker
from retrievers.search import Work, build_rankings_key, plan_rankings
from retrievers.store import NoStore, Store
from retrievers.unknown import keep_ranks

log = logging.getLogger(__name__)


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Reranked:
    """Settings of a reranking: a `reranker` scores the `depth` best of the `base`; nothing else is found.

    A hit whose text is missing, because a service returned a document that the corpus lacks, keeps its rank; the
    others share out the ranks that are left. The figure `hits_without_text` counts such hits.
    """

    base: Base
    reranker: Reranker
    depth: int = Field(default=100, ge=1)

    def index(self, corpus: Corpus, store: Store) -> RerankedSearcher:
        """Return a searcher; the base is indexed, and a model opened, when it is first needed."""
        stage = CachedBase.of(self.base, corpus, store)
        return RerankedSearcher(self, stage, self.reranker.ready(stage.store))

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the reranking, which needs the rankings of the base."""
        base = plan_rankings(self.base, corpus, queries, self.depth, store)
        return Work("rerank", build_rankings_key(self, corpus, queries, k), (base,))


@dataclass(frozen=True, eq=False)
class RerankedSearcher:
    """A reranking of what a first stage finds. A query takes as long as both do for it."""

    settings: Reranked
    stage: CachedBase
    rerank: Rerank

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best candidates of each query by their new scores."""
        first = self.stage.search(queries, self.settings.depth, store)
        corpus = self.stage.corpus
        readable = first.documents if not first.unknown_ids else _front(first.documents, len(corpus))
        candidates = [self.stage.contents(documents) for documents in list_hits(readable)]
        judged = self.rerank(queries, candidates, store)
        scores = np.full(first.scores.shape, -np.inf, dtype=np.float32)
        for row, each in zip(scores, judged, strict=True):
            row[: len(each.scores)] = each.scores
        accounts = [each.account for each in judged]
        if not first.unknown_ids:
            return complete_rankings(rank(readable, scores, corpus.tie_order, k), [first], accounts)
        ranked = keep_ranks(first, rank(readable, scores, corpus.tie_order, max(first.depth, k)), len(corpus))
        done = complete_rankings(ranked.cut(k), [first], accounts)
        kept = float(np.count_nonzero(first.documents >= len(corpus)))
        log.warning("%s hits have no text in the corpus: they keep their rank and are not reranked", f"{kept:,.0f}")
        return replace(done, diagnostics={**done.diagnostics, "hits_without_text": kept})


def _front(documents: NDArray[np.int32], n: int) -> NDArray[np.int32]:
    """Return the known hits of each query, moved to the front."""
    outside = documents >= n
    order = np.argsort(outside, axis=1, kind="stable")
    return np.take_along_axis(np.where(outside, np.int32(NOTHING), documents), order, axis=1)
