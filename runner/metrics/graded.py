"""The judged documents that rankings found, in columns, and the quantities that several measures share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from runner.metrics.errors import MeasureError

if TYPE_CHECKING:
    from runner.metrics.scores import Grader
    from runner.metrics.tokens import TokenCounts, TokenCut

Floats = NDArray[np.float64]

REPEATED = np.iinfo(np.int32).min
"""The grade of a judged document that already appears at a better rank: neither a second hit nor irrelevant."""


@dataclass(frozen=True, eq=False)
class Graded:
    """The judged documents that were found, in columns sorted by query, then by rank (from 1).

    Documents whose grade is `REPEATED` are later chunks. `returned` (queries) is the number of hits of each query,
    judged or not, and `first_chunks` (queries x ranks) marks the hits that are the first of their document, None if
    documents are searched. `tokens` counts the words of gold spans in the hits, None if gold is not spans.
    """

    grader: Grader
    queries: NDArray[np.int64]
    ranks: NDArray[np.int64]
    grades: NDArray[np.int32]
    returned: NDArray[np.int64]
    tokens: TokenCounts | None = None
    first_chunks: NDArray[np.bool_] | None = None

    @cached_property
    def gold(self) -> Graded:
        """Return only the gold documents."""
        return self.select(self.grades > 0)

    def select(self, documents: NDArray[np.bool_]) -> Graded:
        """Return only some of the documents, selected by a mask."""
        columns = (self.queries[documents], self.ranks[documents], self.grades[documents])
        return Graded(self.grader, *columns, self.returned, self.tokens, self.first_chunks)

    def first_ranks(self, k: int) -> Graded:
        """Return only the documents among the first k."""
        return self if self.ranks.max(initial=0) <= k else self.select(self.ranks <= k)

    def count(self, k: int | NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of documents among the first k (queries,); k may differ between documents."""
        return np.bincount(self.queries[self.ranks <= k], minlength=self.grader.n_queries)

    def share_judged(self, k: int) -> Floats:
        """Return the share of judged documents among those of the first k hits (queries,), NaN where none is found."""
        judged = self.select(self.grades != REPEATED).count(k)
        documents = np.minimum(self.returned, k) if self.first_chunks is None else self.first_chunks[:, :k].sum(axis=1)
        shares: Floats = np.divide(judged, documents, out=np.full(len(documents), np.nan), where=documents > 0)
        return shares

    def count_tokens(self, cutoff: int) -> TokenCut:
        """Return the words of the rankings up to a cutoff; raises `MeasureError` if gold is not spans."""
        if self.tokens is None:
            raise MeasureError("token measures need gold spans; set dataset.gold=spans")
        return self.tokens.cut(cutoff)

    def total(self, values: Floats, k: int) -> Floats:
        """Return the sum of the values of the documents among the first k, added by rank (queries,)."""
        within = self.ranks <= k
        return _sum_by_query(self.queries[within], values[within], self.grader.n_queries)

    def dcg(self, k: int) -> Floats:
        """Return the discounted cumulative gain of the first k (queries,): grade / log2(rank + 1)."""
        return self.gold.total(self.gold._gains, k)

    def precisions(self, k: int) -> Floats:
        """Return the sum of the precisions at the gold documents among the first k (queries,)."""
        return self.gold.total(self.gold._precisions, k)

    @cached_property
    def first(self) -> Floats:
        """Return the rank of the first gold document (queries,), infinity if there is none."""
        first = np.full(self.grader.n_queries, np.inf)
        first[self.gold.queries[::-1]] = self.gold.ranks[::-1]
        return first

    @cached_property
    def preferred(self) -> Floats:
        """Return the sum, over gold documents found, of the share of non-relevant documents not above them (queries,).

        As in trec_eval, at most as many non-relevant documents count as the query has gold (Buckley & Voorhees 2004).
        """
        judgments, golds = self.grader.judgments, self.grader.golds
        bad = np.bincount(judgments.queries[judgments.grades == 0], minlength=len(golds))
        before = np.cumsum(self.grades == 0) - (self.grades == 0)
        above = before - before[find_starts(self.queries)]
        shares = np.minimum(above, golds[self.queries]) / np.maximum(np.minimum(bad, golds), 1)[self.queries]
        return _sum_by_query(self.queries, (1 - shares) * (self.grades > 0), len(golds))

    @cached_property
    def _gains(self) -> Floats:
        return self.grades / np.log2(self.ranks + 1)

    @cached_property
    def _precisions(self) -> Floats:
        return (np.arange(len(self.ranks)) - find_starts(self.queries) + 1) / self.ranks


def find_starts(queries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of the first document of each document's query, in a column sorted by query."""
    return np.searchsorted(queries, queries)


def _sum_by_query(queries: NDArray[np.int64], values: Floats, n_queries: int) -> Floats:
    """Return the sum of the values of each query, added in order."""
    sums = np.bincount(queries, weights=values, minlength=n_queries)
    return sums.astype(np.float64, copy=False)  # bincount returns integers for an empty column
