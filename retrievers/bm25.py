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
from retrievers.base import NOTHING, Corpus, Key, NoStore, Rankings, Store, fingerprint
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
    k1: float = Field(default=0.9, ge=0, le=1e6, allow_inf_nan=False)  # a score must fit in 32 bits
    b: float = Field(default=0.4, ge=0, le=1)
    variant: Variant = "lucene"
    delta: float | None = Field(default=None, ge=0, le=1e6, allow_inf_nan=False)

    def index(self, corpus: Corpus, store: Store) -> BM25Searcher:
        """Count the corpus's terms, unless the store has them, and return a searcher."""
        postings = postings_of(corpus, self.analyzer, store)
        searcher = BM25Searcher(self, postings, corpus)
        kept = {"counts": postings.counts.dtype, "writable": postings.counts.flags.writeable}  # each is compiled apart
        store.share(Key.of("live code", (__name__,), **kept), lambda: searcher.search([""], 1))
        return searcher


@dataclass(frozen=True, eq=False)
class BM25Searcher:
    """BM25 over counted documents."""

    settings: BM25
    postings: Postings
    corpus: Corpus

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query, exactly."""
        terms, starts = self._terms_of(queries, store)
        used, numbers = np.unique(terms, return_inverse=True)
        columns = (self.postings.offsets, self.postings.documents, self.postings.counts)
        gains, begins = _gains(used, *columns, *self.weights)
        documents = np.full((len(queries), k), NOTHING, dtype=np.int32)
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        places = (self.corpus.tie_order, self._by_place)
        _search(terms, numbers, starts, *columns[:2], gains, begins, *places, documents, scores)
        return Rankings(documents, scores)

    def _terms_of(self, queries: Sequence[str], store: Store) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the queries' known terms, analysed once for all weights."""
        analyzer = self.settings.analyzer
        if isinstance(store, NoStore):
            return self.postings.terms_of(queries, analyzer)
        parts = {"corpus": self.corpus.fingerprint, "analyzer": analyzer, "queries": fingerprint(*queries)}
        key = Key.of("query terms", (__name__, "retrievers.postings", "retrievers.analyzer"), **parts)
        return store.share(key, lambda: self.postings.terms_of(queries, analyzer))

    @cached_property
    def weights(self) -> Weights:
        """Return the numbers that make every variant one formula.

        They are idf by term, norm by document, shift and lift: a term that occurs tf times weighs
        idf * ((tf + shift * norm) / (tf + norm) + lift).
        """
        return _weights(self.settings, self.postings)

    @cached_property
    def _by_place(self) -> NDArray[np.int32]:
        """Return the document at each place of the tie order."""
        return np.argsort(self.corpus.tie_order).astype(np.int32)


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


_LEAST, _NOUGHT = np.float32(1e-30), np.float32(1e-20)
"""A term that weighs nothing counts this little, so that its documents are found; a sum of such is 0 in the end."""

_BUCKETS = 1024


@njit(cache=True, nogil=True, fastmath={"contract"})
def _gains(
    used: Column,
    offsets: Column,
    postings: Column,
    counts: Column,
    idf: Column,
    norm: Column,
    shift: np.float32,
    lift: np.float32,
) -> tuple[Column, Column]:
    """Weigh the postings of some terms, once each; return the gains, term after term, and where each term's begin."""
    begins = np.zeros(len(used) + 1, dtype=np.int64)
    for number in range(len(used)):
        begins[number + 1] = begins[number] + offsets[used[number] + 1] - offsets[used[number]]
    gains = np.empty(begins[-1], dtype=np.float32)
    for number in range(len(used)):
        weight, first = idf[used[number]], offsets[used[number]]
        for i in range(begins[number + 1] - begins[number]):
            count, length = np.float32(counts[first + i]), norm[postings[first + i]]
            gain = weight * ((count + shift * length) / (count + length) + lift)
            gains[begins[number] + i] = max(gain, _LEAST)
    return gains, begins


@njit(cache=True, nogil=True)
def _search(
    terms: Column,
    numbers: Column,
    starts: Column,
    offsets: Column,
    postings: Column,
    gains: Column,
    begins: Column,
    tie_order: Column,
    by_place: Column,
    documents: Column,
    scores: Column,
) -> None:
    """Fill the rankings of every query: add up gains a term at a time, then find the best.

    A histogram of the scores tells which documents can be among the best; those few are sorted by one integer each, in
    which score and place decide as in `retrievers.base.rank`.
    """
    n_documents, depth = len(tie_order), documents.shape[1]
    total = np.zeros(n_documents, dtype=np.float32)
    bits = total.view(np.int32)  # of a positive number they order as it does
    keys = np.empty(n_documents, dtype=np.int64)
    histogram = np.empty(_BUCKETS, dtype=np.int32)
    for query in range(len(starts) - 1):
        for at in range(starts[query], starts[query + 1]):
            first, begin = offsets[terms[at]], begins[numbers[at]]
            for i in range(begins[numbers[at] + 1] - begin):
                total[postings[first + i]] += gains[begin + i]
        highest = np.float32(0)
        for document in range(n_documents):
            highest = max(highest, total[document])
        scale = np.float32(_BUCKETS - 1) / highest if highest > _NOUGHT else np.float32(0)
        histogram[:] = 0
        for document in range(n_documents):
            histogram[int(total[document] * scale)] += 1
        bucket, reached = _BUCKETS - 1, histogram[_BUCKETS - 1]
        while bucket > 0 and reached < depth:
            bucket -= 1
            reached += histogram[bucket]
        n_found = 0
        for document in range(n_documents):
            if total[document] > 0 and int(total[document] * scale) >= bucket:
                score = bits[document] if total[document] > _NOUGHT else 0
                keys[n_found] = np.int64(~score) << 32 | np.int64(tie_order[document])
                n_found += 1
        for place, key in enumerate(np.sort(keys[:n_found])[:depth]):
            document = by_place[key & 0xFFFFFFFF]
            documents[query, place] = document
            scores[query, place] = total[document] if total[document] > _NOUGHT else np.float32(0)
        total[:] = 0
