"""Say what fell: the same queries with other results, another mix of queries, or documents that left.

The mean over searches is a sum over queries of their share times their mean. Its change is divided exactly into the
queries asked before and after, whose mean or share changed, those that are new, and those that are no longer asked
(Kitagawa 1955, "Components of a difference between two rates").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.features.monitor.windows import QUANTILES, QueryRecord, WindowRecord

Floats = NDArray[np.float64]

PARTS = ("the same queries, other results", "the same queries, other shares", "new queries", "queries no longer asked")
"""The parts of a change; they add up to it."""

SMOOTHING = 0.5
"""The number of searches that each word is given in addition, so that none is impossible."""


class QueryLoss(NamedTuple):
    """A query that was asked before and after: searches and means, and what the change of its mean contributes."""

    query: str
    before: int
    after: int
    mean_before: float
    mean_after: float
    contribution: float
    gone: Sequence[str]


@dataclass(frozen=True)
class Fall:
    """What changed between the baseline and later windows, from `first` to `last`.

    `parts` divide the change of the mean, `queries` are those whose results changed most, and `gone` are gold documents
    that were served for a query before and no longer are, by how many queries they are missing from. `words` are those
    whose share of searches grew most, with this share before and after.
    """

    first: str
    last: str
    before: float
    after: float
    parts: Mapping[str, float]
    queries: Sequence[QueryLoss]
    gone: Mapping[str, int]
    words: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Drift:
    """How far the queries and the scores of a window are from the baseline, in usual distances of baseline windows.

    The distance of queries is that of Jensen and Shannon between the shares of their words, that of scores the largest
    difference of their distributions (Kolmogorov and Smirnov). NaN where it is not known.
    """

    queries: float = math.nan
    scores: float = math.nan


def explain_fall(before: Sequence[WindowRecord], after: Sequence[WindowRecord], most: int = 20) -> Fall | None:
    """Return what changed between windows; None without judged searches on both sides."""
    old, new = pool_queries(before), pool_queries(after)
    if not (old and new):
        return None
    totals = [sum(record.searches for record in side.values()) for side in (old, new)]
    means = [
        sum(r.searches * r.mean for r in side.values()) / total for side, total in zip((old, new), totals, strict=True)
    ]
    centre, sums, changes = sum(means) / 2, dict.fromkeys(PARTS, 0.0), []
    for query in sorted(old.keys() | new.keys()):
        was, now = old.get(query), new.get(query)
        p, q = (was.searches / totals[0] if was else 0.0), (now.searches / totals[1] if now else 0.0)
        if was and now:
            contribution = (p + q) / 2 * (now.mean - was.mean)
            sums[PARTS[0]] += contribution
            sums[PARTS[1]] += (q - p) * ((was.mean + now.mean) / 2 - centre)
            gone = sorted({*was.gold} - {*now.gold})
            changes.append(QueryLoss(query, was.searches, now.searches, was.mean, now.mean, contribution, gone))
        elif now:
            sums[PARTS[2]] += q * (now.mean - centre)
        elif was:
            sums[PARTS[3]] -= p * (was.mean - centre)
    changes.sort(key=lambda change: (change.contribution, change.query))
    missing = Counter(name for change in changes for name in change.gone)
    return Fall(
        after[0].start, after[-1].end, means[0], means[1], sums, [c for c in changes if c.contribution < 0][:most],
        dict(sorted(missing.items(), key=lambda item: (-item[1], item[0]))[:most]), _find_words(before, after),
    )  # fmt: skip


def measure_drift(baseline: Sequence[WindowRecord], window: WindowRecord) -> Drift:
    """Return how far a window is from the windows of the baseline."""

    def compare(record: WindowRecord, others: Sequence[WindowRecord]) -> tuple[float, float]:
        scores = [other.scores for other in others if other.scores]
        return _word_distance(_pool_words(others), record.words), _score_distance(scores, record.scores)

    own = compare(window, baseline)
    usual = np.array([compare(one, [other for other in baseline if other is not one]) for one in baseline])
    if len(baseline) < 2:
        return Drift(math.nan, math.nan)
    ratios = [a / b if b > 0 else math.nan for a, b in zip(own, usual.mean(axis=0).tolist(), strict=True)]
    return Drift(*ratios)


def pool_queries(records: Sequence[WindowRecord]) -> dict[str, QueryRecord]:
    """Return the queries of several windows together."""
    pooled: dict[str, QueryRecord] = {}
    for record in records:
        for query, own in record.queries.items():
            known = pooled.get(query, QueryRecord(0, 0.0, ()))
            n = known.searches + own.searches
            mean = (known.searches * known.mean + own.searches * own.mean) / n
            pooled[query] = QueryRecord(n, mean, sorted({*known.gold, *own.gold}))
    return pooled


def _pool_words(records: Sequence[WindowRecord]) -> Counter[str]:
    words: Counter[str] = Counter()
    for record in records:
        words.update(record.words)
    return words


def _word_distance(words: Mapping[str, int], others: Mapping[str, int]) -> float:
    if not (words and others):
        return math.nan
    names = sorted({*words, *others})
    shares = [np.array([side.get(name, 0) for name in names], dtype=float) for side in (words, others)]
    p, q = (side / side.sum() for side in shares)
    middle = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.nan_to_num(side * np.log2(side / middle)).sum() for side in (p, q)]
    return math.sqrt(max(sum(terms) / 2, 0.0))


def _score_distance(baseline: Sequence[Sequence[float]], scores: Sequence[float]) -> float:
    """Return the largest difference of two distributions that are known by their quantiles."""
    if not (baseline and len(scores)):
        return math.nan
    points = np.unique(np.concatenate([np.array(scores), *map(np.array, baseline)]))
    own = np.interp(points, scores, QUANTILES)
    pooled = np.mean([np.interp(points, other, QUANTILES) for other in baseline], axis=0)
    return float(np.abs(own - pooled).max())


def _find_words(
    before: Sequence[WindowRecord], after: Sequence[WindowRecord], most: int = 10
) -> dict[str, tuple[float, float]]:
    """Return the words whose share of searches has grown most beyond chance, with this share before and after.

    By the log-odds in units of their standard error, if that is at least 3 (Monroe, Colaresi and Quinn 2008).
    """
    counts, totals = [], []
    for records in (before, after):
        counts.append(_pool_words(records))
        totals.append(sum(record.searches for record in records))
    rows = []
    for word in sorted(counts[1]):
        a, b = counts[0][word] + SMOOTHING, counts[1][word] + SMOOTHING
        odds = [x / max(total - x, SMOOTHING) for x, total in zip((a, b), totals, strict=True)]
        score = math.log(odds[1] / odds[0]) / math.sqrt(1 / a + 1 / b)
        if score >= 3:
            rows.append((-score, word))
    return {
        word: (counts[0][word] / max(totals[0], 1), counts[1][word] / max(totals[1], 1))
        for _, word in sorted(rows)[:most]
    }
