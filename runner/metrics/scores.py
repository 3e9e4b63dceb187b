"""Scores of rankings against judgments: one value per measure and query, with trec_eval's arithmetic.

All queries are scored at once, and quantities that several measures share are computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from retrievers.id_table import IdTable
from runner.datasets.base import Judgments
from runner.metrics.delegated import compute
from runner.metrics.errors import MeasureError
from runner.metrics.formulas import FORMULAS
from runner.metrics.graded import REPEATED, Floats, Graded, find_starts
from runner.metrics.measures import Measure, parse
from runner.metrics.tokens import TokenGold

Ranks = NDArray[np.int32]
"""The rank of each gold document (gold,), in the order of `Judgments.gold_order`."""

UNRANKED = np.iinfo(np.int32).max
"""The rank of gold that rankings do not contain."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The value of each measure for each query (measures x queries).

    It is NaN for a query that counts in no mean: one without gold, or whose search raised an error. `counted`
    (queries,) marks the others; of these, one without hits has no value of Judged, and is left out of its mean.
    """

    measures: tuple[Measure, ...]
    values: Floats
    counted: NDArray[np.bool_]

    def of(self, measure: Measure | str) -> Floats:
        """Return the values of one measure (queries,); raises `MeasureError` if it is missing."""
        wanted = parse(measure) if isinstance(measure, str) else measure
        if wanted not in self.measures:
            raise MeasureError(f"{wanted} was not measured; choose from {', '.join(map(str, self.measures))}")
        values: Floats = self.values[self.measures.index(wanted)]
        return values

    def means(self) -> dict[str, float]:
        """Return the mean of each measure over the counted queries that have a value, NaN if there are none."""
        values = self.values[:, self.counted]
        known = ~np.isnan(values)
        n = np.count_nonzero(known, axis=1)
        means = np.divide(np.where(known, values, 0).sum(axis=1), n, out=np.full(len(values), np.nan), where=n > 0)
        return {str(measure): float(mean) for measure, mean in zip(self.measures, means, strict=True)}

    def select(self, queries: NDArray[np.bool_] | NDArray[np.intp]) -> Scores:
        """Return the scores of some queries, selected by a mask or by positions."""
        return Scores(self.measures, self.values[:, queries], self.counted[queries])

    def by_type(self, types: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the means of each query type with counted queries, and the number of these as "queries"."""
        parts = {kind: self.select(np.array([kind == other for other in types])) for kind in sorted({*types} - {""})}
        return {
            kind: {"queries": float(part.counted.sum()), **part.means()}
            for kind, part in parts.items()
            if part.counted.any()
        }


def score(
    rankings: Rankings, judgments: Judgments, n_queries: int, n_documents: int, measures: Sequence[Measure]
) -> Scores:
    """Score rankings once. To score several against the same judgments, keep a `Grader`."""
    return Grader(judgments, n_queries, n_documents).score(rankings, measures)


def find_answered(rankings: Rankings) -> NDArray[np.bool_]:
    """Return which queries were searched without an error (queries,)."""
    answered = np.ones(len(rankings), dtype=np.bool_)
    answered[list(rankings.errors or ())] = False
    return answered


