"""Search of generated documents: BM25 over postings, and nearest vectors, topic by topic."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.stand_in.documents import Documents, count_terms, fill_postings

K1, B = 1.2, 0.75
SCANNED_PER_CANDIDATE = 8
"""How many vectors an approximate search compares for each candidate, nearest topics first."""

Hits = list[tuple[int, float]]
"""Documents by number with their scores, best first."""


@dataclass(frozen=True, eq=False)
class Index:
    """An index of generated documents: postings in the order of documents, and vectors grouped by topic."""

    documents: Documents
    starts: NDArray[np.int64]
    numbers: NDArray[np.int32]
    occurrences: NDArray[np.uint8]
    lengths: NDArray[np.uint8]
    vectors: NDArray[np.float32]
    _local: threading.local = field(default_factory=threading.local)

    @cached_property
    def centres(self) -> NDArray[np.float32]:
        """Return the mean vector of each topic."""
        return self.vectors.mean(axis=1)

    def search_text(self, text: str, k: int) -> Hits:
        """Return the documents with any word of a text, by BM25."""
        words, repeats = np.unique(np.array(self.documents.parse_words(text), np.int64), return_counts=True)
        counts = (self.starts[words + 1] - self.starts[words]).astype(np.float64)
        idf = (repeats * np.log1p((len(self.lengths) - counts + 0.5) / (counts + 0.5))).astype(np.float32)
        norms = (K1 * (1 - B + B * np.arange(256) / self.lengths.mean())).astype(np.float32)
        if not hasattr(self._local, "scores"):
            self._local.scores = np.zeros(len(self.lengths), np.float32)
        found = _score_words(
            words, idf, norms, k, self.starts, self.numbers, self.occurrences, self.lengths, self._local.scores
        )
        return _sort(found)

    def search_vector(self, vector: Sequence[float], k: int, candidates: int | None = None) -> Hits:
        """Return the documents nearest to a vector, with their cosine; without `candidates`, all are compared."""
        query = np.asarray(vector, np.float32)
        query = query / max(float(np.linalg.norm(query)), 1e-12)
        topics = np.argsort(-(self.centres @ query), kind="stable")
        count = len(self.lengths)
        most = count if candidates is None else SCANNED_PER_CANDIDATE * candidates
        return _sort(_compare_vectors(query, topics, k, self.vectors, count, most))


def build_index(documents: Documents) -> Index:
    """Compute the postings and the vectors of documents."""
    counts = np.zeros(documents.vocabulary, np.int64)
    lengths = np.zeros(documents.count, np.uint8)
    count_terms(documents.count, *documents.shape, counts, lengths)
    starts = np.concatenate([[0], np.cumsum(counts)])
    numbers, occurrences = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.uint8)
    fill_postings(documents.count, *documents.shape, starts[:-1].copy(), numbers, occurrences)
    return Index(documents, starts, numbers, occurrences, lengths, documents.compute_vectors())


def _sort(found: Sequence[tuple[float, int]]) -> Hits:
    return [(-negative, score) for score, negative in sorted(found, reverse=True)]


@njit(cache=True, nogil=True)
def _keep(best, k, score, number):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 (compiled by numba)
    """Add a document to a heap of the k best; of equal scores, the lower number is better."""
    item = (score, -number)
    if len(best) < k:
        heapq.heappush(best, item)
    elif item > best[0]:
        heapq.heapreplace(best, item)


@njit(cache=True, nogil=True)
def _score_words(words, idf, norms, k, starts, numbers, occurrences, lengths, scores):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 (compiled by numba)
    """Return a heap of the k best documents; `scores` is zero before and after."""
    for place in range(len(words)):
        for at in range(starts[words[place]], starts[words[place] + 1]):
            times = np.float32(occurrences[at])
            number = numbers[at]
            scores[number] += idf[place] * times / (times + norms[lengths[number]])
    best = [(np.float64(0), np.int64(0))][:0]
    for place in range(len(words)):
        for at in range(starts[words[place]], starts[words[place] + 1]):
            number = numbers[at]
            score = scores[number]
            if score > 0:
                scores[number] = 0
                _keep(best, k, np.float64(score), np.int64(number))
    return best


@njit(cache=True, nogil=True, fastmath=True)
def _compare_vectors(query, topics, k, vectors, count, most):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 (compiled by numba)
    """Return a heap of the k documents with the largest product among the first `most` in the order of topics."""
    best = [(np.float64(0), np.int64(0))][:0]
    compared = 0
    for topic in topics:
        for row in range(vectors.shape[1]):
            number = row * vectors.shape[0] + topic
            if number < count and compared < most:
                compared += 1
                vector, total = vectors[topic, row], np.float32(0)
                for d in range(len(query)):
                    total += vector[d] * query[d]
                _keep(best, k, np.float64(total), np.int64(number))
    return best
