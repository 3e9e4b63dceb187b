"""Measures what happened at a rate: percentiles of latency, failures, quality under load, and whether it kept up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from retrievers.services.replies import SearchReply, join_replies
from runner.datasets.dataset import Dataset
from runner.datasets.own_documents import exclude_own
from runner.features.load.generator import ANSWERED, FAILED, OPEN, TIMED_OUT, Failure, LoadTraffic, Reply
from runner.metrics.measures import Measure
from runner.metrics.scores import Grader

PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99_9": 99.9}
"""The percentiles of latency, by the names that they have in records."""

BEHIND = 0.03
"""A service falls behind if, in the second half of a rate, the open requests grow by more than this share of those
that arrive, or if a larger share times out."""

FEWEST_BEHIND = 5
"""The fewest open requests that count as falling behind."""

LATE_S = 0.005
"""If one request in a hundred is sent later than this, the generator limits the measurement, not the service."""

_PER_S = 1_000_000
"""Histograms count microseconds."""


@dataclass(frozen=True)
class Latencies:
    """A histogram of latencies in milliseconds, with three significant digits (HdrHistogram).

    Requests that timed out count as the time-out, a lower bound. A percentile that too few requests exceed is NaN.
    """

    count: int
    p50: float
    p95: float
    p99: float
    p99_9: float
    curve: Sequence[tuple[float, float]]

    @classmethod
    def of(cls, seconds: NDArray[np.float64], timeout_s: float) -> Latencies:
        """Return the histogram of latencies of at most the time-out."""
        from hdrh.histogram import HdrHistogram

        most = max(math.ceil(timeout_s * _PER_S), 2)
        histogram = HdrHistogram(1, most, 3)
        for value in np.clip(np.round(seconds * _PER_S), 1, most).astype(np.int64).tolist():
            if not histogram.record_value(value):  # otherwise it would be missing without a word
                raise ValueError(f"a latency of {value} us does not fit in the histogram")

        def read(percentile: float) -> float:
            is_known = len(seconds) * (100 - percentile) >= 100
            return histogram.get_value_at_percentile(percentile) * 1000 / _PER_S if is_known else math.nan

        curve = [(share, read(share)) for share in (100 * (1 - 10 ** (-step / 10)) for step in range(51))]
        known = [(share, value) for share, value in curve if not math.isnan(value)]
        return cls(len(seconds), **{name: read(share) for name, share in PERCENTILES.items()}, curve=known)


@dataclass(frozen=True)
class RateResult:
    """What happened at a rate, in requests per second; times are in milliseconds, latencies count from when due.

    `throughput` are the answers per second while requests arrived, until the last of them. `kept_up` is whether the
    service did not fall behind (`BEHIND`). `quality` is the mean of the measure over requests, 0 for those that failed
    or were late, `quality_answered` that over the answered ones, both as `add_quality` adjusts them. `short` counts
    answers with fewer results than the query had in others. `lag_p99` is how late the generator was, `waited` counts
    requests that had to wait for a free connection, and `cpu` is the share of a core that the generator used. `stopped`
    says why the rate was not run to its end.
    """

    rate: float
    requests: int
    throughput: float
    answered: int
    failed: int
    timed_out: int
    unfinished: int
    short: int
    latency: Latencies
    kept_up: bool
    lag_p99: float
    waited: int
    cpu: float
    quality: float = math.nan
    quality_answered: float = math.nan
    stopped: str = ""
    errors: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_limited_by_generator(self) -> bool:
        """Return whether the generator was so late that the latencies are its own, too."""
        return self.lag_p99 > LATE_S * 1000

    def list_figures(self) -> dict[str, float]:
        """Return the figures by name, each with the rate, as they are logged."""
        own = {
            **{f"{name}_ms": getattr(self.latency, name) for name in PERCENTILES},
            "throughput": self.throughput,
            "failed": self.share(self.failed),
            "timed_out": self.share(self.timed_out),
            "quality": self.quality,
        }
        return {f"{name}_at_{self.rate:g}": value for name, value in own.items()}

    def share(self, count: int) -> float:
        """Return a share of the requests that ended."""
        ended = self.answered + self.failed + self.timed_out
        return count / ended if ended else math.nan


@dataclass(frozen=True, eq=False)
class ReplyGrader:
    """Measures the replies of requests by the judgments of a dataset, at a depth of `top_k`."""

    dataset: Dataset
    grader: Grader
    measure: Measure
    top_k: int

    def score(self, queries: NDArray[np.int64], replies: Sequence[SearchReply]) -> NDArray[np.float64]:
        """Return the value of the measure for each request (n,), NaN for queries without gold.

        A reply without results scores 0. Each distinct ranking of a query is measured once.
        """
        rankings: list[dict[tuple[str, ...], int]] = [{} for _ in range(len(self.dataset.queries))]
        variants = [
            rankings[query].setdefault(tuple(reply.ids), len(rankings[query]))
            for query, reply in zip(queries.tolist(), replies, strict=True)
        ]
        if not variants:
            return np.zeros(0)
        columns = [
            self._score_all([list(of)[variant] if variant < len(of) else () for of in rankings])
            for variant in range(max(variants) + 1)
        ]
        return np.asarray(np.stack(columns)[variants, queries])

    def _score_all(self, ids: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Return the value of the measure for a ranking of each query (queries,)."""
        replies = [SearchReply(of, [1 / rank for rank in range(1, len(of) + 1)]) for of in ids]
        width = max(map(len, ids), default=0) or 1
        rankings = exclude_own(self.dataset, join_replies(replies, self.dataset.corpus.positions, width), self.top_k)
        return np.asarray(self.grader.score(rankings, [self.measure]).values[0])


