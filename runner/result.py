"""The one versioned record of an evaluation, from which every report, comparison and gate is made.

A record is a folder: `result.json` (what was evaluated, means, failures, timings), `per_query.parquet` (every measure
of every query), `rankings.parquet` (what each query found, with grades) and `grades.parquet` (what a language model
said of that, if one was asked). The same input gives the same bytes, but for what stands under `timings` and
`environment`, and what a language model says. It knows neither how a result came to be nor where it is logged.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings, create_empty_rankings
from retrievers.files import replace_file
from retrievers.work import Cost
from runner.analysis.clusters import Clusters, numbered
from runner.analysis.grades import Grades, load_grades, save_grades
from runner.metrics.abstention import Abstention

VERSION = 1


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
        return numbered(self.clusters)


@dataclass(frozen=True, eq=False)
class Hits:
    """Rankings by document id, with the grade of what is judged (n x k, -1 for unjudged or nothing).

    `metadata` is what a reader is shown of each document besides its id, or empty. Where chunks were searched, the
    documents are these, and `parents` the ids of what they are chunks of; else it is empty. `unknown` are the ids of
    those documents that a service returned and the dataset lacks.
    """

    rankings: Rankings
    documents: Sequence[str]
    grades: NDArray[np.int32]
    metadata: Sequence[Mapping[str, Any]] = ()
    parents: Sequence[str] = ()
    unknown: frozenset[str] = frozenset()

    @property
    def is_unknown(self) -> NDArray[np.bool_]:
        """Return which hits the dataset lacks (n x k)."""
        places = [place for place, name in enumerate(self.documents) if name in self.unknown] if self.unknown else []
        return np.isin(self.rankings.documents, places)

    @property
    def judged(self) -> Sequence[str]:
        """Return the ids by which judgments know the documents: of chunks, those of their parents."""
        return self.parents or self.documents

    def ids(self, query: int, k: int | None = None) -> list[str]:
        """Return the ids that a query (by position) found, best first."""
        return [self.documents[d] for d in self.rankings.documents[query, :k] if d != NOTHING]

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process gets: of a large corpus those documents alone that were found."""
        there = self.rankings.documents != NOTHING
        if np.count_nonzero(there) >= len(self.documents):
            return dict(vars(self))
        is_used = np.zeros(len(self.documents), dtype=bool)  # a mask: sorting would take five times as long
        is_used[self.rankings.documents[there]] = True
        used = np.flatnonzero(is_used).tolist()
        codes = np.cumsum(is_used, dtype=np.int32) - 1
        positions = np.where(there, codes[self.rankings.documents], np.int32(NOTHING))
        columns = {
            name: [column[d] for d in used] if (column := getattr(self, name)) else ()
            for name in ("documents", "metadata", "parents")
        }
        rankings = replace(self.rankings, documents=positions)
        return {"rankings": rankings, "grades": self.grades, "unknown": self.unknown, **columns}


@dataclass(frozen=True)
class Holes:
    """Hits that nobody judged, among the first `cutoff` of the queries that enter a mean.

    `hits` is how many hits these are, `unjudged` how many of them have no grade, `unknown` how many the dataset lacks;
    `unknown_anywhere` counts the latter at any rank of any query.
    """

    cutoff: int
    hits: int
    unjudged: int
    unknown: int
    unknown_anywhere: int

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
    in which they are shown. `grades` are a language model's, where one is configured. `search_type` is the name by
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

    def of(self, measure: str) -> NDArray[np.float64]:
        """Return a measure's value for each query; raises `ResultError` for one that was not measured."""
        if measure not in self.measures:
            cut = [other for other in self.measures if other.startswith(f"{measure}@")]
            raise ResultError(f"{self.name} has no {measure}: it has {', '.join(cut or self.measures)}")
        values: NDArray[np.float64] = self.scores[list(self.measures).index(measure)]
        return values

    def light(self) -> Result:
        """Return the result without its rankings, which a sweep does not keep in memory."""
        return replace(self, hits=None)

    @property
    def unfinished(self) -> str:
        """Say what of it may go well another time; "" where nothing may."""
        if not self.settled:
            return "something failed in its search that may go well another time"
        if self.grades and self.grades.unasked:
            return "its grading ended before all was graded"
        return "errors that may pass left some of it without a grade" if self.grades and self.grades.failed else ""

    @property
    def failures(self) -> dict[str, str]:
        """Return what went wrong, by query id."""
        return {i: error for i, error in zip(self.queries.ids, self.queries.errors, strict=True) if error}


_TABLES = ("queries", "scores", "hits", "grades")


