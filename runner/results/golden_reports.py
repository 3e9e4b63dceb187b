"""Read reports of golden evaluations (`eval_..._report.json`) as results, one for each search type.

Result files of needle searches are read as such reports. Every measure is computed again from the retrieved items, so
that it means the same as in other results; the figures in the report are not read (its nDCG may have another discount).
Ranks below the listed items are not measured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import orjson
from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from retrievers.base import NOTHING, Rankings
from retrievers.store import fingerprint
from runner.datasets.base import Judgments
from runner.evaluation.measuring import RankedDocuments, measure
from runner.evaluation.result import DatasetSummary, JudgedQueries, Result, ResultError, Timings
from runner.metrics.measures import REPORT_MEASURES, expand
from runner.metrics.scores import Grader
from runner.metrics.settings import MetricSettings
from runner.results.needle_results import is_needle_results, report_of, rows_of_csv
from runner.statistics.settings import Statistics

RELEVANCE = {"high": 3, "medium": 2, "low": 1}
"""The grades of labels for a report that defines none."""

LISTED = 10
"""The assumed minimum number of items listed for a query, for a report that does not state it."""


@dataclass(frozen=True, config={"coerce_numbers_to_str": True})
class _Query:
    query_id: str
    query_text: str
    expected_items: list[str]
    retrieved_items: list[str]
    query_type: str = ""
    status: str = ""
    error: str | None = None
    expected_relevance: dict[str, str] = field(default_factory=dict)
    retrieved_scores: list[float] = field(default_factory=list)
    retrieval_time_ms: float | None = None


@dataclass(frozen=True)
class _Part:
    """The results of one search type."""

    query_results: Annotated[list[_Query], Field(min_length=1)]
    timing: dict[str, Any] = field(default_factory=dict)
    own_gold: list[str] = field(default_factory=list)
    search_configuration: Any = None


@dataclass(frozen=True)
class _Config:
    top_k_values: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]
    dataset_path: str = ""
    search_type: str | None = None
    actual_item_count: int | None = None
    dataset_version: str | None = None
    relevance: Annotated[dict[str, int], Field(min_length=1)] = field(default_factory=lambda: dict(RELEVANCE))
    depth: int | None = None
    listed_items: Annotated[int, Field(ge=1)] | None = None

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the dataset: its version, for reports that state how many items they list."""
        return self.dataset_version or "" if self.listed_items else ""


@dataclass(frozen=True)
class _Report:
    run_id: str
    config: _Config
    timestamp: str = ""
    query_results: list[_Query] | None = None
    timing: dict[str, Any] = field(default_factory=dict)
    own_gold: list[str] = field(default_factory=list)
    search_configuration: Any = None
    results_by_search_type: dict[str, _Part] = field(default_factory=dict)


def is_report(content: object) -> bool:
    """Return whether the content of a JSON file is such a report."""
    if is_needle_results(content):
        return True
    return isinstance(content, Mapping) and not {"query_results", "results_by_search_type"}.isdisjoint(content)


def report_content(path: Path) -> object:
    """Return the content of a JSON file, or of a CSV file of ranks; raises `ValueError` or `OSError`."""
    return rows_of_csv(path) if path.suffix.lower() == ".csv" else orjson.loads(path.read_bytes())


def read_report(path: Path) -> list[Result]:
    """Return a result for each search type of a report, in its order; raises `ResultError`."""
    try:
        content = report_content(path)
        if is_needle_results(content):
            content = report_of(cast("Mapping[str, Any]", content), path.stem)
        report = TypeAdapter(_Report).validate_python(content)
        parts = report.results_by_search_type
        if report.query_results is not None:
            name = report.config.search_type or "search"
            own = {key: getattr(report, key) for key in ("timing", "own_gold", "search_configuration")}
            parts = {name: _Part(query_results=report.query_results, **own)}
        if not parts:
            raise ResultError("the report has no results for any search type")
        return [_result(report, search_type, part) for search_type, part in parts.items()]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ResultError(f"{path}: expected a report of a golden evaluation ({place}: {first['msg']})") from None
    except (OSError, ValueError) as error:
        raise ResultError(f"{path}: {error}") from None