@dataclass(frozen=True, eq=False)
class Grader:
    """Judgments prepared to score any number of rankings.

    For rankings of chunks, `document_of` maps each chunk to its document, which counts as found at its first chunk.
    Later chunks of a document keep their ranks but count neither as gold nor as irrelevant, judged or unjudged.

    Hits that are missing from the corpus keep their rank. `judged_ids` maps the ids of those that may be judged to
    their position in the judgments; all others are unjudged. `tokens` are the words of gold spans, if gold is spans.
    """

    judgments: Judgments
    n_queries: int
    n_documents: int
    document_of: NDArray[np.int32] | None = None
    judged_ids: Mapping[str, int] = field(default_factory=dict)
    tokens: TokenGold | None = None
    _ideal_dcg: dict[int, Floats] = field(default_factory=dict, init=False, repr=False)
    _latest: list[tuple[Rankings, Graded, NDArray[np.intp]]] = field(default_factory=list, init=False, repr=False)

    @cached_property
    def golds(self) -> NDArray[np.int64]:
        """Return the number of gold documents of each query (queries,)."""
        return self.judgments.golds(self.n_queries).astype(np.int64)

    @cached_property
    def is_no_result(self) -> NDArray[np.bool_]:
        """Return which queries are known to have no gold, so that the right result is empty (queries,)."""
        is_no_result: NDArray[np.bool_] = self.golds == 0
        is_no_result[list(self.judgments.unjudged)] = False
        return is_no_result

    def find_counted(self, rankings: Rankings) -> NDArray[np.bool_]:
        """Return which queries count in means (queries,): those with gold that were searched without an error."""
        return (self.golds > 0) & find_answered(rankings)

    def score(self, rankings: Rankings, measures: Sequence[Measure]) -> Scores:
        """Return the value of each measure for each query; one without hits scores 0, and has no value of Judged."""
        graded = self.grade(rankings)
        by_tokens = replace(graded, tokens=graded.tokens and graded.tokens.by_tokens())
        values = np.empty((len(measures), self.n_queries))
        for row, measure in zip(values, measures, strict=True):
            if measure.built_in:
                cut = by_tokens if measure.in_tokens else graded
                row[:] = FORMULAS[measure.name].compute(cut, self.golds, measure.cutoff or rankings.depth)
        others = [position for position, measure in enumerate(measures) if not measure.built_in]
        if others:
            values[others] = self._by_ir_measures(rankings, [measures[position] for position in others])
        counted = self.find_counted(rankings)
        values[:, ~counted] = np.nan
        return Scores(tuple(measures), values, counted)

    def grade(self, rankings: Rankings) -> Graded:
        """Return the judged documents that were found; raises `ValueError` for documents outside the corpus.

        The result for the latest rankings is cached.
        """
        if self._latest and self._latest[0][0] is rankings:
            return self._latest[0][1]
        documents = self._documents(rankings)
        queries, columns, places = self._find_judged(documents)
        grades = self.judgments.grades[places]
        if self.document_of is not None:
            first = np.unique(places, return_index=True)[1]  # each place is one query and document
            repeated = np.ones(len(grades), dtype=np.bool_)
            repeated[first] = False
            grades = np.where(repeated, np.int32(REPEATED), grades)
        tokens = None if self.tokens is None else self.tokens.count(rankings)
        returned = np.count_nonzero(documents != NOTHING, axis=1)
        graded = Graded(self, queries, columns + 1, grades, returned, tokens, self._mark_first_chunks(rankings))
        self._latest[:] = [(rankings, graded, places)]
        return graded

    def _mark_first_chunks(self, rankings: Rankings) -> NDArray[np.bool_] | None:
        """Return a mask of the hits that are the first chunk of their document (n x k); None for documents."""
        if self.document_of is None:
            return None
        outside = self._locate(rankings.unknown_ids)
        unjudged = outside == self._unjudged
        outside[unjudged] += np.arange(np.count_nonzero(unjudged), dtype=np.int32)  # each is a document of its own
        known = np.concatenate((self.document_of, outside, np.array([NOTHING], dtype=np.int32)))
        documents = known[rankings.documents]
        order = np.argsort(documents, axis=1, kind="stable")
        ordered = np.take_along_axis(documents, order, axis=1)
        first = np.ones(documents.shape, dtype=np.bool_)
        np.put_along_axis(first, order[:, 1:], ordered[:, 1:] != ordered[:, :-1], axis=1)
        first &= rankings.documents != NOTHING
        return first

    def rank_gold(self, rankings: Rankings) -> Ranks:
        """Return the rank of each gold document, that of its first chunk if chunks are searched."""
        if self._latest and self._latest[0][0] is rankings:
            _, graded, places = self._latest[0]
            columns = graded.ranks - 1
        else:
            _, columns, places = self._find_judged(self._documents(rankings))
        ranks = np.full(len(self.judgments), UNRANKED, dtype=np.int32)
        ranks[places[::-1]] = columns[::-1] + 1  # the first of several chunks is written last
        return ranks[self.judgments.gold_order]

    def _find_judged(self, documents: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Return the query and the column of each judged hit (n x k), and its position in the judgments, by rank."""
        queries, columns = np.nonzero((documents != NOTHING) & (documents != self._unjudged))
        keys = documents[queries, columns] + self._first_keys[queries]
        places = np.searchsorted(self._keys, keys)
        is_judged = self._keys[places] == keys
        return queries[is_judged], columns[is_judged], places[is_judged]

    def grades(self, rankings: Rankings) -> NDArray[np.int32]:
        """Return the grade at each rank (n x k), -1 for no document or an unjudged one.

        Negative grades and the later chunks of a judged document are shown as 0.
        """
        graded = self.grade(rankings)
        grades = np.full(rankings.documents.shape, NOTHING, dtype=np.int32)
        grades[graded.queries, graded.ranks - 1] = np.maximum(graded.grades, 0)
        return grades

    def _documents(self, rankings: Rankings) -> NDArray[np.int32]:
        """Return the positions of the documents found (n x k); raises `ValueError` for one outside the corpus."""
        if len(rankings) != self.n_queries:
            raise ValueError(f"rankings of {len(rankings)} queries do not match judgments of {self.n_queries} queries")
        positions, unknown = rankings.documents, rankings.unknown_ids
        n = self.n_documents if self.document_of is None else len(self.document_of)
        if positions.max(initial=NOTHING) >= n + len(unknown):
            raise ValueError(
                f"the rankings contain document number {positions.max()}, but the corpus has only {n} documents"
            )
        if self.document_of is None and not unknown:
            return positions
        known = np.arange(n, dtype=np.int32) if self.document_of is None else self.document_of
        return np.concatenate((known, self._locate(unknown), np.array([NOTHING], dtype=np.int32)))[positions]

    def _locate(self, ids: Sequence[str]) -> NDArray[np.int32]:
        """Return the positions in the judgments of documents that the corpus lacks."""
        if not isinstance(ids, IdTable):
            return np.fromiter(map(self.judged_ids.get, ids, repeat(self._unjudged)), np.int32, len(ids))
        from retrievers.pieces import find_ids

        judged, known = self._judged_table
        positions = np.full(len(ids) + 1, self._unjudged, dtype=np.int32)
        positions[find_ids(judged, ids)] = known  # the last place is for judged ids that are not in `ids`
        return positions[:-1]

    @cached_property
    def _judged_table(self) -> tuple[IdTable, NDArray[np.int32]]:
        """Return the ids that may be judged, and their positions in the judgments."""
        return IdTable.of(list(self.judged_ids)), np.array(list(self.judged_ids.values()), dtype=np.int32)

    @cached_property
    def ideal(self) -> Graded:
        """Return the ideal rankings: each query's gold documents by descending grade."""
        gold = self.judgments.grades > 0
        queries, grades = self.judgments.queries[gold].astype(np.int64), self.judgments.grades[gold]
        order = np.lexsort((-grades, queries))
        return Graded(self, queries, np.arange(len(order)) - find_starts(queries) + 1, grades[order], self.golds)

    def ideal_dcg(self, k: int) -> Floats:
        """Return the largest possible discounted cumulative gain of the first k documents (queries,)."""
        if k not in self._ideal_dcg:
            self._ideal_dcg[k] = self.ideal.dcg(k)
        return self._ideal_dcg[k]

    @cached_property
    def _unjudged(self) -> int:
        """Return the position, after all documents, that stands for unjudged unknown hits."""
        judged = max(int(self.judgments.documents.max(initial=0)), max(self.judged_ids.values(), default=0))
        return max(self.n_documents, judged + 1)

    @cached_property
    def _first_keys(self) -> NDArray[np.int64]:
        """Return the key of each query's first document (queries,). The key before it stands for no document."""
        return np.arange(self.n_queries, dtype=np.int64) * (self._unjudged + 2) + 1

    @cached_property
    def _keys(self) -> NDArray[np.int64]:
        """Return the keys of all judgments, ascending, followed by one larger than any key."""
        keys = self._first_keys[self.judgments.queries] + self.judgments.documents
        return np.append(keys, np.iinfo(np.int64).max)

    @cached_property
    def _qrels(self) -> dict[str, dict[str, int]]:
        """Return the judgments for ir_measures, without queries that have no gold, which may abort it."""
        qrels: dict[str, dict[str, int]] = {}
        scored = self.golds[self.judgments.queries] > 0
        columns = (self.judgments.queries, self.judgments.documents, self.judgments.grades)
        for query, document, grade in zip(*(column[scored].tolist() for column in columns), strict=True):
            qrels.setdefault(str(query), {})[str(document)] = grade
        return qrels

    def _by_ir_measures(self, rankings: Rankings, measures: Sequence[Measure]) -> Floats:
        """Score by ir_measures; ids are positions and scores fall by rank, so that its own tie-break has no effect.

        Scores are positive, because Compat takes a score of 0 for a document that was not retrieved.
        """
        documents = self._documents(rankings).tolist()
        runs = {
            str(query): {name: float(len(row) - place) for place, name in enumerate(_iter_distinct_names(row)) if name}
            for query, row in enumerate(documents)
        }
        values = np.zeros((len(measures), self.n_queries))
        answered = {query: run for query, run in runs.items() if run}
        for row, query, value in compute([str(measure) for measure in measures], self._qrels, answered):
            values[row, int(query)] = value
        return values


def _iter_distinct_names(row: Sequence[int]) -> Iterator[str]:
    """Yield a name for each rank: "" for no document, and an unjudged name for a repeated document."""
    seen: set[int] = set()
    for place, document in enumerate(row):
        yield "" if document == NOTHING else f"{document}#{place}" if document in seen else str(document)
        seen.add(document)
