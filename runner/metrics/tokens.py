"""Count the words of gold spans in the chunks that rankings return, cut after k chunks or after a number of words.

Retrieved words are counted as often as they are returned, so overlapping chunks pay for what they repeat; gold words
are counted once (Smith and Troynikov 2024, "Evaluating Chunking Strategies for Retrieval", Chroma).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from runner.datasets.dataset import Dataset

Counts = NDArray[np.int64]


class TokenCut(NamedTuple):
    """The words of each query's ranking up to a cutoff: gold words covered, words returned, all gold words."""

    covered: Counts
    returned: Counts
    gold: Counts


@dataclass(frozen=True, eq=False)
class TokenGold:
    """The gold words of each query, ascending, and the words of each chunk as a range of numbers.

    `lost` (queries,) is the number of gold words that no document contains any more.
    """

    gold: list[Counts]
    lost: Counts
    starts: Counts
    ends: Counts

    def count(self, rankings: Rankings) -> TokenCounts:
        """Count the words of rankings."""
        documents, n = rankings.documents, len(self.starts)
        is_known = (documents != NOTHING) & (documents < n)
        places = np.where(is_known, documents, 0)
        starts, ends = (np.where(is_known, column[places], 0) for column in (self.starts, self.ends))
        return TokenCounts(self, starts, ends)


@dataclass(frozen=True, eq=False)
class TokenCounts:
    """The words of each hit as a range of numbers (queries x ranks), empty for no document.

    A cutoff is a number of hits or, if `in_tokens`, a number of words; the last chunk is then cut at that number.
    """

    of: TokenGold
    starts: Counts
    ends: Counts
    in_tokens: bool = False
    _cuts: dict[tuple[bool, int], TokenCut] = field(default_factory=dict, repr=False)

    def by_tokens(self) -> TokenCounts:
        """Return the same counts with cutoffs in words."""
        return replace(self, in_tokens=True)

    def cut(self, cutoff: int) -> TokenCut:
        """Return the words of each query's ranking up to a cutoff."""
        key = self.in_tokens, cutoff
        if key not in self._cuts:
            self._cuts[key] = self._cut(cutoff)
        return self._cuts[key]

    def _cut(self, cutoff: int) -> TokenCut:
        lengths = self.ends - self.starts
        if self.in_tokens:
            before = np.cumsum(lengths, axis=1) - lengths
            lengths = np.clip(cutoff - before, 0, lengths)
        else:
            lengths = lengths[:, :cutoff]
        starts = self.starts[:, : lengths.shape[1]]
        covered = [_count_covered(*rows) for rows in zip(self.of.gold, starts, starts + lengths, strict=True)]
        gold = np.fromiter(map(len, self.of.gold), np.int64, len(self.of.gold)) + self.of.lost
        return TokenCut(np.array(covered, dtype=np.int64), lengths.sum(axis=1), gold)


def build_token_gold(dataset: Dataset) -> TokenGold | None:
    """Return the gold words of a dataset's queries and the words of what it searches; None without spans."""
    spans = dataset.judgments.spans
    if spans is None:
        return None
    return TokenGold(*spans.list_gold_words(len(dataset.queries)), *spans.find_words(dataset.corpus))


def _count_covered(gold: Counts, starts: Counts, ends: Counts) -> int:
    """Return how many gold words any of the ranges contains."""
    opened, closed = (np.bincount(np.searchsorted(gold, at), minlength=len(gold) + 1) for at in (starts, ends))
    return int(np.count_nonzero(np.cumsum(opened - closed)[:-1]))
