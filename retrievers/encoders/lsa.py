"""Latent semantic analysis: vectors from the corpus itself, without a pre-trained model.

Term counts are weighted by tf-idf and factorised. A query whose words do not occur in the corpus has a zero vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings
from threadpoolctl import threadpool_limits

from retrievers.access import Access
from retrievers.base import Corpus
from retrievers.encoders.base import Embedded, Vectors, encode_alone
from retrievers.encoders.svd import factorise, scale_rows
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.postings import RESULTS_VERSION as POSTINGS_VERSION
from retrievers.lexical.postings import Postings, build_postings_key, load_postings
from retrievers.search import Work
from retrievers.store import Arrays, Key, Store, check_rows
from retrievers.work import LSA

RESULTS_VERSION = f"lsa 1, {POSTINGS_VERSION}"

_ROUNDING = 1e-6
"""Values below this, relative to 1, are rounding errors."""


@settings(frozen=True, config={"extra": "forbid"})
class LSAEncoder:
    """Settings of LSA: a truncated SVD of (1 + ln tf) * (1 + ln((1 + N) / (1 + df))), each document of length 1.

    The number of `dimensions` is at most the rank of the corpus. Deerwester et al. (1990), Indexing by latent semantic
    analysis; the SVD is randomised (Halko et al., 2011) with `seed`.
    """

    access: ClassVar[Access] = Access()
    ITERATIONS: ClassVar[int] = 5
    DTYPE: ClassVar[type[np.floating[Any]]] = np.float64

    analyzer: Analyzer = Analyzer()
    dimensions: int = Field(default=256, ge=1)
    seed: int = Field(default=0, ge=0)

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        """Return the vectors of the corpus; its term counts are factorised unless the store has the result."""
        postings = load_postings(corpus, self.analyzer, store)
        key = self._key(corpus).with_check(check_rows, len(corpus), ("documents",))
        kept = store.arrays(key, lambda: _factorise(postings, self.dimensions, self.seed, self.ITERATIONS, self.DTYPE))
        encode = partial(_fold_in, self.analyzer, postings, _idf(postings), kept["components"])

        def queries(texts: Sequence[str], store: Store) -> tuple[Vectors, NDArray[np.float32]]:
            encoded = encode_alone(texts, encode)
            return encoded["vectors"], encoded["seconds"]

        return Embedded([kept["documents"]], queries)

    def plan(self, corpus: Corpus, queries: Sequence[str], store: Store) -> Sequence[Work]:
        """Return the factorisation and the term counts as work; queries need both."""
        return Work(self._key(corpus)), Work(build_postings_key(corpus, self.analyzer))

    def _key(self, corpus: Corpus) -> Key:
        return Key.of(LSA, __name__, **corpus.key_parts, encoder=self)


@settings(frozen=True, config={"extra": "forbid"})
class RoughLSA(LSAEncoder):
    """LSA in single precision and with fewer iterations: evidence about documents, in less than half the time."""

    ITERATIONS: ClassVar[int] = 2
    DTYPE: ClassVar[type[np.floating[Any]]] = np.float32


def _idf(postings: Postings) -> NDArray[np.float64]:
    idf: NDArray[np.float64] = 1.0 + np.log((1 + len(postings.lengths)) / (1 + postings.frequencies.astype(np.float64)))
    return idf


def _factorise(
    postings: Postings, dimensions: int, seed: int, iterations: int, dtype: type[np.floating[Any]]
) -> Arrays:
    """Return `documents` (n x d), of length 1 or 0, and `components` (terms x d)."""
    from scipy.sparse import csc_matrix, diags_array

    shape = (len(postings.lengths), len(postings.vocabulary))
    if not len(postings.counts):
        return dict(zip(("documents", "components"), (np.zeros((n, 0), dtype=np.float32) for n in shape), strict=True))
    weights = 1.0 + np.log(postings.counts.astype(np.float64))
    matrix = csc_matrix((weights, postings.documents, postings.offsets), shape=shape)
    matrix = scale_rows((matrix @ diags_array(_idf(postings))).tocsr()).astype(dtype, copy=False)
    with threadpool_limits(1):  # the last digits depend on the number of threads
        left, strengths, right = factorise(matrix, min(dimensions, *shape), iterations, seed)
    rounding = max(_ROUNDING, 1000 * np.finfo(dtype).eps)
    real = strengths > rounding * strengths[0]  # the others exceed the rank of the corpus
    return {
        "documents": _directions(left[:, real] * strengths[real]),
        "components": np.ascontiguousarray(right[real].T, dtype=np.float32),
    }


def _fold_in(
    analyzer: Analyzer, postings: Postings, idf: NDArray[np.float64], components: Vectors, texts: Sequence[str]
) -> Vectors:
    """Return the vectors of texts, weighted like documents; zeros for a text without known terms."""
    terms, starts = postings.find_terms(texts, analyzer)
    vectors = np.zeros((len(texts), components.shape[1]))
    for row, (start, end) in enumerate(pairwise(starts)):
        known, counts = np.unique(terms[start:end], return_counts=True)
        weights = (1.0 + np.log(counts)) * idf[known]
        vectors[row] = weights @ components[known] / (np.linalg.norm(weights) or 1.0)
    return _directions(vectors)


def _directions(projections: NDArray[np.float64]) -> Vectors:
    """Return projections of unit vectors scaled to length 1, or 0 if almost nothing of the vector is left."""
    lengths = np.linalg.norm(projections, axis=1, keepdims=True)
    kept = lengths > _ROUNDING
    return np.where(kept, projections / np.where(kept, lengths, 1.0), 0.0).astype(np.float32)