def save(result: Result, folder: Path) -> None:
    """Write a result's record into a folder; `result.json` comes last, so that its existence means all is there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    q = result.queries
    table = {
        "query_id": pa.array(q.ids),
        "query": pa.array(q.texts),
        "type": pa.array(q.types).dictionary_encode(),
        "status": pa.array(q.statuses).dictionary_encode(),
        "error": pa.array(q.errors).dictionary_encode(),
        "note": pa.array(q.notes).dictionary_encode(),
        "expected": pa.array([list(e) for e in q.expected], pa.list_(pa.string())),
    }
    if q.expected_grades:
        table["expected_grades"] = pa.array([list(g) for g in q.expected_grades], pa.list_(pa.int32()))
    if any(q.clusters):
        table["cluster"] = pa.array(q.clusters).dictionary_encode()
    scores = {m: pa.array(row, from_pandas=True) for m, row in zip(result.measures, result.scores, strict=True)}
    folder.mkdir(parents=True, exist_ok=True)
    # Statistics and dictionaries of numbers would take as long to write as all else.
    compact = {"compression": "zstd", "write_statistics": False}
    pq.write_table(pa.table(table | scores), folder / "per_query.parquet", **compact, use_dictionary=["type", "status"])
    if result.hits is not None:
        coded = ["query_id", "document_id", "grade", "metadata", "parent_id"]
        pq.write_table(_rankings_table(result), folder / "rankings.parquet", **compact, use_dictionary=coded)
    if result.grades is not None:
        save_grades(result.grades, q.ids, folder / "grades.parquet")
    head = {"version": VERSION} | {k: v for k, v in _shallow(result).items() if k not in _TABLES}
    head |= {"dataset": asdict(result.dataset), "timings": asdict(result.timings)}
    head |= {"abstention": result.abstention.to_dict()}
    head |= {"grades": result.grades.head()} if result.grades is not None else {}
    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    head["swept"] = orjson.Fragment(orjson.dumps(dict(result.swept), option=options, default=str))  # in its order
    options |= orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    with replace_file(folder / "result.json") as new:
        new.write_bytes(orjson.dumps(head, option=options, default=str))


def load(path: Path, rankings: bool = True) -> Result:
    """Read a record back, by its folder or its `result.json`, with its rankings or without; raises `ResultError`."""
    file = path / "result.json" if path.is_dir() else path
    try:
        return _loaded(file, rankings)
    except ResultError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        said = " ".join(str(error).split())[:200]
        raise ResultError(f"{file.parent}: a damaged record ({type(error).__name__}: {said})") from None


def _loaded(file: Path, rankings: bool) -> Result:
    import pyarrow.parquet as pq

    try:
        head = orjson.loads(file.read_bytes())
        version = head.pop("version")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ResultError(f"{file}: not a result record ({error})") from None
    if version != VERSION:
        raise ResultError(f"{file}: version {version} of the record; this program reads version {VERSION}")
    for part in ["per_query.parquet", *(["grades.parquet"] if head.get("grades") else [])]:
        if not (file.parent / part).is_file():
            raise ResultError(f"{file}: {part} is missing beside it: a record is the whole folder")
    table = pq.ParquetFile(file.parent / "per_query.parquet").read(use_threads=False)
    columns = {
        name: table[name].to_numpy().tolist() for name in ("query_id", "query", "type", "status", "error", "note")
    }
    queries = QueryTable(
        ids=columns["query_id"],
        texts=columns["query"],
        types=columns["type"],
        expected=_lists(table["expected"]),
        statuses=columns["status"],
        errors=columns["error"],
        notes=columns["note"],
        expected_grades=_lists(table["expected_grades"]) if "expected_grades" in table.column_names else (),
        clusters=table["cluster"].to_numpy().tolist() if "cluster" in table.column_names else (),
    )
    timings = head.pop("timings")
    stages = [Cost(**stage) for stage in timings.pop("stages")]
    head["abstention"] = Abstention.from_dict(head["abstention"])
    head["holes"] = Holes(**head["holes"]) if head.get("holes") else None
    head["intervals"] = {name: (low, high) for name, (low, high) in head["intervals"].items()}
    rows = [table[m].to_numpy() for m in head["measures"]]
    scores = np.array(rows, dtype=np.float64).reshape(-1, len(queries.ids))
    found, graded, grades = file.parent / "rankings.parquet", file.parent / "grades.parquet", head.pop("grades", None)
    return Result(
        **head | {"dataset": DatasetSummary(**head["dataset"]), "timings": Timings(stages=stages, **timings)},
        queries=queries,
        scores=scores,
        hits=_found(pq.read_table(found), queries) if rankings and found.is_file() else None,
        grades=load_grades(grades, queries.ids, graded) if grades else None,
    )


def write_trec(result: Result, file: Path) -> None:
    """Write a result's rankings as a gzipped TREC run.

    The format parts its fields at white space, so that each such character of an id is percent-encoded, and "%" too;
    an empty id is "%".
    """
    if result.hits is None:
        raise ResultError(f"{result.name} was loaded without its rankings")
    documents, scores = result.hits.rankings.documents, result.hits.rankings.scores
    tag, ids = _token(result.name), [_token(i) for i in result.hits.documents]
    lines = [
        f"{_token(query)} Q0 {ids[document]} {place + 1} {score!r} {tag}\n"
        for position, query in enumerate(result.queries.ids)
        for place, (document, score) in enumerate(
            zip(documents[position].tolist(), scores[position].tolist(), strict=True)
        )
        if document != NOTHING
    ]
    with file.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        packed.write("".join(lines).encode())


def _token(text: str) -> str:
    return re.sub(r"[\s%]", lambda character: quote(character[0]), text) or "%"


def _shallow(result: Result) -> dict[str, Any]:
    return {name: getattr(result, name) for name in result.__dataclass_fields__}


def _rankings_table(result: Result) -> Any:  # noqa: ANN401 (pyarrow has no types)
    import pyarrow as pa

    assert result.hits is not None  # noqa: S101 (the caller looked)
    documents, ids = result.hits.rankings.documents, result.hits.documents
    there = documents != NOTHING
    used, codes = np.unique(documents[there], return_inverse=True)
    queries, places = np.nonzero(there)
    columns: dict[str, Any] = {}
    if result.hits.metadata:
        shown = pa.array([orjson.dumps(dict(result.hits.metadata[d])).decode() for d in used])
        columns["metadata"] = pa.DictionaryArray.from_arrays(codes.astype(np.int32), shown)
    if result.hits.parents:
        parents = pa.array([result.hits.parents[d] for d in used])
        columns["parent_id"] = pa.DictionaryArray.from_arrays(codes.astype(np.int32), parents)
    if result.hits.unknown:
        columns["unknown"] = result.hits.is_unknown[there]
    return pa.table(
        {
            "query_id": pa.DictionaryArray.from_arrays(queries.astype(np.int32), pa.array(result.queries.ids)),
            "rank": places.astype(np.int32) + 1,
            "document_id": pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array([ids[d] for d in used])),
            "score": result.hits.rankings.scores[there],
            "grade": result.hits.grades[there],
            **columns,
        }
    )


def _lists(column: Any) -> list[list[Any]]:  # noqa: ANN401 (pyarrow has no types)
    """Return a column of lists; pyarrow's own way, one value after the other, takes five times as long."""
    lists = column.combine_chunks()
    values, offsets = lists.values.to_numpy(zero_copy_only=False).tolist(), lists.offsets.to_numpy().tolist()
    return [values[begin:end] for begin, end in pairwise(offsets)]


