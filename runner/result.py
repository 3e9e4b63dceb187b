"""One evaluation as a value, from which every report, comparison and gate is made.

Nothing here knows how a result came to be, how it is saved, or where it is logged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from retrievers.id_table import IdTable, select_ids
from retrievers.work import Cost
from runner.analysis.clusters import Clusters, number_clusters
from runner.analysis.grades import Grades
from runner.metrics.abstention import Abstention


class ResultError(ValueError):
    """A result record is missing, damaged, or of a version that this program does not read."""


@dataclass(frozen=True)
class DatasetSummary:
    """What a result says of its dataset.

    `chunks` is into how many the documents were cut, None if they were not; `clusters` is how many clusters the queries
    form, None where every query is its own.
    """

    name: str
    split: str
    fingerprint: str
    corpus_fingerprint: str
    documents: int
    queries: int
    judgments: int
    chunks: int | None = None
    clusters: int | None = None


@dataclass(frozen=True)
class Timings:
    """Times in seconds. `index_s` and `search_s` are the cost without shared work, `wall_s` is what passed.

    `mean_ms` and `p95_ms` are of single queries, searched one at a time (None where none was timed), `each_ms` is the
    time of each query, up to the last that was timed (None for one that was not). `stages` are the work that the
    evaluation needed.
    """

    index_s: float
    search_s: float
    score_s: float
    wall_s: float
    mean_ms: float | None
    p95_ms: float | None
    stages: Sequence[Cost] = ()
    each_ms: Sequence[float | None] = ()

    @property
    def median_ms(self) -> float | None:
        """Return the median of `each_ms`: what a query takes, however long a single one did; None if none was timed."""
        timed = [ms for ms in self.each_ms if ms is not None]
        return float(np.median(timed)) if timed else None


@dataclass(frozen=True, eq=False)
class QueryTable:
    """The judged queries in columns: `expected` are the ids of each one's gold, `statuses` as the abstention room says.

    `expected_grades` are the grades of `expected`; a record that was written before there were any has none.
    `errors` is "" where the search went well, `notes` how a retriever of several steps answered, as JSON, or "".
    `clusters` are labels that variants of a query share ("" for a query that is a cluster of its own); without any,
    every query is its own.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    types: Sequence[str]
    expected: Sequence[Sequence[str]]
    statuses: Sequence[str]
    errors: Sequence[str]
    notes: Sequence[str]
    expected_grades: Sequence[Sequence[int]] = ()
    clusters: Sequence[str] = ()

    @property
    def cluster_numbers(self) -> Clusters | None:
        """Return the cluster of each query, as statistics take them; None where every query is its own."""
        return number_clusters(self.clusters)


