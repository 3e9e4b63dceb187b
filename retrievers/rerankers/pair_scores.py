"""Scores of pairs of a query and a text by a model, for rerankers that read each candidate alone.

The scores of a query's candidates are cached together. Within a process, the score of each pair is kept, too, so that
only new pairs are scored when another base or depth brings candidates seen before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from retrievers.multistage import QueryLog, report_progress
from retrievers.rerankers.base import CandidateScores
from retrievers.store import Arrays, Key, Store, fingerprint

PairScores = dict[tuple[str, str], tuple[float, float]]
"""The score of each (query, text), and its share of the seconds of its batch."""


@dataclass(frozen=True, eq=False)
class PairScorer:
    """Scores pairs. `parts` are the settings that a score depends on, and `made_by` the modules."""

    made_by: Sequence[str]
    parts: Mapping[str, object]
    score: Callable[[str, Sequence[str]], PairScores]

    def __call__(
        self, queries: Sequence[str], candidates: Sequence[Sequence[str]], store: Store
    ) -> list[CandidateScores]:
        """Return the scores of each query's candidates."""
        known: PairScores = store.share(Key.of("live pair scores", self.made_by, **self.parts), dict)
        pairs = zip(queries, candidates, strict=True)
        judged = (self._score_candidates(query, texts, known, store) for query, texts in pairs)
        return list(report_progress(judged, "reranked", len(queries)))

    def _score_candidates(self, query: str, texts: Sequence[str], known: PairScores, store: Store) -> CandidateScores:
        if not texts:
            return CandidateScores(np.zeros(0, dtype=np.float32))
        identity = {"query": fingerprint(query), "texts": fingerprint(*texts)}
        size = {"rows": len(texts), "characters": sum(map(len, texts))}
        key = Key.of("pair scores", self.made_by, **identity, **size, **self.parts)
        kept = store.arrays(key, lambda: self._score_new(query, texts, known))
        both = zip(kept["scores"].tolist(), kept["seconds"].tolist(), strict=True)
        known.update(zip(((query, text) for text in texts), both, strict=True))
        return CandidateScores(kept["scores"], QueryLog(float(kept["seconds"].sum())))

    def _score_new(self, query: str, texts: Sequence[str], known: PairScores) -> Arrays:
        """Return the scores of a query's candidates and their seconds; only new pairs are scored now."""
        if new := [text for text in dict.fromkeys(texts) if (query, text) not in known]:
            known.update(self.score(query, new))
        scores, seconds = zip(*(known[query, text] for text in texts), strict=True)
        return {"scores": np.array(scores, dtype=np.float32), "seconds": np.array(seconds, dtype=np.float32)}
