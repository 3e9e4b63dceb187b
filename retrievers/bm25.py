"""BM25 in five variants, weighed at search time on counts that all of them share.

A new k1, b, delta or variant costs one pass over the postings of the queries' terms: no tokenising, no index.
Like the originals, every variant sums over the query's terms that occur in the document, once for each occurrence in
the query; a document with none of them is not found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.analyzer import Analyzer
from retrievers.base import NOTHING, Corpus, Key, NoStore, Rankings, Store
from retrievers.postings import Postings, postings_of

Variant = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]
Floats = NDArray[np.float64]
Column = NDArray[Any]
Weights = tuple[NDArray[np.float32], NDArray[np.float32], np.float32, np.float32]

# N documents, of which df have the term. Kamphuis et al. (2020), "Which BM25 do you mean?", compares the variants.
_IDF: dict[Variant, Callable[[int, Floats], Floats]] = {
    # Lucene 8: never negative.
    "lucene": lambda n, df: np.log1p((n - df + 0.5) / (df + 0.5)),
    # Robertson et al. (1994), Okapi at TREC-3; a term in more than half of the documents counts nothing.
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

    analyzer: Analyzer = Analyzer()
    k1: float = Field(default=0.9, ge=0)
    b: float = Field(default=0.4, ge=0, le=1)
    variant: Variant = "lucene"
    delta: float | None = Field(default=None, ge=0)

    def index(self, corpus: Corpus, store: Store) -> BM25Searcher:
        """Count the corpus's terms, unless the store has them, and return a searcher."""
        postings = postings_of(corpus, self.analyzer, store)
        searcher = BM25Searcher(self, postings, corpus.tie_order)
        kept = {"counts": postings.counts.dtype, "writable": postings.counts.flags.writeable}  # each is compiled apart
        store.share(Key.of("live code", (__name__,), **kept), lambda: searcher.search([""], 1))
        return searcher


@dataclass(frozen=True, eq=False)
class BM25Searcher:
    """BM25 over counted documents."""

    settings: BM25
    postings: Postings
    tie_order: NDArray[np.int32]

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query, exactly."""
        terms, starts = self.postings.terms_of(queries, self.settings.analyzer)
        documents = np.full((len(queries), k), NOTHING, dtype=np.int32)
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        columns = (self.postings.offsets, self.postings.documents, self.postings.counts)
        _search(terms, starts, *columns, *self.weights, self.tie_order, documents, scores)
        return Rankings(documents, scores)

    @cached_property
    def weights(self) -> Weights:
        """Return the numbers that make every variant one formula.

        They are idf by term, norm by document, shift and lift: a term that occurs tf times weighs
        idf * ((tf + shift * norm) / (tf + norm) + lift).
        """
        return _weights(self.settings, self.postings)


def _weights(bm25: BM25, postings: Postings) -> Weights:
    delta = bm25.delta if bm25.delta is not None else {"bm25l": 0.5, "bm25+": 1.0}.get(bm25.variant, 0.0)
    lengths = 1 - bm25.b + bm25.b * postings.lengths / postings.mean_length
    idf = _IDF[bm25.variant](len(postings.lengths), postings.frequencies.astype(np.float64))
    norm, shift, lift = bm25.k1 * lengths, 0.0, 0.0
    if bm25.variant in ("atire", "bm25l", "bm25+"):
        idf = idf * (bm25.k1 + 1)
    if bm25.variant == "bm25l" and bm25.k1 + delta > 0:
        norm, shift = (bm25.k1 + delta) * lengths, delta / (bm25.k1 + delta)
    if bm25.variant == "bm25+":
        lift = delta / (bm25.k1 + 1)
    return idf.astype(np.float32), norm.astype(np.float32), np.float32(shift), np.float32(lift)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _search(
    terms: Column,
    starts: Column,
    offsets: Column,
    postings: Column,
    counts: Column,
    idf: Column,
    norm: Column,
    shift: np.float32,
    lift: np.float32,
    tie_order: Column,
    documents: Column,
    scores: Column,
) -> None:
    """Fill the rankings of every query, a term at a time, with a heap of the best under the one tie rule."""
    unseen = np.float32(-np.inf)
    total = np.full(len(norm), unseen, dtype=np.float32)
    found = np.empty(len(norm), dtype=np.int32)
    depth = documents.shape[1]
    for query in range(len(starts) - 1):
        n_found = 0
        for at in range(starts[query], starts[query + 1]):
            weight = idf[terms[at]]
            for entry in range(offsets[terms[at]], offsets[terms[at] + 1]):
                document = postings[entry]
                count = np.float32(counts[entry])
                gain = weight * ((count + shift * norm[document]) / (count + norm[document]) + lift)
                if total[document] == unseen:
                    total[document] = gain
                    found[n_found] = document
                    n_found += 1
                else:
                    total[document] += gain
        best, best_scores, size = documents[query], scores[query], 0
        for i in range(n_found):
            document, score = found[i], total[found[i]]
            total[document] = unseen
            if size < depth:
                _sift_up(best, best_scores, tie_order, size, document, score)
                size += 1
            elif score > best_scores[0] or (score == best_scores[0] and tie_order[document] < tie_order[best[0]]):
                _sift_down(best, best_scores, tie_order, size, document, score)
        while size > 1:  # the heap's root is its worst: it goes last
            size -= 1
            document, score = best[size], best_scores[size]
            best[size], best_scores[size] = best[0], best_scores[0]
            _sift_down(best, best_scores, tie_order, size, document, score)


@njit(cache=True, inline="always")
def _worse(score: Any, document: Any, other_score: Any, other: Any, tie_order: Column) -> bool:  # noqa: ANN401 (numbers)
    return bool(score < other_score or (score == other_score and tie_order[document] > tie_order[other]))


@njit(cache=True, nogil=True)
def _sift_up(heap: Column, heap_scores: Column, tie_order: Column, at: int, document: Any, score: Any) -> None:  # noqa: ANN401 (numbers)
    """Put a document at the end of a heap whose root is the worst, and let it rise."""
    while at > 0 and _worse(score, document, heap_scores[(at - 1) // 2], heap[(at - 1) // 2], tie_order):
        heap[at], heap_scores[at] = heap[(at - 1) // 2], heap_scores[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at], heap_scores[at] = document, score


@njit(cache=True, nogil=True)
def _sift_down(heap: Column, heap_scores: Column, tie_order: Column, size: int, document: Any, score: Any) -> None:  # noqa: ANN401 (numbers)
    """Put a document in place of a heap's root, and let it sink."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _worse(
            heap_scores[child + 1], heap[child + 1], heap_scores[child], heap[child], tie_order
        ):
            child += 1
        if not _worse(heap_scores[child], heap[child], score, document, tie_order):
            break
        heap[at], heap_scores[at] = heap[child], heap_scores[child]
        at = child
    heap[at], heap_scores[at] = document, score
