"""The result of one evaluation as a value. Every report, comparison and gate starts from it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Corpus, Rankings
from retrievers.id_table import IdTable, select_ids
from retrievers.work import Cost
from runner.datasets.chunking import END, START
from runner.datasets.document_hashes import DocumentHashes
from runner.evaluation.grades import Grades
from runner.evaluation.losses import Losses
from runner.metrics.abstention import Abstention
from runner.metrics.foreign_ids import GOLD_IN_NO_HIT
from runner.statistics.clusters import Clusters, number_clusters


class ResultError(ValueError):
    """A result record is missing, damaged, or of a version that this program does not read."""


@dataclass(frozen=True)
class DatasetSummary:
    """What a result records about its dataset.

    `chunks` is the number of chunks, None if documents were not split; `clusters` is the number of clusters of queries,
    None if every query is its own cluster.
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
    """Times in seconds. `index_s` and `search_s` are the cost without shared work, `wall_s` is the elapsed time.

    `mean_ms` and `p95_ms` are milliseconds per query, for queries searched one at a time (None if none was timed).
    `each_ms` has the time of each query up to the last one that was timed, None for a query that was not. `stages`
    lists the work that the evaluation needed. `index_bytes` is the size of the index, None if it is unknown; `money` is
    what calls of models behind APIs cost when the work was done, without grading.
    """

    index_s: float
    search_s: float
    score_s: float
    wall_s: float
    mean_ms: float | None
    p95_ms: float | None
    stages: Sequence[Cost] = ()
    each_ms: Sequence[float | None] = ()
    index_bytes: int | None = None
    money: float | None = None

    @property
    def median_ms(self) -> float | None:
        """Return the median of `each_ms`, which a single slow query does not change; None if none was timed."""
        timed = [ms for ms in self.each_ms if ms is not None]
        return float(np.median(timed)) if timed else None


@dataclass(frozen=True, eq=False)
class JudgedQueries:
    """The judged queries in columns, which all results on a dataset have in common.

    `expected` has the ids of each query's gold, highest grade first, and `expected_grades` their grades; old records
    have none. `clusters` are labels that variants of a query share, "" for a query that is its own cluster; if empty,
    every query is its own cluster. `fields` are other fields of each query by which results are sliced, or empty.
    Columns equal others that are the same objects.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    types: Sequence[str]
    expected: Sequence[Sequence[str]]
    expected_grades: Sequence[Sequence[int]] = ()
    clusters: Sequence[str] = ()
    fields: Sequence[Mapping[str, str]] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JudgedQueries) and self._list_objects() == other._list_objects()

    def __hash__(self) -> int:
        return hash(self._list_objects())

    def _list_objects(self) -> tuple[int, ...]:
        return tuple(map(id, vars(self).values()))


@dataclass(frozen=True, eq=False, kw_only=True)
class QueryTable(JudgedQueries):
    """The judged queries with what a search of each led to; `statuses` are those of `list_statuses`.

    `errors` is "" if the search succeeded; `notes` describes, as JSON, the steps of a retriever of several steps, else
    "".
    """

    statuses: Sequence[str]
    errors: Sequence[str]
    notes: Sequence[str]

    @property
    def shared(self) -> JudgedQueries:
        """Return the columns that other results on the dataset have too."""
        return JudgedQueries(*(getattr(self, column.name) for column in fields(JudgedQueries)))

    def __reduce__(self) -> tuple[Callable[..., QueryTable], tuple[Any, ...]]:
        """Pickle the columns that results have in common once, and read them once."""
        return _unpack_queries, (_pack_columns(self.shared), self.statuses, self.errors, self.notes)

    @property
    def cluster_numbers(self) -> Clusters | None:
        """Return the number of each query's cluster, for statistics; None if every query is its own cluster."""
        return number_clusters(self.clusters)


@lru_cache(maxsize=1)
def _pack_columns(columns: JudgedQueries) -> bytes:
    return pickle.dumps(vars(columns), protocol=5)


@lru_cache(maxsize=1)
def _unpack_columns(content: bytes) -> dict[str, Any]:
    columns: dict[str, Any] = pickle.loads(content)  # noqa: S301 (a part of a pickle)
    return columns


def _unpack_queries(columns: bytes, statuses: Sequence[str], errors: Sequence[str], notes: Sequence[str]) -> QueryTable:
    return QueryTable(**_unpack_columns(columns), statuses=statuses, errors=errors, notes=notes)


