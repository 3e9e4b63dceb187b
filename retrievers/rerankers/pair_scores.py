"""Scores of pairs of a query and a text by a model, for rerankers that read each candidate alone.

Pairs of several queries are scored together, and the scores of a query's candidates are cached together. Within a
process, the score of each pair is kept, too, so that only new pairs are scored when another base or depth brings
candidates seen before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from retrievers.encoders.cuts import Cuts
from retrievers.notes import QueryLog
from retrievers.progress import report_progress
from retrievers.rerankers.base import CandidateScores
from retrievers.store import Arrays, Key, Store, check_rows, fingerprint
from retrievers.work import LIVE_PAIR_SCORES, PAIR_SCORES

Pair = tuple[str, str]
"""A query and a text."""

PairScores = dict[Pair, tuple[float, ...]]
"""The score of each pair, its share of the seconds of its batch, its tokens, and how many of these are not read."""

_COLUMNS = {"scores": np.float32, "seconds": np.float32, "tokens": np.int32, "unread": np.int32}

_TOGETHER = 256
"""How many pairs, of one query or several, are scored together."""


@dataclass(frozen=True, eq=False)
class PairScorer:
    """Scores pairs. `parts` are the settings that a score depends on, and `made_by` is the module that scores."""

    made_by: str
    parts: Mapping[str, object]
    score: Callable[[Sequence[Pair]], PairScores]

    def __call__(
        self, queries: Sequence[str], candidates: Sequence[Sequence[str]], store: Store
    ) -> list[CandidateScores]:
        """Return the scores of each query's candidates."""
        known: PairScores = store.share(Key.of(LIVE_PAIR_SCORES, self.made_by, **self.parts), dict)
        return list(report_progress(self._score_blocks(queries, candidates, known, store), "reranked", len(queries)))

    def _score_blocks(
        self, queries: Sequence[str], candidates: Sequence[Sequence[str]], known: PairScores, store: Store
    ) -> Iterator[CandidateScores]:
        """Yield the scores of each query's candidates; new pairs of the queries of a block are scored together."""
        sizes = np.cumsum([len(texts) for texts in candidates])
        blocks = groupby(range(len(queries)), key=lambda row: (int(sizes[row]) - 1) // _TOGETHER)
        for _, block in blocks:
            rows = list(block)
            pairs = [(queries[row], text) for row in rows for text in candidates[row]]
            for row in rows:
                yield self._score_candidates(queries[row], candidates[row], pairs, known, store)

    def _score_candidates(
        self, query: str, texts: Sequence[str], block: Sequence[Pair], known: PairScores, store: Store
    ) -> CandidateScores:
        if not texts:
            return CandidateScores(np.zeros(0, dtype=np.float32))
        identity = {"query": fingerprint(query), "texts": fingerprint(*texts)}
        size = {"rows": len(texts), "characters": sum(map(len, texts))}
        key = Key.of(PAIR_SCORES, self.made_by, **identity, **size, **self.parts)
        key = key.with_check(check_rows, len(texts), tuple(_COLUMNS))
        kept = store.arrays(key, lambda: self._score_new(query, texts, block, known))
        columns = zip(*(kept[name].tolist() for name in _COLUMNS), strict=True)
        known.update(zip(((query, text) for text in texts), columns, strict=True))
        unread = kept["unread"]
        cuts = Cuts(int(np.count_nonzero(unread)), int(kept["tokens"].sum()), int(unread.sum()))
        figures = cuts.to_figures("pairs") if cuts.tokens else {}
        return CandidateScores(kept["scores"], QueryLog(float(kept["seconds"].sum()), figures=figures))

    def _score_new(self, query: str, texts: Sequence[str], block: Sequence[Pair], known: PairScores) -> Arrays:
        """Return the scores of a query's candidates, and the other columns of pairs.

        If one of them is new, all new pairs of the block are scored now.
        """
        if any((query, text) not in known for text in texts):
            known.update(self.score([pair for pair in dict.fromkeys(block) if pair not in known]))
        columns = zip(*(known[query, text] for text in texts), strict=True)
        return {
            name: np.array(column, dtype=kind) for (name, kind), column in zip(_COLUMNS.items(), columns, strict=True)
        }
