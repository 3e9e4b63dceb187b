"""Compute the figures of a synthesis: counts by type and reason, overlap of queries with their gold, and difficulty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, get_args

import numpy as np

from retrievers.base import Corpus
from retrievers.lexical.bm25 import BM25
from retrievers.search import search_cached
from retrievers.store import Store
from runner.datasets.chunk_files import corpus_id
from runner.features.synthesize.answers import Way
from runner.features.synthesize.base import QUERY_TYPES, Chunks
from runner.features.synthesize.limits import words
from runner.features.synthesize.pipeline import Candidate, SynthesisResult
from runner.features.synthesize.terms import compute_share

DEPTH = 10
"""The search depth for gold."""


@dataclass(frozen=True)
class TypeFigures:
    """The figures of the queries of one type. Not every query that was requested could be written (`generated`).

    `length` is the mean number of words of the accepted queries, `overlap` the mean share of their words in goldens.
    `bm25_first` and `bm25_first_ten`, measures of difficulty, are the shares of accepted queries for which BM25 ranks a
    golden first, or among the first ten of all chunks. They are None if no query was accepted.
    """

    requested: int
    generated: int
    accepted: int
    rejected: Mapping[str, int]
    length: float | None
    overlap: float | None
    bm25_first: float | None
    bm25_first_ten: float | None

    @property
    def plain(self) -> dict[str, Any]:
        """Return the figures as a JSON object."""
        difficulty = {"bm25_hit_at_1": self.bm25_first, "bm25_hit_at_10": self.bm25_first_ten}
        return {
            "requested": self.requested, "generated": self.generated, "accepted": self.accepted,
            "rejected": dict(self.rejected), "mean_words": self.length, "lexical_overlap": self.overlap,
            "difficulty": difficulty,
        }  # fmt: skip


def summarize_types(outcome: SynthesisResult, store: Store) -> dict[str, TypeFigures]:
    """Return the figures of each requested type, in the order of `QUERY_TYPES`."""
    ranks = dict(zip(map(id, outcome.accepted), _ranks(outcome.chunks, outcome.accepted, store), strict=True))
    types = {}
    for name in (name for name in QUERY_TYPES if name in outcome.types):
        queries = [query for query in outcome.candidates if query.request.query_type == name]
        accepted = [query for query in queries if query.verdict.accepted]
        reasons = Counter(query.verdict.reason for query in queries if not query.verdict.accepted)
        ranks_of_type = [ranks[id(query)] for query in accepted]
        types[name] = TypeFigures(
            len(queries),
            sum(bool(query.draft.query) for query in queries),
            len(accepted),
            dict(sorted(reasons.items())),
            _mean([len(words(query.draft.query)) for query in accepted]),
            _mean([_overlap(outcome.chunks, query) for query in accepted]),
            _mean([rank == 1 for rank in ranks_of_type]),
            _mean([rank <= DEPTH for rank in ranks_of_type]),
        )
    return types


def summary(outcome: SynthesisResult, types: Mapping[str, TypeFigures], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summary of a synthesis as a JSON object; it is the same for the same config."""
    reasons = Counter(rejection.reason for rejection in outcome.rejected)
    goldens = Counter(len(query.request.bundle.goldens) for query in outcome.accepted)
    used = {query.request.bundle.goldens[0] for query in outcome.accepted}
    return {
        "wanted": config["count"],
        "requested": len(outcome.candidates),
        "generated": sum(bool(query.draft.query) for query in outcome.candidates),
        "accepted": len(outcome.accepted),
        "exhausted": outcome.exhausted,
        "types": {name: of_type.plain for name, of_type in types.items()},
        "goldens_per_query": {str(number): n for number, n in sorted(goldens.items())},
        "spans": count_spans(outcome),
        "chunks": {
            "read": len(outcome.source),
            "kept": len(outcome.chunks),
            "rejected": dict(sorted(reasons.items())),
            "asked_about": len(used),
        },
        "documents": {
            "read": len(set(outcome.source.doc_ids)),
            "asked_about": len({outcome.chunks.doc_ids[position] for position in used}),
        },
        "bundles": len(outcome.bundles),
        "config": config,
    }


def count_spans(outcome: SynthesisResult) -> dict[str, int]:
    """Return how many gold spans were located by each way; `chunk` counts those that are a whole chunk."""
    ways = Counter(answer.way for row in outcome.answers for answer in row)
    return {way: ways[way] for way in get_args(Way)}


def figures(types: Mapping[str, TypeFigures]) -> dict[str, float]:
    """Return the figures of types by name, for a tracker."""
    figures: dict[str, float] = {}
    for name, of in types.items():
        figures |= {
            f"requested/{name}": of.requested,
            f"generated/{name}": of.generated,
            f"accepted/{name}": of.accepted,
        }
        measured = {"lexical_overlap": of.overlap, "bm25_hit_at_1": of.bm25_first, "bm25_hit_at_10": of.bm25_first_ten}
        figures |= {f"{figure}/{name}": value for figure, value in measured.items() if value is not None}
    return figures | {
        kind: sum(getattr(of, kind) for of in types.values()) for kind in ("requested", "generated", "accepted")
    }


def _overlap(chunks: Chunks, candidate: Candidate) -> float:
    goldens = candidate.request.bundle.goldens
    return compute_share(
        words(candidate.draft.query), (word for golden in goldens for word in words(chunks.texts[golden]))
    )


def _ranks(chunks: Chunks, accepted: Sequence[Candidate], store: Store) -> list[float]:
    """Return the BM25 rank of the first golden of each query among all chunks, infinite beyond `DEPTH`."""
    if not accepted:
        return []
    corpus = Corpus(list(map(corpus_id, chunks.doc_ids, chunks.chunk_ids)), chunks.texts, chunks.titles)
    rankings = search_cached(BM25(), corpus, [candidate.draft.query for candidate in accepted], DEPTH, store).documents
    ranks = []
    for row, candidate in zip(rankings, accepted, strict=True):
        hits = np.flatnonzero(np.isin(row, candidate.request.bundle.goldens))
        ranks.append(float(hits[0]) + 1 if len(hits) else float("inf"))
    return ranks


def _mean(values: Sequence[float]) -> float | None:
    return round(fmean(values), 4) if values else None