@dataclass(frozen=True, eq=False)
class GradedRate:
    """The result of a rate with the value of the measure for each request that ended, NaN without gold."""

    result: RateResult
    queries: NDArray[np.int64]
    values: NDArray[np.float64]
    answered: NDArray[np.bool_]


def add_quality(rates: Sequence[GradedRate], shares: NDArray[np.float64]) -> list[RateResult]:
    """Return the results of rates with their quality, so that they differ by the load, not by the choice of queries.

    Every rate has other requests. Its mean is therefore that of all queries of the test, each with its mean over all
    answers and weighted by its share, plus the mean deviation of the rate's requests from these (a control variate).
    """
    if not rates:
        return []
    queries, values, answered = (
        np.concatenate([getattr(rate, name) for rate in rates]) for name in ("queries", "values", "answered")
    )
    sent, counts = (np.bincount(of, minlength=len(shares)) for of in (queries, queries[answered]))
    sums = np.bincount(queries[answered], weights=values[answered], minlength=len(shares))
    usual = sums / np.maximum(counts, 1)  # a query that was never answered is worth 0
    usual[queries[np.isnan(values)]] = np.nan
    counted = (sent > 0) & ~np.isnan(usual)
    expected = float(np.average(usual[counted], weights=shares[counted])) if counted.any() else math.nan

    def average(rate: GradedRate, mask: NDArray[np.bool_]) -> float:
        deviations = (rate.values - usual[rate.queries])[mask]
        deviations = deviations[~np.isnan(deviations)]
        return expected + float(deviations.mean()) if len(deviations) else math.nan

    def adjust(rate: GradedRate) -> RateResult:
        everything = np.ones(len(rate.values), dtype=np.bool_)
        return replace(rate.result, quality=average(rate, everything), quality_answered=average(rate, rate.answered))

    return [adjust(rate) for rate in rates]


def measure_rate(
    rate: float, traffic: LoadTraffic, read: Callable[[int, Reply], SearchReply], grader: ReplyGrader, timeout_s: float
) -> GradedRate:
    """Measure the traffic at a rate; `read` turns the reply to a query into ids. The quality is added later."""
    queries, states = traffic.schedule.queries, traffic.states.copy()
    replies, errors = [SearchReply()] * len(states), Counter[str]()
    for number, raw in traffic.replies.items():
        reply = SearchReply(error=raw.reason) if isinstance(raw, Failure) else read(queries[number], raw)
        if reply.error:  # also of a service that says so in a complete reply
            states[number] = FAILED
            errors[reply.error] += 1
        else:
            replies[number] = reply
    ended, answered = states != OPEN, states == ANSWERED
    longest = np.zeros(len(grader.dataset.queries), dtype=np.int64)
    sizes = np.array([len(reply.ids) for reply in replies], dtype=np.int64)
    np.maximum.at(longest, queries, sizes)
    values = grader.score(queries[ended], [replies[number] for number in np.flatnonzero(ended).tolist()])
    due, end = traffic.schedule.due, min(traffic.seconds, _find_end(traffic, rate))
    finished = np.where(ended, traffic.finished, np.inf)
    done = np.sort(traffic.finished[answered & (finished <= end)])
    reached = traffic.reached[~np.isnan(traffic.reached)] - due[~np.isnan(traffic.reached)]
    result = RateResult(
        rate=rate,
        requests=int(np.count_nonzero(due <= traffic.seconds)),
        throughput=len(done) / float(done[-1]) if len(done) else 0.0,
        answered=int(answered.sum()),
        failed=int(np.count_nonzero(states == FAILED)),
        timed_out=int(np.count_nonzero(states == TIMED_OUT)),
        unfinished=int(np.count_nonzero(~ended & (due <= traffic.seconds))),
        short=int(np.count_nonzero(answered & (sizes < longest[queries]))),
        latency=Latencies.of(traffic.latencies[answered | (states == TIMED_OUT)], timeout_s),
        kept_up=_keeps_up(due, finished, end) and bool((states == TIMED_OUT).sum() <= BEHIND * ended.sum()),
        lag_p99=float(np.percentile(reached, 99)) * 1000 if len(reached) else math.nan,
        waited=int(np.count_nonzero((traffic.sent > traffic.reached) | (np.isnan(traffic.sent) & ended))),
        cpu=traffic.cpu_s / traffic.seconds if traffic.seconds else math.nan,
        stopped=traffic.stopped,
        errors=dict(errors.most_common(10)),
    )
    return GradedRate(result, queries[ended], values, answered[ended])


def _keeps_up(due: NDArray[np.float64], finished: NDArray[np.float64], end: float) -> bool:
    """Return whether the number of open requests hardly grows in the second half."""
    arrived, open_then = zip(
        *((np.count_nonzero(due <= at), np.count_nonzero((due <= at) & (finished > at))) for at in (end / 2, end)),
        strict=True,
    )
    return bool(open_then[1] - open_then[0] <= max(BEHIND * (arrived[1] - arrived[0]), FEWEST_BEHIND))


def _find_end(traffic: LoadTraffic, rate: float) -> float:
    """Return when requests stop to arrive: one mean interval after the last is due."""
    return float(traffic.schedule.due[-1]) + 1 / rate if len(traffic.schedule) else 0.0