def _found(table: Any, asked: QueryTable) -> Hits:  # noqa: ANN401 (pyarrow has no types)
    errors = {i: error for i, error in enumerate(asked.errors) if error} or None
    if not table.num_rows:
        nothing = create_empty_rankings(len(asked.ids), 0)
        return Hits(replace(nothing, errors=errors), [], nothing.documents)
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    position = {query: i for i, query in enumerate(asked.ids)}
    codes, ids = columns["document_id"].indices.to_numpy(), columns["document_id"].dictionary.to_pylist()
    in_table = np.array([position[q] for q in columns["query_id"].dictionary.to_pylist()], dtype=np.int64)
    queries = in_table[columns["query_id"].indices.to_numpy()]
    places = columns["rank"].to_numpy() - 1
    shape = (len(asked.ids), int(places.max(initial=-1)) + 1)
    documents, grades = np.full(shape, NOTHING, np.int32), np.full(shape, NOTHING, np.int32)
    scores = np.full(shape, -np.inf, np.float32)
    documents[queries, places], scores[queries, places] = codes, columns["score"].to_numpy()
    grades[queries, places] = columns["grade"].to_numpy()

    def of_each(name: str) -> list[str]:
        """Return a column's value of each document, by code; none where there is no such column."""
        if name not in columns:
            return []
        said = dict(zip(codes.tolist(), columns[name].cast("string").to_pylist(), strict=True))
        return [said[code] for code in range(len(ids))]

    metadata = [orjson.loads(shown) for shown in of_each("metadata")]
    unknown = frozenset(name for name, said in zip(ids, of_each("unknown"), strict=False) if said == "true")
    return Hits(Rankings(documents, scores, errors=errors), ids, grades, metadata, of_each("parent_id"), unknown)
