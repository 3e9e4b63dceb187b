"""Measure the contrast between goldens and distractors by the words of a query, without a language model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from runner.features.synthesize.base import Bundle, Chunks
from runner.features.synthesize.terms import Terms, content


@dataclass(frozen=True)
class Contrast:
    """The goldens, taken as one document, compared with distractors.

    `rank` is the BM25 rank of the goldens, with ties against them; `margin` is their score minus the best score of a
    distractor; `coverage` is the share of the query's distinct terms in the goldens; `gap` is the coverage minus the
    best coverage of a distractor. Without distractors, margin and gap are the score and the coverage.
    """

    rank: int
    margin: float
    coverage: float
    gap: float


def measure_contrast(terms: Terms, chunks: Chunks, bundle: Bundle, query: str, k1: float, b: float) -> Contrast:
    """Compare the goldens with the distractors for a query.

    The score is BM25 of Robertson and Zaragoza (2009), The Probabilistic Relevance Framework: BM25 and Beyond. IDF and
    mean length are those of all chunks, because a bundle is too small to estimate them.
    """
    query_terms = Counter(terms.analyzer.tokens(query))
    goldens = _counts(terms, chunks, bundle.goldens)
    others = [_counts(terms, chunks, (distractor,)) for distractor in bundle.distractors]
    score = _bm25(terms, query_terms, goldens, k1, b)
    scores = [_bm25(terms, query_terms, other, k1, b) for other in others]
    coverage = _coverage(query_terms, goldens)
    return Contrast(
        rank=1 + sum(other >= score for other in scores),
        margin=score - max(scores, default=0.0),
        coverage=coverage,
        gap=coverage - max((_coverage(query_terms, other) for other in others), default=0.0),
    )


def _counts(terms: Terms, chunks: Chunks, positions: tuple[int, ...]) -> Counter[str]:
    return Counter(term for at in positions for term in terms.analyzer.tokens(content(chunks, at)))


def _bm25(terms: Terms, query_terms: Mapping[str, int], document: Counter[str], k1: float, b: float) -> float:
    norm = k1 * (1 - b + b * document.total() / terms.postings.mean_length)
    matches = ((term, n) for term, n in query_terms.items() if document[term])
    return float(sum(n * terms.term_weight(t) * document[t] / (document[t] + norm) for t, n in matches))


def _coverage(query_terms: Mapping[str, int], document: Counter[str]) -> float:
    return sum(document[term] > 0 for term in query_terms) / len(query_terms) if query_terms else 0.0