@dataclass(frozen=True, eq=False)
class ChunkPlaces:
    """Where chunks are in the documents that they are pieces of, as offsets of characters, and their titles.

    An `ends` of 0 means that the place is unknown or the hit is not a chunk. `titles` is empty if no chunk has one.
    """

    titles: Sequence[str]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]

    @classmethod
    def of(cls, chunks: Corpus) -> ChunkPlaces:
        """Return the places of the chunks of a corpus, from their metadata, which in a plug-in may lack them."""
        starts, ends = (
            np.array([row.get(name, 0) for row in chunks.metadata], dtype=np.int32) for name in (START, END)
        )
        return cls(chunks.titles, starts, ends)

    def read(self, chunk: int) -> tuple[str, int, int]:
        """Return the title, the start and the end of a chunk."""
        return self.titles[chunk] if self.titles else "", int(self.starts[chunk]), int(self.ends[chunk])

    def select(self, is_used: NDArray[np.bool_]) -> ChunkPlaces:
        """Return some of them, by a mask."""
        titles = select_ids(self.titles, is_used) if self.titles else ()
        return ChunkPlaces(titles, self.starts[is_used], self.ends[is_used])

    def extend(self, n: int) -> ChunkPlaces:
        """Return them, followed by n hits that are no chunks."""
        nothing = np.zeros(n, dtype=np.int32)
        titles = [*self.titles, *[""] * n] if self.titles else ()
        return ChunkPlaces(titles, np.append(self.starts, nothing), np.append(self.ends, nothing))


