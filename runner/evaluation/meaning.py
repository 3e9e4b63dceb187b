"""Compare documents by meaning with latent semantic analysis (LSA) of their own corpus.

No model is downloaded, and the factorisation is cached in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from retrievers.base import Corpus
from retrievers.encoders.lsa import RoughLSA
from retrievers.lexical.analyzer import Analyzer
from retrievers.store import NoStore, Store

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Meaning:
    """Documents as vectors of length 1, or 0 for one without words, in the order of their `positions` by id."""

    positions: Mapping[str, int]
    vectors: Floats
    embed: Callable[[Sequence[str]], Floats]

    @staticmethod
    def of(corpus: Corpus, analyzer: Analyzer, store: Store) -> Meaning:
        """Factorise a corpus, or load the factorisation from the store."""
        embedded = RoughLSA(analyzer=analyzer).embed(corpus, store)
        vectors = np.concatenate([np.zeros((0, 0), np.float32)] if not len(corpus) else list(embedded.documents))
        positions = {identifier: position for position, identifier in enumerate(corpus.ids)}
        return Meaning(positions, vectors, lambda texts: embedded.queries(texts, NoStore())[0])

    def rank(self, queries: Sequence[str], ids: Sequence[Sequence[str]]) -> list[int | None]:
        """Return, for each query, the rank of the nearest of its documents among all documents, from 1.

        None for a query whose vector is 0 or whose documents the corpus lacks.
        """
        ranks: list[int | None] = []
        with threadpool_limits(1):  # one query is too little work for several threads
            for embedded, own in zip(self.embed(queries), ids, strict=True):
                near = self.vectors @ embedded
                places = [self.positions[i] for i in own if i in self.positions]
                known = bool(places) and bool(near.any())
                ranks.append(int(np.count_nonzero(near > near[places].max())) + 1 if known else None)
        return ranks

    def likeness(self, ids: Sequence[str], others: Sequence[str]) -> Floats:
        """Return the largest cosine of each document with any of `others` (m,).

        It is -1 for a document that the corpus lacks, or if it lacks all others.
        """
        known = [place for place, name in enumerate(ids) if name in self.positions]
        first = [self.positions[ids[place]] for place in known]
        second = [self.positions[name] for name in others if name in self.positions]
        likeness = np.full(len(ids), -1, np.float32)
        if first and second:
            likeness[known] = (self.vectors[first] @ self.vectors[second].T).max(axis=1, initial=-1)
        return likeness
