"""Term counts of a corpus, counted once for each analyzer: what BM25 weighs and LSA factorises.

The columns are stored as they are used, term by term, so they can be memory-mapped. Nothing here knows a formula.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from retrievers.analyzer import Analyzer
from retrievers.base import Arrays, Corpus, Key, Store

Column = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Postings:
    """Which documents have a term how often: for term t, the entries `offsets[t]` to `offsets[t + 1]`.

    `documents` (int32, ascending for each term) and `counts` (the smallest unsigned integer that holds them) have one
    entry a pair; `lengths` (int32) is the number of terms of each document.
    """

    vocabulary: Sequence[str]
    offsets: NDArray[np.int64]
    documents: NDArray[np.int32]
    counts: NDArray[np.unsignedinteger]
    lengths: NDArray[np.int32]

    @cached_property
    def positions(self) -> dict[str, int]:
        """Return each term's position in the vocabulary."""
        return {term: position for position, term in enumerate(self.vocabulary)}

    @cached_property
    def frequencies(self) -> NDArray[np.int64]:
        """Return how many documents have each term."""
        return np.diff(self.offsets)

    @cached_property
    def mean_length(self) -> float:
        """Return the mean number of terms of a document, empty ones included (1 for a corpus without terms)."""
        return float(self.lengths.mean()) or 1.0 if len(self.lengths) else 1.0

    def terms_of(self, queries: Sequence[str], analyzer: Analyzer) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the known terms of queries, one after the other, and where each query's begin (n + 1)."""
        known = self.positions
        terms = [[known[t] for t in analyzer.tokens(query) if t in known] for query in queries]
        starts = np.zeros(len(queries) + 1, dtype=np.int64)
        np.cumsum([len(t) for t in terms], out=starts[1:])
        return np.array([t for row in terms for t in row], dtype=np.int32), starts


def postings_of(corpus: Corpus, analyzer: Analyzer, store: Store) -> Postings:
    """Return the postings of a corpus, counted once for each corpus and analyzer."""
    key = Key.of("postings", _MADE_BY, corpus=corpus.fingerprint, analyzer=analyzer)

    def count_terms() -> Arrays:
        compiled = Key.of("live code", _MADE_BY)  # compiling is no part of the time that counting takes
        store.share(compiled, lambda: _count(Corpus(["id"], ["word"]), analyzer))
        return _count(corpus, analyzer)

    def load() -> Postings:
        kept = store.arrays(key, count_terms)
        text = kept["vocabulary"].tobytes().decode("utf-8", "surrogatepass")
        columns = (kept[name] for name in ("offsets", "documents", "counts", "lengths"))
        return Postings(text.split("\n") if text else [], *columns)

    return store.share(Key.of("live postings", _MADE_BY, corpus=corpus.fingerprint, analyzer=analyzer), load)


_MADE_BY = ("retrievers.postings", "retrievers.analyzer")


def _count(corpus: Corpus, analyzer: Analyzer) -> Arrays:
    # Distinct words get numbers as they appear; each is analysed once, and its terms then stand in for its number.
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    number = numbers.__getitem__
    words, ends = array("i"), array("q")
    for content in corpus.contents():
        words.extend(map(number, analyzer.raw(content)))
        ends.append(len(words))
    vocabulary: defaultdict[str, int] = defaultdict(count().__next__)
    terms, starts = array("i"), array("q", [0])
    for word in numbers:
        terms.extend(map(vocabulary.__getitem__, analyzer.terms(word)))
        starts.append(len(terms))
    del numbers
    # A term never holds white space, so lines keep the vocabulary.
    lines = "\n".join(vocabulary).encode("utf-8", "surrogatepass")
    columns = (_column(words, np.int32), _column(ends, np.int64), _column(terms, np.int32), _column(starts, np.int64))
    frequencies, lengths, largest = _frequencies(*columns, len(vocabulary))
    offsets = np.zeros(len(vocabulary) + 1, dtype=np.int64)
    np.cumsum(frequencies, out=offsets[1:])
    counts = np.zeros(offsets[-1], dtype=np.min_scalar_type(max(largest, 1)))
    documents = np.zeros(offsets[-1], dtype=np.int32)
    _fill(*columns, offsets, offsets.copy(), documents, counts)
    return {
        "vocabulary": np.frombuffer(lines, dtype=np.uint8),
        "offsets": offsets,
        "documents": documents,
        "counts": counts,
        "lengths": lengths,
    }


def _column(values: array[int], dtype: type[np.integer[Any]]) -> Column:
    return np.frombuffer(values, dtype) if len(values) else np.zeros(0, dtype)


@njit(cache=True)
def _frequencies(
    words: Column, ends: Column, terms: Column, starts: Column, n_terms: int
) -> tuple[Column, Column, int]:
    """Return the document frequency of each term, the length of each document, and the largest count."""
    frequencies = np.zeros(n_terms, dtype=np.int64)
    lengths = np.zeros(len(ends), dtype=np.int32)
    seen = np.full(n_terms, -1, dtype=np.int32)  # the last document that had the term
    within = np.zeros(n_terms, dtype=np.int32)  # how often that document has it so far
    largest, begin = 0, 0
    for document in range(len(ends)):
        for at in range(begin, ends[document]):
            for entry in range(starts[words[at]], starts[words[at] + 1]):
                term = terms[entry]
                if seen[term] != document:
                    seen[term] = document
                    within[term] = 0
                    frequencies[term] += 1
                within[term] += 1
                largest = max(largest, within[term])
                lengths[document] += 1
        begin = ends[document]
    return frequencies, lengths, largest


@njit(cache=True)
def _fill(
    words: Column,
    ends: Column,
    terms: Column,
    starts: Column,
    offsets: Column,
    free: Column,
    documents: Column,
    counts: Column,
) -> None:
    """Write each (term, document) pair once; `free` is the next free entry of each term and is used up."""
    begin = 0
    for document in range(len(ends)):
        for at in range(begin, ends[document]):
            for entry in range(starts[words[at]], starts[words[at] + 1]):
                term = terms[entry]
                last = free[term] - 1
                if last >= offsets[term] and documents[last] == document:  # documents come in order
                    counts[last] += 1
                else:
                    documents[free[term]] = document
                    counts[free[term]] = 1
                    free[term] += 1
        begin = ends[document]