@dataclass(frozen=True, eq=False)
class Hits:
    """Rankings by document id, with the grade of each hit (n x k, -1 for unjudged hits and empty places).

    `metadata` is shown to readers with the id of each document; it may be empty. If chunks were searched, `documents`
    are chunks, and `parents` the ids of the documents that they are pieces of; else `parents` is empty. `chunks` are
    the places of these pieces; None without chunks, and in old records. `unknown` marks the documents that a service
    returned but the dataset lacks; None if there are none.
    """

    rankings: Rankings
    documents: Sequence[str]
    grades: NDArray[np.int32]
    metadata: Sequence[Mapping[str, Any]] = ()
    parents: Sequence[str] = ()
    unknown: NDArray[np.bool_] | None = None
    chunks: ChunkPlaces | None = None

    @property
    def is_unknown(self) -> NDArray[np.bool_]:
        """Return which hits the dataset lacks (n x k)."""
        if self.unknown is None:
            return np.zeros(self.rankings.documents.shape, dtype=np.bool_)
        return np.append(self.unknown, False)[self.rankings.documents]  # the last element is for empty places

    @property
    def unknown_ids(self) -> frozenset[str]:
        """Return the ids of the documents that the dataset lacks."""
        return frozenset() if self.unknown is None else frozenset(select_ids(self.documents, self.unknown))

    @property
    def judged(self) -> Sequence[str]:
        """Return the ids that judgments use for the documents: for chunks, those of their parents."""
        return self.parents or self.documents

    def ids(self, query: int, k: int | None = None) -> list[str]:
        """Return the ids of the first `k` hits of a query, given by position, best first."""
        return [self.documents[d] for d in self.rankings.documents[query, :k] if d != NOTHING]

    def trim(self) -> Hits:
        """Return the same hits with, of a large corpus, only the documents among them."""
        if np.count_nonzero(self.rankings.documents != NOTHING) >= len(self.documents):
            return self
        is_used, positions = self.number_used()
        return replace(
            self,
            rankings=replace(self.rankings, documents=positions),
            documents=select_ids(self.documents, is_used),
            metadata=list(compress(self.metadata, is_used.tolist())),
            parents=select_ids(self.parents, is_used) if self.parents else (),
            unknown=None if self.unknown is None else self.unknown[is_used],
            chunks=self.chunks and self.chunks.select(is_used),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to send to another process, without unused documents."""
        hits = self.trim()
        return {**vars(hits), "documents": IdTable.of(hits.documents)}

    def number_used(self) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
        """Return a mask of the documents among the hits, and each hit's position among these (n x k, -1 for none)."""
        documents = self.rankings.documents
        is_used = np.zeros(len(self.documents) + 1, dtype=np.bool_)  # a mask: sorting would take five times as long
        is_used[documents] = True  # the last element is for empty places
        numbers = np.cumsum(is_used, dtype=np.int32) - 1
        numbers[-1] = NOTHING
        return is_used[:-1], numbers[documents]


@dataclass(frozen=True)
class Holes:
    """Counts of unjudged hits among the first `cutoff` hits of the queries that enter a mean.

    `hits` counts all of these hits, of several chunks of a document only the first, `unjudged` those without a grade,
    `unknown` those that the dataset lacks;
    `unknown_anywhere` counts the latter at any rank of any query. `rates` are the hole rates; their keys are cutoffs,
    as text.
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
    """Rankings from any origin, measured by judgments.

    `measures` are names as ir_measures spells them, `primary` is the one to rank systems by; `scores` (measures x
    queries, float64) are NaN for queries that enter no mean. `means`, `intervals` (low, high) and `by_type` (type ->
    measure -> mean; type -> "queries" -> count) are computed from `scores`. `abstention` is about the queries whose
    right result is empty. `holes` counts the unjudged hits; None if gold is spans, which do not tell which hits were
    judged. `own_gold` has the ids of the queries for which the dataset expects other items from this search type than
    in general. `diagnostics` are the retriever's figures about itself, such as the recall of an approximate index, and
    the means at other thresholds of gold spans. `outcomes` are values of each query by name that are not measures of
    its ranking, such as the cost of an agent's task, NaN where unknown. `addresses` are those of the services that
    answered, by the part of the retriever that queried each. `settled` is as in `Rankings`.
    `warnings` are sentences to show with the figures.
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
    outcomes: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    settled: bool = True
    addresses: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Result(Measurements):
    """One evaluation of one retriever on one dataset.

    `name` is that of the run: the swept keys and their values, or the retriever. `swept` maps these keys to their
    values, in the order in which they are shown. `index` is what an external index reported about itself when it was
    searched, as in `retrievers.index_facts`. `grades` are those of a language model, if one is configured.
    `search_type` is the name that selected the dataset's judgments. `document_hashes` has a hash of each document, by
    which `compare` counts changes; None if it is not recorded. `losses` has the step that lost each gold document that
    is missed; None in old records, and for rankings of unknown origin.
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
    document_hashes: DocumentHashes | None = None
    losses: Losses | None = None

    def of(self, measure: str) -> NDArray[np.float64]:
        """Return a measure's value for each query; raises `ResultError` if it was not measured."""
        if measure not in self.measures:
            cut = [other for other in self.measures if other.startswith(f"{measure}@")]
            raise ResultError(f"{self.name} has no {measure}; choose from {', '.join(cut or self.measures)}")
        values: NDArray[np.float64] = self.scores[list(self.measures).index(measure)]
        return values

    def light(self) -> Result:
        """Return the result without rankings, ranks of gold and hashes of documents, as a sweep keeps it in memory."""
        return replace(self, hits=None, document_hashes=None, losses=self.losses and self.losses.light())

    @property
    def extra_qrels(self) -> tuple[str, ...]:
        """Return the files of judgments that the evaluation used beside those of the dataset."""
        dataset = self.config.get("dataset")
        files = dataset.get("extra_qrels") if isinstance(dataset, Mapping) else None
        return (files,) if isinstance(files, str) else tuple(files or ())

    @property
    def has_foreign_ids(self) -> bool:
        """Return whether no hit is a document of the dataset or, without documents, gold of any query.

        Then the figures are about the ids, and say nothing about the system.
        """
        holes = self.holes
        if holes is None or not holes.hits or any(rate < 1 for rate in holes.rates.values()):
            return False
        if self.dataset.documents:
            return holes.unknown == holes.hits
        gold = {document for expected in self.queries.expected for document in expected}
        return self.diagnostics.get(GOLD_IN_NO_HIT) == len(gold)

    @property
    def unfinished(self) -> str:
        """Return why running it again may fill gaps in the result; "" if it has none."""
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
        """Return the errors of failed queries by query id."""
        return {i: error for i, error in zip(self.queries.ids, self.queries.errors, strict=True) if error}


def count_statuses(result: Result) -> dict[str, int]:
    """Return the number of queries with each status."""
    order = ("pass", "partial", "fail", "true_negative", "false_positive", "unjudged", "error")
    statuses = list(result.queries.statuses)
    return {status: statuses.count(status) for status in order if status in statuses}


def without_metadata(result: Result) -> Result:
    """Return a result without the metadata of its documents."""
    return result if result.hits is None else replace(result, hits=replace(result.hits, metadata=()))
