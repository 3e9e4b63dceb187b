"""The longest documents first, whatever the query is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from retrievers.base import Corpus, Rankings, rank
from retrievers.store import NoStore, Store


@dataclass(frozen=True)
class Longest:
    """Rank documents by their length."""

    most: int = 10

    def index(self, corpus: Corpus, store: Store) -> "LongestSearcher":
        """Return a searcher."""
        return LongestSearcher(corpus, self.most)


@dataclass(frozen=True)
class LongestSearcher:
    """The lengths of a corpus."""

    corpus: Corpus
    most: int

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (has no state)
        """Return the longest documents, the same for each query."""
        lengths = np.array([len(text) for text in self.corpus.texts], dtype=np.float32)
        documents = np.arange(len(self.corpus), dtype=np.int32)
        n = (len(queries), 1)
        return rank(np.tile(documents, n), np.tile(lengths, n), self.corpus.tie_order, min(k, self.most))
