"""Generate term weights like those of SPLADE, for any number of documents and queries, from a seed.

A text draws half of its terms from its topic, a fifth from a second topic, and the others from all terms. Topics and
the terms of each are drawn by Zipf's law, and so are all terms (rank r has a probability proportional to 1 / (r + 10)).
A term that is drawn twice counts once. As in SPLADE, a weight is log(1 + x): x has an exponential distribution, whose
mean is larger for terms of the topic, and differs between terms. Weights of queries are raised to a power, so that few
terms have most of the weight.

For SPLADE on MS MARCO, Bruch et al. (2024), Efficient inverted indexes for approximate retrieval over learned sparse
representations, report 119 terms a document and 43 a query; the 50 and the 10 heaviest have 75 % of the weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from retrievers.vectors.term_weights import TermWeights, join_weights

_BLOCK = 8192
_REPEATED = 1.18  # draws for each distinct term
_SHARES = 0.5, 0.7  # of terms from the first topic, and from both
_MEANS = 1.2, 0.5  # of x, for terms of the first topic and for others
_QUERY_POWER = 1.7
_LEAST = 0.01  # the smallest weight of SPLADE that matters


@dataclass(frozen=True)
class SyntheticWeights:
    """Settings of the weights: the mean number of terms of texts, the number of all terms, and the size of topics."""

    document_terms: int = 120
    query_terms: int = 40
    n_terms: int = 30522
    topics: int = 4096
    topic_terms: int = 512
    seed: int = 0

    def weigh_documents(self, n: int) -> TermWeights:
        """Return the weights of documents."""
        sizes = [min(n - first, _BLOCK) for first in range(0, n, _BLOCK)]
        generators = [np.random.default_rng([self.seed, 1, number]) for number in range(len(sizes))]
        blocks = zip(generators, sizes, strict=True)
        return join_weights([self._draw(rng, size, self.document_terms, 1) for rng, size in blocks])

    def weigh_queries(self, n: int) -> TermWeights:
        """Return the weights of queries."""
        return self._draw(np.random.default_rng([self.seed, 2]), n, self.query_terms, _QUERY_POWER)

    @cached_property
    def _topics(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the terms of each topic, and the strength of each term."""
        rng = np.random.default_rng([self.seed, 0])
        picked = _throw(rng, (self.topics, self.topic_terms), self.n_terms, 10, 0.5)
        return picked, rng.gamma(4, 1 / 4, self.n_terms)

    def _draw(self, rng: np.random.Generator, n: int, mean: int, power: float) -> TermWeights:
        picked, strengths = self._topics
        lengths = np.maximum(rng.gamma(6, mean * _REPEATED / 6, n).astype(np.int64), 5)
        texts, topics = np.repeat(np.arange(n), lengths), _throw(rng, (2, n), self.topics, 20, 0.8)
        kinds = np.digitize(rng.random(len(texts)), _SHARES)
        terms, ranks = _throw(rng, len(texts), self.n_terms, 10, 1), _throw(rng, len(texts), self.topic_terms, 10, 1)
        for kind in (0, 1):
            here = kinds == kind
            terms[here] = picked[topics[kind][texts[here]], ranks[here]]
        x = rng.exponential(np.where(kinds == 0, *_MEANS)) * strengths[terms]
        weights = np.maximum(np.log1p(x), _LEAST) ** power
        shuffled = np.random.default_rng([self.seed, 3]).permutation(self.n_terms)  # a number does not tell the rank
        keys, at = np.unique(texts * self.n_terms + shuffled[terms], return_index=True)
        offsets = np.searchsorted(keys, np.arange(n + 1) * self.n_terms)
        return TermWeights(
            self.n_terms, offsets, (keys % self.n_terms).astype(np.int32), weights[at].astype(np.float32)
        )


def _throw(
    rng: np.random.Generator, shape: int | tuple[int, ...], n: int, flattened: float, exponent: float
) -> NDArray[np.int64]:
    """Return ranks below n, of which rank r has a probability proportional to 1 / (r + flattened) ** exponent."""
    chances = np.cumsum(1 / (np.arange(n) + flattened) ** exponent)
    return np.searchsorted(chances, rng.random(shape) * chances[-1])
