"""What a synthesis came to in figures: by type and reason, how much queries share with their gold, how hard they are.

It knows nothing of files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from retrievers.base import Corpus
from retrievers.bm25 import BM25
from retrievers.search import search_cached
from retrievers.store import Store
from runner.datasets.chunk_files import corpus_id
from runner.generation.synthesis.base import QUERY_TYPES, Chunks
from runner.generation.synthesis.limits import words
from runner.generation.synthesis.pipeline import Made, Outcome

DEPTH = 10
"""How deep a gold is looked for."""


@dataclass(frozen=True)
class OfType:
    """What became of the queries of a type.

    Of the accepted: their mean length in words, the mean `overlap` (share of a query's words that its goldens have),
    and as a measure of how easy they are, the share for which BM25 finds a golden among all chunks first, and among the
    first ten. None where none was accepted.
    """

    generated: int
    accepted: int
    rejected: Mapping[str, int]
    length: float | None
    overlap: float | None
    bm25_first: float | None
    bm25_first_ten: float | None

    @property
    def plain(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        difficulty = {"bm25_hit_at_1": self.bm25_first, "bm25_hit_at_10": self.bm25_first_ten}
        return {
            "generated": self.generated, "accepted": self.accepted, "rejected": dict(self.rejected),
            "mean_words": self.length, "lexical_overlap": self.overlap, "difficulty": difficulty,
        }  # fmt: skip


def by_type(outcome: Outcome, store: Store) -> dict[str, OfType]:
    """Return the figures of each type that was asked for, in the usual order."""
    ranks = dict(zip(map(id, outcome.accepted), _ranks(outcome.chunks, outcome.accepted, store), strict=True))
    found = {}
    for name in (name for name in QUERY_TYPES if name in outcome.types):
        made = [each for each in outcome.made if each.wanted.query_type == name]
        accepted = [each for each in made if each.verdict.accepted]
        reasons = Counter(each.verdict.reason for each in made if not each.verdict.accepted)
        of = [ranks[id(each)] for each in accepted]
        found[name] = OfType(
            len(made),
            len(accepted),
            dict(sorted(reasons.items())),
            _mean([len(words(each.draft.query)) for each in accepted]),
            _mean([_overlap(outcome.chunks, each) for each in accepted]),
            _mean([rank == 1 for rank in of]),
            _mean([rank <= DEPTH for rank in of]),
        )
    return found


def summary(outcome: Outcome, types: Mapping[str, OfType], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that is told of a synthesis of a config, as JSON has it; the same for the same synthesis."""
    reasons = Counter(rejection.reason for rejection in outcome.rejected)
    goldens = Counter(len(each.wanted.bundle.goldens) for each in outcome.accepted)
    used = {each.wanted.bundle.goldens[0] for each in outcome.accepted}
    return {
        "wanted": config["count"],
        "generated": len(outcome.made),
        "accepted": len(outcome.accepted),
        "exhausted": outcome.exhausted,
        "types": {name: figures.plain for name, figures in types.items()},
        "goldens_per_query": {str(number): n for number, n in sorted(goldens.items())},
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


def figures(types: Mapping[str, OfType]) -> dict[str, float]:
    """Return the figures of types by name, as runs are compared by them."""
    found: dict[str, float] = {}
    for name, of in types.items():
        found |= {f"generated/{name}": of.generated, f"accepted/{name}": of.accepted}
        measured = {"lexical_overlap": of.overlap, "bm25_hit_at_1": of.bm25_first, "bm25_hit_at_10": of.bm25_first_ten}
        found |= {f"{figure}/{name}": value for figure, value in measured.items() if value is not None}
    return found | {kind: sum(getattr(of, kind) for of in types.values()) for kind in ("generated", "accepted")}


def _overlap(chunks: Chunks, made: Made) -> float:
    asked = set(words(made.draft.query))
    there = {word for golden in made.wanted.bundle.goldens for word in words(chunks.texts[golden])}
    return len(asked & there) / len(asked) if asked else 0.0


def _ranks(chunks: Chunks, accepted: Sequence[Made], store: Store) -> list[float]:
    """Return the rank that BM25 gives the first golden of each query among all chunks; infinite beyond `DEPTH`."""
    if not accepted:
        return []
    corpus = Corpus(list(map(corpus_id, chunks.doc_ids, chunks.chunk_ids)), chunks.texts, chunks.titles)
    found = search_cached(BM25(), corpus, [made.draft.query for made in accepted], DEPTH, store).documents
    ranks = []
    for row, made in zip(found, accepted, strict=True):
        hits = np.flatnonzero(np.isin(row, made.wanted.bundle.goldens))
        ranks.append(float(hits[0]) + 1 if len(hits) else float("inf"))
    return ranks


def _mean(values: Sequence[float]) -> float | None:
    return round(fmean(values), 4) if values else None