@dataclass(frozen=True, eq=False)
class Hits:
    """Rankings by document id, with the grade of what is judged (n x k, -1 for unjudged or nothing).

    `metadata` is what a reader is shown of each document besides its id, or empty. Where chunks were searched, the
    documents are these, and `parents` the ids of what they are chunks of; else it is empty. `unknown` marks those
    documents that a service returned and the dataset lacks; None stands for none.
    """

    rankings: Rankings
    documents: Sequence[str]
    grades: NDArray[np.int32]
    metadata: Sequence[Mapping[str, Any]] = ()
    parents: Sequence[str] = ()
    unknown: NDArray[np.bool_] | None = None

    @property
    def is_unknown(self) -> NDArray[np.bool_]:
        """Return which hits the dataset lacks (n x k)."""
        if self.unknown is None:
            return np.zeros(self.rankings.documents.shape, dtype=np.bool_)
        return np.append(self.unknown, False)[self.rankings.documents]  # the last place is for no document

    @property
    def unknown_ids(self) -> frozenset[str]:
        """Return the ids of the documents that the dataset lacks."""
        return frozenset() if self.unknown is None else frozenset(select_ids(self.documents, self.unknown))

    @property
    def judged(self) -> Sequence[str]:
        """Return the ids by which judgments know the documents: of chunks, those of their parents."""
        return self.parents or self.documents

    def ids(self, query: int, k: int | None = None) -> list[str]:
        """Return the ids that a query (by position) found, best first."""
        return [self.documents[d] for d in self.rankings.documents[query, :k] if d != NOTHING]

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process gets: of a large corpus those documents alone that were found."""
        hits = self
        if np.count_nonzero(self.rankings.documents != NOTHING) < len(self.documents):
            is_used, positions = self.number_used()
            hits = replace(
                self,
                rankings=replace(self.rankings, documents=positions),
                documents=select_ids(self.documents, is_used),
                metadata=list(compress(self.metadata, is_used.tolist())),
                parents=select_ids(self.parents, is_used) if self.parents else (),
                unknown=None if self.unknown is None else self.unknown[is_used],
            )
        return {**vars(hits), "documents": IdTable.of(hits.documents)}

    def number_used(self) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
        """Return which documents are among the hits, and the number of each hit among these (n x k), -1 for none."""
        documents = self.rankings.documents
        is_used = np.zeros(len(self.documents) + 1, dtype=np.bool_)  # a mask: sorting would take five times as long
        is_used[documents] = True  # the last place is for no document
        numbers = np.cumsum(is_used, dtype=np.int32) - 1
        numbers[-1] = NOTHING
        return is_used[:-1], numbers[documents]


@dataclass(frozen=True)
class Holes:
    """Hits that nobody judged, among the first `cutoff` of the queries that enter a mean.

    `hits` is how many hits these are, `unjudged` how many of them have no grade, `unknown` how many the dataset lacks;
    `unknown_anywhere` counts the latter at any rank of any query. `rates` are the hole rates by cutoff, as text.
    """

    cutoff: int
    hits: int
    unjudged: int
    unknown: int
    unknown_anywhere: int
    rates: Mapping[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Return the hole rate, the share of unjudged hits; NaN without hits."""
        return self.unjudged / self.hits if self.hits else float("nan")


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurements:
    """What rankings are worth by judgments, whatever ranked the documents.

    `measures` are names as ir_measures spells them, `primary` is the one to rank systems by; `scores` (measures x
    queries, float64) are NaN for queries that enter no mean. `means`, `intervals` (low, high) and `by_type` (type ->
    measure -> mean; type -> "queries" -> count) are folds over `scores`. `abstention` is about the queries whose right
    answer is nothing. `holes` counts the unjudged hits, None for a record that was written without that count.
    `own_gold` are the queries, by id, of which the dataset expects other items of this search type than in general.
    `diagnostics` are the retriever's figures on itself (an approximate index's recall), `addresses` those of the
    services that answered, by the part of the retriever that queried each; `settled` is as in `Rankings`. `warnings`
    are sentences that a reader of the figures has to know.
    """

    primary: str
    queries: QueryTable
    measures: Sequence[str]
    scores: NDArray[np.float64]
    means: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    by_type: Mapping[str, Mapping[str, float]]
    abstention: Abstention
    hits: Hits | None = None
    holes: Holes | None = None
    own_gold: Sequence[str] = ()
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    settled: bool = True
    addresses: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Result(Measurements):
    """One evaluation of one retriever on one dataset.

    `name` is the run's: the swept keys and their values, or the retriever. `swept` are those keys alone, in the order
    in which they are shown. `index` is what an index that is not ours reported about itself when it was searched, as in
    `retrievers.index_facts`. `grades` are a language model's, where one is configured. `search_type` is the name by
    which the dataset was asked for expectations.
    """

    name: str
    retriever: str
    config: Mapping[str, Any]
    config_hash: str
    dataset: DatasetSummary
    timings: Timings
    swept: Mapping[str, Any] = field(default_factory=dict)
    grades: Grades | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    search_type: str = ""
    index: Mapping[str, str] = field(default_factory=dict)

    def of(self, measure: str) -> NDArray[np.float64]:
        """Return a measure's value for each query; raises `ResultError` for one that was not measured."""
        if measure not in self.measures:
            cut = [other for other in self.measures if other.startswith(f"{measure}@")]
            raise ResultError(f"{self.name} has no {measure}; choose from {', '.join(cut or self.measures)}")
        values: NDArray[np.float64] = self.scores[list(self.measures).index(measure)]
        return values

    def light(self) -> Result:
        """Return the result without its rankings, which a sweep does not keep in memory."""
        return replace(self, hits=None)

    @property
    def unfinished(self) -> str:
        """Say what of it may go well another time; "" where nothing may."""
        if not self.settled:
            return "some searches failed with errors that may be temporary"
        if self.grades and self.grades.unasked:
            return "grading stopped before everything was graded"
        return (
            "errors that may be temporary left some results without a grade"
            if self.grades and self.grades.failed
            else ""
        )

    @property
    def failures(self) -> dict[str, str]:
        """Return what went wrong, by query id."""
        return {i: error for i, error in zip(self.queries.ids, self.queries.errors, strict=True) if error}


def count_statuses(result: Result) -> dict[str, int]:
    """Return the number of queries with each status."""
    order = ("pass", "partial", "fail", "true_negative", "false_positive", "error")
    statuses = list(result.queries.statuses)
    return {status: statuses.count(status) for status in order if status in statuses}
