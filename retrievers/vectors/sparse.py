"""Learned sparse retrieval: a model weighs the terms of documents and queries, and a score is their dot product.

Formal et al. (2021), SPLADE: sparse lexical and expansion model for first stage ranking. The terms of a text need not
occur in it. Pruning keeps the heaviest terms only; the stored weights serve any number of them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, Rankings, list_filters
from retrievers.capabilities import Capabilities
from retrievers.compiled.layouts import DocumentBlocks
from retrievers.encoders.sparse import RESULTS_VERSION as MODEL_VERSION
from retrievers.encoders.sparse import SparseModel
from retrievers.lexical.block_search import Masks, search_in_parts
from retrievers.lexical.postings import RESULTS_VERSION as POSTINGS_VERSION
from retrievers.search import TIMED_QUERIES, Work, build_rankings_key
from retrievers.store import Key, NoStore, Store
from retrievers.vectors.term_weights import DamagedWeightsError, TermWeights, join_weights
from retrievers.vectors.weighted_postings import WeightedPostings, build_postings, read_postings
from retrievers.work import LIVE_CODE, LIVE_POSTINGS, WEIGHTED_POSTINGS

RESULTS_VERSION = f"sparse 1, {MODEL_VERSION}, {POSTINGS_VERSION}"

Column = NDArray[Any]

_PER_HIT = 8192
"""The number of documents for each hit from which bounds of blocks are worth computing."""

log = logging.getLogger(__name__)


@settings(frozen=True, config={"extra": "forbid"}, repr=False)
class LearnedSparse(SparseModel):
    """Settings of learned sparse retrieval, with those of its model.

    `document_terms` and `query_terms` keep the heaviest terms of each document and query; null keeps all.
    """

    access: ClassVar[Access] = Access("models", names=("model",))
    MADE_BY: ClassVar[str] = SparseModel.__module__
    capabilities: ClassVar[Capabilities] = Capabilities(filters=True)

    document_terms: int | None = Field(default=None, ge=1)
    query_terms: int | None = Field(default=None, ge=1)

    def index(self, corpus: Corpus, store: Store) -> LearnedSparseSearcher:
        """Return a searcher; documents are encoded and their postings built unless the store has them."""
        searcher = LearnedSparseSearcher(self, corpus, self._load_postings(corpus, store), store)
        store.share(Key.of(LIVE_CODE, __name__), lambda: searcher.compile())
        return searcher

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the postings and the weights of the queries."""
        *documents, of_queries = self.plan_encoding(corpus, queries, store)
        index = Work(self._build_postings_key(corpus), tuple(documents))
        return Work(build_rankings_key(self, corpus, queries, k), (index, of_queries))

    def _build_postings_key(self, corpus: Corpus) -> Key:
        parts = {**corpus.key_parts, **self.list_parts("document"), "document_terms": self.document_terms}
        return Key.of(WEIGHTED_POSTINGS, __name__, **parts)

    def _load_postings(self, corpus: Corpus, store: Store) -> WeightedPostings:
        key = self._build_postings_key(corpus)

        def build() -> dict[str, Column]:
            shards = self.weigh_documents(corpus, store)
            return dict(build_postings(join_weights([shard.prune(self.document_terms) for shard in shards])))

        def load() -> WeightedPostings:
            try:
                return read_postings(store.arrays(key, build), len(corpus))
            except DamagedWeightsError as error:
                log.warning("%s; building them again", error)
                return read_postings(build(), len(corpus))

        return store.share(Key.of(LIVE_POSTINGS, __name__, **dict(key.parts)), load)


@dataclass(frozen=True, eq=False)
class LearnedSparseSearcher:
    """Searches postings of term weights. `live` keeps the open model between searches."""

    settings: LearnedSparse
    corpus: Corpus
    postings: WeightedPostings
    live: Store

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query, exactly; the first queries are searched one by one and timed."""
        weighted, seconds = self.settings.weigh_queries(queries, store, self.live)
        weighted, seconds = weighted.prune(self.settings.query_terms), seconds.copy()
        rankings = self.search_weighted(weighted, queries, k)
        seconds[TIMED_QUERIES:] = np.nan
        for position, query in enumerate(queries[:TIMED_QUERIES]):
            alone = weighted.select(position)
            began = time.perf_counter()
            self.search_weighted(alone, [query], k)
            seconds[position] += time.perf_counter() - began
        return replace(rankings, seconds=seconds)

    def diagnostics(self, queries: Sequence[str], k: int, store: Store) -> dict[str, float]:
        """Return what the model cut."""
        return self.settings.count_cuts(self.corpus, queries, store)

    def compile(self) -> None:
        """Compile the search of all documents with a query that has no terms."""
        columns = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
        self.search_weighted(TermWeights(0, np.zeros(2, dtype=np.int64), *columns), [""], max(len(self.corpus), 1))

    def search_weighted(self, weighted: TermWeights, queries: Sequence[str], k: int) -> Rankings:
        """Return the k best documents of each query, given its weights.

        If k is small for the corpus, only blocks of documents that can have hits are scored. The result is the same.
        """
        from retrievers.compiled.block_maxima import fill_rankings_by_blocks
        from retrievers.compiled.sparse import fill_rankings

        (offsets, *columns), ties = self._columns, self._ties
        prunes = len(self.corpus) > _PER_HIT * k and not any(list_filters(queries))
        blocks = self._blocks if prunes else None

        def fill(part: slice, masks: Masks, *filled: Column) -> None:
            bounds = weighted.offsets[part.start : part.stop + 1]
            entries = slice(bounds[0], bounds[-1])
            parts = weighted.terms[entries], weighted.weights[entries], bounds - bounds[0]
            if len(offsets) <= weighted.n_terms:  # an empty corpus has no terms
                return
            if blocks:
                fill_rankings_by_blocks(*parts, offsets, *columns, blocks, *ties, *filled)
            else:
                fill_rankings(*parts, offsets, *columns, *ties, *masks, *filled)

        return search_in_parts(queries, self.corpus, k, fill)

    @cached_property
    def _columns(self) -> tuple[Column, Column, Column]:
        """Return the postings, with documents as unsigned integers, which compiled code reads fastest."""
        return self.postings.offsets, self.postings.documents.view(np.uint32), self.postings.weights

    @cached_property
    def _ties(self) -> tuple[Column, Column]:
        """Return the tie order of documents, and the documents in this order."""
        order = self.corpus.tie_order
        return order, np.argsort(order).astype(np.int32)

    @cached_property
    def _blocks(self) -> DocumentBlocks:
        return self.postings.build_blocks(len(self.corpus))
