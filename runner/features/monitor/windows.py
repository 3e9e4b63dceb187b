"""Cut traffic into windows of time, and measure what was served in each.

A window is what its record says, so that later windows are compared with it when its traces are gone.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass as checked

from retrievers.base import NOTHING
from retrievers.services.replies import SearchReply, join_replies
from retrievers.store import fingerprint
from runner.comparison.notes import is_known_item
from runner.datasets.base import Judgments, Qrel
from runner.datasets.dataset import Dataset
from runner.datasets.traffic.queries import hash_query
from runner.datasets.traffic.searches import ServedSearch, Traffic
from runner.features.monitor.settings import HOUR_NS, Monitoring
from runner.metrics.measures import Measure
from runner.metrics.scores import Grader
from runner.statistics.change_detection import Means
from runner.statistics.significance import mean_interval

Floats = NDArray[np.float64]

MOST_WORDS = 3000
"""The number of different words of queries that a record keeps, the most frequent ones."""

QUANTILES = np.linspace(0, 1, 21)
"""The quantiles of the score of the first hit that a record keeps."""

_MONDAY_NS = 4 * 24 * HOUR_NS  # 1970 began on a Thursday


@checked(frozen=True)
class WindowMean:
    """The mean of some searches with its standard error, degrees of freedom and 95 % interval, by queries."""

    mean: float
    error: float
    degrees: float
    low: float
    high: float
    searches: int


@checked(frozen=True)
class QueryRecord:
    """A judged query in a window: how often it was searched, its mean, and which of its gold was served."""

    searches: int
    mean: float
    gold: Sequence[str]


@checked(frozen=True)
class WindowRecord:
    """A window of traffic; times are ISO 8601 in UTC.

    `judgments` identifies the judgments and the measure. `recorded` counts the searches whose hits are known, which
    include `empty` ones. `hits` and `unjudged` count the first hits of judged queries. `latency` has milliseconds by
    percentile, `queries` the judged queries by id, and `words` the searches with a word.
    """

    start: str
    end: str
    judgments: str
    searches: int
    recorded: int
    empty: int
    failed: int
    users: int
    hits: int
    unjudged: int
    quality: WindowMean | None
    answered: WindowMean | None
    slices: Mapping[str, WindowMean]
    latency: Mapping[str, float]
    queries: Mapping[str, QueryRecord]
    words: Mapping[str, int]
    scores: Sequence[float]
    releases: Mapping[str, int]

    @property
    def hole_rate(self) -> float:
        """Return the share of unjudged hits among the first ones of judged queries, NaN without any."""
        return self.unjudged / self.hits if self.hits else math.nan

    @property
    def no_result_rate(self) -> float:
        """Return the share of recorded rankings that are empty, NaN without any."""
        return self.empty / self.recorded if self.recorded else math.nan

    @property
    def failed_rate(self) -> float:
        """Return the share of searches that failed without hits."""
        return self.failed / self.searches


@dataclass(frozen=True, eq=False)
class Golden:
    """Judged queries with the grades of documents by id, and what identifies them."""

    ids: Sequence[str]
    texts: Sequence[str]
    grades: Sequence[Mapping[str, int]]
    identity: str

    @staticmethod
    def of(dataset: Dataset) -> Golden:
        """Return the judgments of a dataset."""
        names = [*dataset.documents.ids, *dataset.judgments.unknown_documents]
        grades: list[dict[str, int]] = [{} for _ in dataset.queries.ids]
        for query, document, grade in dataset.judgments.list_rows():
            grades[query][names[document]] = grade
        return Golden(dataset.queries.ids, dataset.queries.texts, grades, dataset.fingerprint)

    @property
    def is_known_item(self) -> bool:
        """Return whether queries have one right document each, so that most hits are unjudged by design."""
        return is_known_item(sum(len(self.grades[row]) for row in self.rows.values()), len(self.rows))

    def replace_grades(self, qrels: Sequence[Qrel]) -> Golden:
        """Return the queries with only the grades of other qrels."""
        grades: dict[str, dict[str, int]] = {name: {} for name in self.ids}
        for query, document, grade in qrels:
            if query in grades:
                grades[query][document] = grade
        identity = fingerprint(self.identity, *(f"{query} {document} {grade}" for query, document, grade in qrels))
        return replace(self, grades=list(grades.values()), identity=identity)

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Return the position of the query with gold that has a text, by the hash of the text; the first of several."""
        known = [row for row, grades in enumerate(self.grades) if any(grade > 0 for grade in grades.values())]
        return {hash_query(self.texts[row]): row for row in reversed(known)}

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Return the number of each judged document."""
        names = dict.fromkeys(name for grades in self.grades for name in grades)
        return {name: number for number, name in enumerate(names)}


@dataclass(frozen=True, eq=False)
class Judged:
    """The judged searches of some traffic (n,): their queries, values, hits, unjudged hits and gold served."""

    queries: NDArray[np.int64]
    values: Floats
    hits: NDArray[np.int64]
    unjudged: NDArray[np.int64]
    gold: Sequence[Sequence[str]]


def identify(golden: Golden | None, measure: Measure) -> str:
    """Return what identifies the judgments and the measure of a window."""
    return f"{golden.identity} {measure}" if golden else ""


def cut_windows(
    searches: Sequence[ServedSearch], monitoring: Monitoring, now_ns: int
) -> Iterator[tuple[int, int, Sequence[ServedSearch]]]:
    """Yield the start, the end and the searches of each window that is over, in order; `searches` are by time.

    Windows are in UTC; those of weeks begin on Mondays. Windows without a search are left out, and so are searches
    without a time.
    """
    length = monitoring.window_ns
    first = int(datetime.combine(monitoring.since, time(), UTC).timestamp()) * 10**9 if monitoring.since else 1
    by_window: defaultdict[int, list[ServedSearch]] = defaultdict(list)
    for search in searches:
        if search.start_ns >= first:
            by_window[(search.start_ns - _MONDAY_NS) // length].append(search)
    for window in sorted(by_window):
        start = window * length + _MONDAY_NS
        if start + length <= now_ns:
            yield start, start + length, by_window[window]


def judge_searches(
    traffic: Traffic, searches: Sequence[ServedSearch], golden: Golden, measure: Measure
) -> tuple[Sequence[ServedSearch], Judged]:
    """Return the searches of judged queries with recorded hits, and their values; equal rankings are scored once."""
    chosen = [s for s in searches if s.hits is not None and hash_query(s.query) in golden.rows]
    keys = [(golden.rows[hash_query(s.query)], s.hits) for s in chosen]
    examples = dict(zip(keys, chosen, strict=True))
    names = [[name for name, _ in traffic.list_hits(search)] for search in examples.values()]
    if not names:
        none = np.empty(0, dtype=np.int64)
        return [], Judged(none, np.empty(0), none, none, [])
    grades = [golden.grades[query] for query, _ in examples]
    replies = [SearchReply(ids, range(0, -len(ids), -1)) for ids in names]
    rankings = join_replies(replies, golden.positions, max(map(len, names)))
    rows = [(row, golden.positions[name], grade) for row, own in enumerate(grades) for name, grade in own.items()]
    grader = Grader(Judgments.of(rows), len(names), len(golden.positions))
    depth = measure.cutoff or 10
    hits = rankings.documents[:, :depth] != NOTHING
    unjudged = hits & (grader.grades(rankings)[:, :depth] < 0)
    gold = [[name for name in ids if own.get(name, 0) > 0] for ids, own in zip(names, grades, strict=True)]
    number = {key: row for row, key in enumerate(examples)}
    own = np.array([number[key] for key in keys])
    return chosen, Judged(
        np.array([query for query, _ in keys]), grader.score(rankings, [measure]).values[0][own],
        hits.sum(axis=1)[own], unjudged.sum(axis=1)[own], [gold[row] for row in own.tolist()],
    )  # fmt: skip


def correct_values(
    chosen: Sequence[ServedSearch], judged: Judged, traffic: Traffic, people: Golden, measure: Measure
) -> Judged:
    """Return judged searches whose mean is corrected by people, who judged some of the queries.

    The mean by a model is corrected by the mean error on the queries that people judged (prediction-powered inference,
    Angelopoulos et al. 2023); as a sum over searches, each of these contributes its error as many times as it stands
    for searches. Without such a search the values are NaN.
    """
    known, by_people = judge_searches(traffic, chosen, people, measure)
    places = {id(search): row for row, search in enumerate(chosen)}
    rows = [places[id(search)] for search in known]
    if not rows:
        return replace(judged, values=np.full(len(chosen), np.nan))
    values, weights = judged.values.copy(), np.array([search.weight for search in chosen])
    values[rows] += weights.sum() / weights[rows].sum() * (by_people.values - values[rows])
    return replace(judged, values=values)


def record_window(
    start: int, end: int, searches: Sequence[ServedSearch], traffic: Traffic, golden: Golden | None,
    people: Golden | None, measure: Measure, monitoring: Monitoring,
) -> WindowRecord:  # fmt: skip
    """Return the record of a window; what `people` judged corrects the mean by the other judgments."""
    known = [s for s in searches if s.hits is not None or s.error]
    answered = np.array([float(bool(s.hits)) for s in known])
    chosen, judged = judge_searches(traffic, searches, golden, measure) if golden else ([], None)
    corrected = correct_values(chosen, judged, traffic, people, measure) if judged and people else judged
    latencies = np.array([s.latency_ms for s in searches if not math.isnan(s.latency_ms)])
    percentiles = np.percentile(latencies, (50, 95, 99)).tolist() if len(latencies) else []
    return WindowRecord(
        start=_format(start),
        end=_format(end),
        judgments=identify(people or golden, measure),
        searches=len(searches),
        recorded=sum(s.hits is not None for s in searches),
        empty=sum(s.hits == b"" for s in searches),
        failed=sum(bool(s.error) and not s.hits for s in searches),
        users=len({s.user for s in searches} - {""}),
        hits=int(judged.hits.sum()) if judged else 0,
        unjudged=int(judged.unjudged.sum()) if judged else 0,
        quality=_estimate(corrected.values, corrected.queries, [s.weight for s in chosen]) if corrected else None,
        answered=_estimate(answered, [hash_query(s.query) for s in known], [s.weight for s in known]),
        slices=_slice(chosen, corrected, monitoring) if corrected else {},
        latency=dict(zip(("p50", "p95", "p99"), percentiles, strict=False)),
        queries=_by_query(judged, golden) if golden and judged else {},
        words=_count_words(searches),
        scores=_rank_scores(traffic, searches),
        releases=Counter(filter(None, (s.slices.get(monitoring.release, "") for s in searches))),
    )


def _estimate(
    values: Floats, queries: NDArray[np.int64] | Sequence[str], weights: Sequence[float]
) -> WindowMean | None:
    """Return the mean over searches, whose independent units are different queries; None with fewer than two."""
    from scipy.special import stdtrit

    _, clusters = np.unique(queries, return_inverse=True)
    if len(values) == 0 or clusters.max() == 0 or np.isnan(values).any():
        return None
    means = Means.of(values[None], clusters, np.array(weights)[None])
    mean, error, degrees = (float(part[0]) for part in (means.values, means.errors, means.degrees))
    half = float(stdtrit(degrees, 0.975)) * error
    low, high = max(mean - half, 0.0), min(mean + half, 1.0)
    if values.min() == values.max():  # without a spread, as for any other mean
        low, high = mean_interval(values, 0.95, clusters).tolist()
    return WindowMean(mean, error, degrees, low, high, len(values))


def _slice(chosen: Sequence[ServedSearch], judged: Judged, monitoring: Monitoring) -> dict[str, WindowMean]:
    """Return the estimates of slices with enough judged searches, by `field=value`."""
    slices: defaultdict[str, list[int]] = defaultdict(list)
    for row, search in enumerate(chosen):
        for name in monitoring.slices:
            if value := search.slices.get(name, ""):
                slices[f"{name}={value}"].append(row)
    estimates = {
        name: _estimate(judged.values[rows], judged.queries[rows], [chosen[row].weight for row in rows])
        for name, rows in sorted(slices.items())
        if len(rows) >= monitoring.least
    }
    return {name: estimate for name, estimate in estimates.items() if estimate}


def _by_query(judged: Judged, golden: Golden) -> dict[str, QueryRecord]:
    records = {}
    for query in np.unique(judged.queries).tolist():
        rows = np.flatnonzero(judged.queries == query)
        gold = sorted({name for row in rows.tolist() for name in judged.gold[row]})
        records[golden.ids[query]] = QueryRecord(len(rows), float(judged.values[rows].mean()), gold)
    return records


def _count_words(searches: Sequence[ServedSearch]) -> dict[str, int]:
    """Return in how many searches a word occurs; words of a single search are left out, which may be personal."""
    counts = Counter(word for s in searches for word in {*re.findall(r"\w+", s.query.lower())})
    return {word: n for word, n in counts.most_common(MOST_WORDS) if n > 1}


def _rank_scores(traffic: Traffic, searches: Sequence[ServedSearch]) -> list[float]:
    """Return the quantiles of the scores of first hits, none without scores."""
    first = (traffic.list_hits(s)[0][1] for s in searches if s.hits)
    known = [score for score in first if score is not None and math.isfinite(score)]
    return np.quantile(known, QUANTILES).tolist() if known else []


def _format(moment_ns: int) -> str:
    return datetime.fromtimestamp(moment_ns // 10**9, UTC).isoformat(timespec="minutes")
