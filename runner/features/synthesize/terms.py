"""Count the terms of a corpus of chunks and their weights, once for generation and validation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.postings import Postings, load_postings
from retrievers.store import MemoryStore
from runner.features.synthesize.base import Chunks


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of all chunks, as produced by an analyzer."""

    analyzer: Analyzer
    postings: Postings
    idf: NDArray[np.float64]

    def weight(self, word: str) -> float:
        """Return the mean IDF of the terms of a word, 0 if it has none, as for stop words."""
        terms = self.analyzer.terms(word)
        return sum(self.term_weight(term) for term in terms) / len(terms) if terms else 0.0

    def term_weight(self, term: str) -> float:
        """Return the IDF of a term; for a term that no chunk has, the IDF for a document frequency of 0."""
        position = self.postings.positions.get(term)
        return float(_idf(len(self.postings.lengths), 0) if position is None else self.idf[position])


@lru_cache(maxsize=2)
def count_terms(chunks: Chunks, analyzer: Analyzer) -> Terms:
    """Return the terms of the titles and texts of chunks, counted once for the same chunks."""
    ids = [str(position) for position in range(len(chunks))]
    postings = load_postings(Corpus(ids, chunks.texts, chunks.titles), analyzer, MemoryStore())
    return Terms(analyzer, postings, _idf(len(chunks), postings.frequencies.astype(np.float64)))


def content(chunks: Chunks, position: int) -> str:
    """Return a chunk as retrievers read it: its title, then its text."""
    title = chunks.titles[position] if chunks.titles else ""
    return f"{title} {chunks.texts[position]}" if title else chunks.texts[position]


def _idf(n: int, frequencies: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Return Lucene's IDF, ln(1 + (N - df + 0.5) / (df + 0.5)), which is never negative."""
    return np.log1p((n - np.asarray(frequencies) + 0.5) / (np.asarray(frequencies) + 0.5))


def compute_share(terms: Iterable[str], others: Iterable[str]) -> float:
    """Return the share of distinct terms that are among others, 0 if there are no terms."""
    distinct = set(terms)
    return len(distinct & set(others)) / len(distinct) if distinct else 0.0
