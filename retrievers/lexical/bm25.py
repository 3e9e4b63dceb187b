"""BM25 in five variants, computed at search time from term counts that all of them share.

A new k1, b, delta or variant costs one pass over the postings of the query terms: no tokenising, no index. As in the
originals, every variant sums over the query terms that occur in the document, once per occurrence in the query; a
document with none of them is not a hit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, Rankings
from retrievers.capabilities import Capabilities
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.block_search import Masks, search_in_parts
from retrievers.lexical.postings import RESULTS_VERSION as POSTINGS_VERSION
from retrievers.lexical.postings import Postings, build_postings_key, load_postings
from retrievers.search import Work, build_rankings_key
from retrievers.store import Key, NoStore, Store, fingerprint
from retrievers.work import LIVE_CODE, QUERY_TERMS

RESULTS_VERSION = f"bm25 1, {POSTINGS_VERSION}"

Variant = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]
Floats = NDArray[np.float64]
Column = NDArray[Any]
Weights = tuple[NDArray[np.float32], NDArray[np.float32], np.float32, np.float32]

# N documents, of which df have the term. Kamphuis et al. (2020), "Which BM25 do you mean?", compares the variants.
IDF: dict[Variant, Callable[[int, Floats], Floats]] = {
    # Lucene 8: never negative.
    "lucene": lambda n, df: np.log1p((n - df + 0.5) / (df + 0.5)),
    # Robertson et al. (1994), Okapi at TREC-3; a term in more than half of the documents has weight 0.
    "robertson": lambda n, df: np.log(np.maximum((n - df + 0.5) / (df + 0.5), 1.0)),
    # Trotman et al. (2014), Improvements to BM25 and language models examined.
    "atire": lambda n, df: np.log(n / df),
    # Lv and Zhai (2011), When documents are very long, BM25 fails!
    "bm25l": lambda n, df: np.log((n + 1) / (df + 0.5)),
    # Lv and Zhai (2011), Lower-bounding term frequency normalization.
    "bm25+": lambda n, df: np.log((n + 1) / df),
}


@settings(frozen=True, config={"extra": "forbid"})
class BM25:
    """Settings of BM25: k1 saturates the count of a term, b normalises by length, delta lifts long documents.

    With L = 1 - b + b * length / mean length, a term that occurs tf times weighs its idf times
    tf / (tf + k1 L) in lucene and robertson, (k1 + 1) tf / (tf + k1 L) in atire, that plus delta in bm25+, and
    (k1 + 1) (tf + delta L) / (tf + (k1 + delta) L) in bm25l. `delta` has its paper's value when null: 0.5 in bm25l,
    1 in bm25+; the other variants have none.
    """

    access: ClassVar[Access] = Access()
    capabilities: ClassVar[Capabilities] = Capabilities(filters=True)

    analyzer: Analyzer = Analyzer()
    k1: float = Field(default=0.9, ge=0, le=1e6, allow_inf_nan=False)  # a score must fit in 32 bits
    b: float = Field(default=0.4, ge=0, le=1)
    variant: Variant = "lucene"
    delta: float | None = Field(default=None, ge=0, le=1e6, allow_inf_nan=False)

    def index(self, corpus: Corpus, store: Store) -> BM25Searcher:
        """Return a searcher; the terms of the corpus are counted unless the store has the counts."""
        return BM25Searcher.of(self, load_postings(corpus, self.analyzer, store), corpus, store)

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the term counts of the corpus."""
        needs = (Work(build_postings_key(corpus, self.analyzer)),)
        return Work(build_rankings_key(self, corpus, queries, k), needs)

    def compute_weights(self, postings: Postings) -> Weights:
        """Return idf by term, norm by document, shift and lift, with which one formula covers all variants.

        A term that occurs tf times has the weight idf * ((tf + shift * norm) / (tf + norm) + lift).
        """
        delta = self.delta if self.delta is not None else {"bm25l": 0.5, "bm25+": 1.0}.get(self.variant, 0.0)
        lengths = 1 - self.b + self.b * postings.lengths / postings.mean_length
        idf = IDF[self.variant](len(postings.lengths), postings.frequencies.astype(np.float64))
        norm, shift, lift = self.k1 * lengths, 0.0, 0.0
        if self.variant in ("atire", "bm25l", "bm25+"):
            idf = idf * (self.k1 + 1)
        if self.variant == "bm25l" and self.k1 + delta > 0:
            norm, shift = (self.k1 + delta) * lengths, delta / (self.k1 + delta)
        if self.variant == "bm25+":
            lift = delta / (self.k1 + 1)
        return idf.astype(np.float32), norm.astype(np.float32), np.float32(shift), np.float32(lift)


class TermWeighting(Protocol):
    """Settings that weigh the terms of documents by their counts."""

    @property
    def analyzer(self) -> Analyzer:
        """Return the analyzer that turns texts into terms."""
        ...

    def compute_weights(self, postings: Postings) -> Weights:
        """Return the weights that the compiled search applies to counts."""
        ...


@dataclass(frozen=True, eq=False)
class BM25Searcher:
    """Searches term counts by BM25; `fields` names the fields by which the counts are divided, if any."""

    settings: TermWeighting
    postings: Postings
    corpus: Corpus
    fields: Sequence[str] = ()

    @classmethod
    def of(
        cls, settings: TermWeighting, postings: Postings, corpus: Corpus, store: Store, fields: Sequence[str] = ()
    ) -> BM25Searcher:
        """Return a searcher after compiling its code, which differs by the type of the counts."""
        searcher = cls(settings, postings, corpus, fields)
        compiled = Key.of(LIVE_CODE, __name__, counts=(postings.counts.dtype, postings.counts.ndim))
        store.share(compiled, lambda: searcher.search([""], 1))
        return searcher

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query, exactly. A filter does not change the statistics of terms."""
        from retrievers.compiled.bm25 import fill_rankings

        terms, starts = self._find_terms(queries, store)
        columns = (*self._columns, *self.weights, self.corpus.tie_order, self._by_place)

        def fill(part: slice, masks: Masks, documents: NDArray[np.int32], scores: NDArray[np.float32]) -> None:
            bounds = starts[part.start : part.stop + 1]
            used, numbers = np.unique(terms[bounds[0] : bounds[-1]], return_inverse=True)
            fill_rankings(used, numbers, bounds - bounds[0], *columns, *masks, documents, scores)

        return search_in_parts(queries, self.corpus, k, fill)

    def _find_terms(self, queries: Sequence[str], store: Store) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the known terms of the queries, analysed once for all weights."""
        analyzer = self.settings.analyzer
        if isinstance(store, NoStore):
            return self.postings.find_terms(queries, analyzer)
        parts = {"corpus": self.corpus.fingerprint, "analyzer": analyzer, "queries": fingerprint(*queries)}
        parts |= {"fields": ", ".join(self.fields)}
        key = Key.of(QUERY_TERMS, __name__, **parts)
        return store.share(key, lambda: self.postings.find_terms(queries, analyzer))

    @cached_property
    def weights(self) -> Weights:
        """Return the weights of the settings, computed once."""
        return self.settings.compute_weights(self.postings)

    @cached_property
    def _columns(self) -> tuple[Column, Column, Column]:
        """Return the postings as unsigned integers, which compiled code reads fastest."""
        return self.postings.offsets, self.postings.documents.view(np.uint32), self.postings.counts

    @cached_property
    def _by_place(self) -> NDArray[np.int32]:
        """Return the documents in tie order."""
        return np.argsort(self.corpus.tie_order).astype(np.int32)