def _result(report: _Report, search_type: str, part: _Part) -> Result:
    queries = part.query_results
    settings, depth = _select_measures(report.config, max(len(q.retrieved_items) for q in queries))
    documents = sorted({item for q in queries for item in chain(q.expected_items, q.retrieved_items)})
    grader = Grader(_judgments(queries, documents, report.config.relevance), len(queries), len(documents))
    rankings = _rankings(queries, documents, depth)
    config = {
        "choices": {"retriever": search_type},
        "dataset": {"path": report.config.dataset_path},
        "metrics": {"k_values": list(settings.k_values), "depth": settings.depth},
        **({"search_configuration": part.search_configuration} if part.search_configuration else {}),
    }
    graded = ([(i, _grade(q, i, report.config.relevance)) for i in dict.fromkeys(q.expected_items)] for q in queries)
    gold = [sorted((pair for pair in of if pair[1] > 0), key=lambda pair: (-pair[1], pair[0])) for of in graded]
    measurements = measure(
        rankings,
        grader,
        settings,
        Statistics(),
        JudgedQueries(
            ids=[q.query_id for q in queries],
            texts=[q.query_text for q in queries],
            types=[q.query_type for q in queries],
            expected=[[item for item, _ in pairs] for pairs in gold],
            expected_grades=[[grade for _, grade in pairs] for pairs in gold],
        ),
        RankedDocuments(documents),
        part.own_gold,
    )
    return Result(
        **vars(measurements),
        name=f"{report.run_id} {search_type}",
        retriever=search_type,
        config=config,
        config_hash=fingerprint(orjson.dumps(config).decode()),
        dataset=DatasetSummary(
            name=Path(report.config.dataset_path).stem,
            split="test",
            fingerprint=report.config.fingerprint,
            corpus_fingerprint="",  # a report does not identify its documents
            documents=report.config.actual_item_count or 0,
            queries=len(queries),
            judgments=len(grader.judgments),
        ),
        timings=_timings(part, rankings.errors or {}),
        environment={"run_id": report.run_id, "timestamp": report.timestamp},
    )


def _select_measures(config: _Config, longest: int) -> tuple[MetricSettings, int]:
    """Return the measures for which the lists of a report are long enough, and the depth of its rankings.

    If more was retrieved than is listed, ranks below the lists cannot be measured; `longest` is the longest list.
    """
    cutoffs = sorted(set(config.top_k_values))
    requested = cutoffs[-1] if config.depth is None else config.depth
    listed = config.listed_items or max(longest, LISTED)
    whole = min(requested, config.actual_item_count or requested) <= listed
    kept = [k for k in cutoffs if whole or k <= listed]
    if not kept:
        raise ResultError(f"top_k_values begin at {cutoffs[0]}, but queries list at most {listed} items")
    measures = tuple(str(measure) for measure in expand(REPORT_MEASURES, kept) if whole or measure.cutoff)
    depth = max(config.listed_items or kept[-1], longest)
    settings = MetricSettings(
        measures=measures,
        k_values=tuple(kept),
        primary=f"nDCG@{10 if 10 in kept else kept[-1]}",
        depth=max(depth, kept[-1], requested if whole else 0),
    )
    return settings, depth


def _grade(query: _Query, item: str, relevance: Mapping[str, int]) -> int:
    label = query.expected_relevance.get(item)
    if label is None:
        return max(relevance.values())
    if label not in relevance and not label.isdecimal():
        raise ResultError(
            f"{query.query_id} has an item with the unknown relevance {label!r} (known: {', '.join(relevance)})"
        )
    return relevance[label] if label in relevance else int(label)


def _judgments(queries: Sequence[_Query], documents: Sequence[str], relevance: Mapping[str, int]) -> Judgments:
    position = {item: place for place, item in enumerate(documents)}
    return Judgments.of(
        (i, position[item], _grade(q, item, relevance)) for i, q in enumerate(queries) for item in {*q.expected_items}
    )


def _rankings(queries: Sequence[_Query], documents: Sequence[str], depth: int) -> Rankings:
    """Return the retrieved items in order; if the best score is the lowest, as in SQLite, signs are inverted."""
    position = {item: place for place, item in enumerate(documents)}
    shape = (len(queries), depth)
    retrieved, scores = np.full(shape, NOTHING, dtype=np.int32), np.full(shape, -np.inf, dtype=np.float32)
    sign = -1 if sum(q.retrieved_scores[0] - q.retrieved_scores[-1] for q in queries if q.retrieved_scores) < 0 else 1
    for i, q in enumerate(queries):
        n = len(q.retrieved_items)
        if len(set(q.retrieved_items)) < n:
            raise ResultError(f"{q.query_id} retrieved the same item twice")
        if len(q.retrieved_scores) not in (0, n):
            raise ResultError(f"{q.query_id} retrieved {n} items, but has {len(q.retrieved_scores)} scores")
        retrieved[i, :n] = [position[item] for item in q.retrieved_items]
        scores[i, :n] = sign * np.array(q.retrieved_scores) if q.retrieved_scores else -np.arange(n)
    failed = {i: q.error or "failed" for i, q in enumerate(queries) if q.error or q.status == "error"}
    return Rankings(retrieved, scores, errors=failed)


def _timings(part: _Part, failed: Collection[int]) -> Timings:
    times = [None if i in failed else q.retrieval_time_ms for i, q in enumerate(part.query_results)]
    timed = [ms for ms in times if ms is not None]
    return Timings(
        index_s=0.0,
        search_s=sum(timed) / 1000,
        score_s=0.0,
        wall_s=float(part.timing.get("total_evaluation_time_s") or 0),
        mean_ms=float(np.mean(timed)) if timed else None,
        p95_ms=float(np.percentile(timed, 95)) if timed else None,
        each_ms=times if timed else (),
    )
