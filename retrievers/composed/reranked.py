"""Reranking: a slower, more precise model reorders the best hits of any other retriever, the base.

The rankings of the base are cached in the store, as are the scores of rerankers that use the store.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import NOTHING, Corpus, Rankings, RetrieverError, rank
from retrievers.capabilities import Capabilities, derive_capabilities
from retrievers.composed.multistage import Base, CachedBase, complete_rankings, list_hits
from retrievers.llm.model_calls import CallsModelsPerCandidate, ModelCalls
from retrievers.rerankers.base import Rerank, Reranker
from retrievers.search import Work, build_rankings_key, plan_rankings
from retrievers.stages import Input, Stage
from retrievers.store import NoStore, Store
from retrievers.unknown import keep_ranks
from retrievers.work import PlanStep

RESULTS_VERSION = "reranked 1"

log = logging.getLogger(__name__)


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Reranked:
    """Settings of reranking: a `reranker` scores the `depth` best hits of the `base` and adds no others.

    A hit without text (a service returned a document that the corpus lacks) keeps its rank; the other hits share out
    the remaining ranks. The diagnostic `hits_without_text` counts the hits without text.
    """

    access: ClassVar[Access] = Access()

    base: Base
    reranker: Reranker
    depth: int = Field(default=100, ge=1)

    @property
    def capabilities(self) -> Capabilities:
        """Return what the search can do: it filters if the base does."""
        return Capabilities(filters=derive_capabilities(self.base).filters, scans=False)

    def index(self, corpus: Corpus, store: Store) -> RerankedSearcher:
        """Return a searcher; the first search indexes the base and opens the model."""
        base = CachedBase.of(self.base, corpus, store)
        return RerankedSearcher(self, base, self.reranker.open(base.store))

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the reranking as work, which needs the rankings of the base."""
        base = plan_rankings(self.base, corpus, queries, self.depth, store)
        return Work(build_rankings_key(self, corpus, queries, k), (base,), PlanStep.RERANK)

    def describe_stage(self, queries: Sequence[str], k: int) -> Stage:
        """Return the reranker, which reads the candidates of the base."""
        return Stage("reranker", {"base": Input(self.base, self.depth)})

    def plan_calls(self, corpus: Corpus, queries: Sequence[str]) -> list[ModelCalls]:
        """Return the calls of the reranker, none if it calls no language model."""
        if not isinstance(self.reranker, CallsModelsPerCandidate):
            return []
        return [self.reranker.plan_candidate_calls(corpus, queries, min(self.depth, len(corpus)))]


@dataclass(frozen=True, eq=False)
class RerankedSearcher:
    """Reranks the hits of the base. The time of a query is that of both."""

    settings: Reranked
    base: CachedBase
    rerank: Rerank

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best candidates of each query by the scores of the reranker."""
        first = self.base.search(queries, self.settings.depth, store)
        corpus = self.base.corpus
        if first.unknown_ids and not len(corpus):
            raise RetrieverError("a reranker reads the texts of documents, but the dataset has no documents")
        readable = first.documents if not first.unknown_ids else _move_known_to_front(first.documents, len(corpus))
        candidates = [self.base.contents(documents) for documents in list_hits(readable)]
        judged = self.rerank(queries, candidates, store)
        scores = np.full(first.scores.shape, -np.inf, dtype=np.float32)
        for row, result in zip(scores, judged, strict=True):
            row[: len(result.scores)] = result.scores
        logs = [result.log for result in judged]
        if not first.unknown_ids:
            return complete_rankings(rank(readable, scores, corpus.tie_order, k), [first], logs)
        ranked = keep_ranks(first, rank(readable, scores, corpus.tie_order, first.depth), len(corpus))
        done = complete_rankings(ranked.cut(k), [first], logs)
        kept = float(np.count_nonzero(first.documents >= len(corpus)))
        log.warning("%s hits have no text in the corpus; they keep their rank and are not reranked", f"{kept:,.0f}")
        return replace(done, diagnostics={**done.diagnostics, "hits_without_text": kept})


def _move_known_to_front(documents: NDArray[np.int32], n: int) -> NDArray[np.int32]:
    """Move the known hits of each query to the front and drop the others."""
    outside = documents >= n
    order = np.argsort(outside, axis=1, kind="stable")
    return np.take_along_axis(np.where(outside, np.int32(NOTHING), documents), order, axis=1)
