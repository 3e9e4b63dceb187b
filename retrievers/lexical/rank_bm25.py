"""The package rank_bm25, which many published comparisons used.

It scores every document for every query, in Python, and is slow. It uses the same analyzer as the module `bm25`, so
that differences come from the formulas only.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings
from rank_bm25 import BM25L, BM25Okapi, BM25Plus

from retrievers.access import Access
from retrievers.base import Corpus, Rankings, create_empty_rankings, rank
from retrievers.lexical.analyzer import RESULTS_VERSION as ANALYZER_VERSION
from retrievers.lexical.analyzer import Analyzer
from retrievers.search import Work, build_rankings_key
from retrievers.store import Key, NoStore, Store
from retrievers.work import TOKENS_BY_TIE_ORDER

RESULTS_VERSION = f"rank_bm25 1, {ANALYZER_VERSION}"


@settings(frozen=True, config={"extra": "forbid"})
class RankBM25:
    """Settings of rank_bm25's three variants, after Trotman et al. (2014), Improvements to BM25.

    `epsilon`, of okapi only, times the mean idf is the idf of a term in more than half of the documents. `delta`, of l
    and plus, is the package's default when null: 0.5 and 1. Every document with a term of the query is a hit, whatever
    its score.
    """

    access: ClassVar[Access] = Access()

    analyzer: Analyzer = Analyzer()
    variant: Literal["okapi", "l", "plus"] = "okapi"
    k1: float = Field(default=1.5, gt=0, le=1e6, allow_inf_nan=False)
    b: float = Field(default=0.75, ge=0, le=1)
    epsilon: float = Field(default=0.25, ge=0, le=1e6, allow_inf_nan=False)
    delta: float | None = Field(default=None, ge=0, le=1e6, allow_inf_nan=False)

    def index(self, corpus: Corpus, store: Store) -> RankBM25Searcher:
        """Pass the terms of the corpus, computed once per analyzer, to the package, and return a searcher."""
        # In tie order, so that the sums of the package do not depend on the order of the corpus.
        order = np.argsort(corpus.tie_order).astype(np.int32)

        def tokens() -> tuple[list[list[str]], Mapping[str, list[int]]]:
            contents = list(corpus.contents())
            documents = [self.analyzer.tokens(contents[document]) for document in order]
            return documents, _holders(documents)

        terms, holders = store.share(self._tokens_key(corpus), tokens)
        return RankBM25Searcher(self, self._model(terms) if any(terms) else None, holders, order, corpus.tie_order)

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the terms of the corpus."""
        needs = (Work(self._tokens_key(corpus)),)
        return Work(build_rankings_key(self, corpus, queries, k), needs)

    def _tokens_key(self, corpus: Corpus) -> Key:
        return Key.of(TOKENS_BY_TIE_ORDER, __name__, **corpus.key_parts, analyzer=self.analyzer)

    def _model(self, terms: list[list[str]]) -> BM25Okapi | BM25L | BM25Plus:
        if self.variant == "okapi":
            return BM25Okapi(terms, k1=self.k1, b=self.b, epsilon=self.epsilon)
        delta = {} if self.delta is None else {"delta": self.delta}
        return {"l": BM25L, "plus": BM25Plus}[self.variant](terms, k1=self.k1, b=self.b, **delta)


def _holders(documents: Sequence[Sequence[str]]) -> Mapping[str, list[int]]:
    """Return the documents of each term."""
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for position, terms in enumerate(documents):
        for term in set(terms):
            holders[term].append(position)
    return dict(holders)


@dataclass(frozen=True, eq=False)
class RankBM25Searcher:
    """Searches with a model of the package, None for a corpus without terms; its document n is the corpus's `order[n]`.

    `holders` has the documents of the model by term.
    """

    settings: RankBM25
    model: Any
    holders: Mapping[str, list[int]]
    order: NDArray[np.int32]
    tie_order: NDArray[np.int32]

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query, exactly, one query after the other."""
        rankings = create_empty_rankings(len(queries), min(k, len(self.order)))
        seconds = np.zeros(len(queries), dtype=np.float32)
        for position, query in enumerate(queries):
            start = time.perf_counter()
            terms = self.settings.analyzer.tokens(query)
            matched = sorted({document for term in set(terms) for document in self.holders.get(term, ())})
            if matched:
                with np.errstate(invalid="ignore"):  # b = 1 divides by the length of empty documents
                    scores = self.model.get_scores(terms)[matched]
                best = rank(self.order[matched][None], scores[None], self.tie_order, k)
                rankings.fill(position, best)
            seconds[position] = time.perf_counter() - start
        return replace(rankings, seconds=seconds)
