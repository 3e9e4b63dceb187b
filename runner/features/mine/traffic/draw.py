"""Draw queries from traffic so that their weighted mean estimates that of the traffic.

Queries are ordered by topic, frequency and time, and drawn systematically with probabilities proportional to their
numbers of searches (Madow 1949), so that each topic, frequency and time has its share. A query represents its searches,
divided by the probability that it is drawn (Horvitz & Thompson 1952).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus
from retrievers.encoders.lsa import LSAEncoder
from retrievers.store import NoStore
from runner.datasets.duplicates import Shingled
from runner.datasets.traffic.searches import ServedSearch
from runner.statistics.effects import queries_needed
from runner.statistics.typical_spread import assume_spread

Floats = NDArray[np.float64]

FREQUENCIES = ("head", "torso", "tail")
"""Each has a third of the searches: the queries that are searched for most, less, and least."""

_DIMENSIONS = 32
_PERIODS = 4
_NORMAL = 1.959964


@dataclass(frozen=True)
class QueryGroup:
    """Near-duplicate queries: the most frequent text, all texts, and their searches by time."""

    text: str
    texts: frozenset[str]
    searches: Sequence[ServedSearch]

    @property
    def weight(self) -> float:
        """Return the number of searches, where a sampled one stands for several."""
        return sum(search.weight for search in self.searches)


@dataclass(frozen=True)
class Strata:
    """The topic, the class of frequency and the period of each group (n,)."""

    topics: NDArray[np.int64]
    frequencies: NDArray[np.int64]
    periods: NDArray[np.int64]


def merge_queries(
    texts: Sequence[str], searches: Sequence[Sequence[ServedSearch]], similarity: float
) -> list[QueryGroup]:
    """Return groups of queries whose sets of words have this Jaccard index, the most frequent group first."""
    near = Shingled.of(texts, size=1).groups(similarity)
    grouped = {place for places in near for place in places}
    groups = []
    for places in [*near, *((place,) for place in range(len(texts)) if place not in grouped)]:
        first = max(places, key=lambda place: (len(searches[place]), -place))
        own = sorted((one for place in places for one in searches[place]), key=lambda search: search.start_ns)
        groups.append(QueryGroup(texts[first], frozenset(texts[place] for place in places), own))
    return sorted(groups, key=lambda group: (-group.weight, group.text))


def count_needed(detect: float, measure: str) -> int:
    """Return how many queries detect a difference with power 0.8, for the typical spread of a measure."""
    spread = assume_spread(measure.partition("@")[0]).differences
    return int(queries_needed(np.array([detect]), np.array([spread]))[0])


def stratify(groups: Sequence[QueryGroup], clusters: int, seed: int) -> Strata:
    """Return the strata of groups, which are ordered by frequency."""
    weights = np.array([group.weight for group in groups])
    before = (np.cumsum(weights) - weights / 2) / weights.sum()
    times = np.array([group.searches[-1].start_ns for group in groups], dtype=np.float64)
    order = np.argsort(times, kind="stable")
    until = np.empty(len(groups))
    until[order] = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    return Strata(
        _find_topics([group.text for group in groups], clusters, seed),
        np.minimum((before * len(FREQUENCIES)).astype(np.int64), len(FREQUENCIES) - 1),
        np.minimum((until * _PERIODS).astype(np.int64), _PERIODS - 1),
    )


def _find_topics(texts: Sequence[str], clusters: int, seed: int) -> NDArray[np.int64]:
    from scipy.cluster.vq import kmeans2

    if len(texts) <= clusters or clusters == 1:
        return np.zeros(len(texts), dtype=np.int64)
    corpus = Corpus([str(place) for place in range(len(texts))], list(texts))
    (vectors,) = LSAEncoder(dimensions=_DIMENSIONS, seed=seed).embed(corpus, NoStore()).documents
    dense = np.asarray(vectors, dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a cluster may be empty
        _, topics = kmeans2(dense, clusters, minit="++", rng=np.random.default_rng(seed))
    return np.asarray(topics, dtype=np.int64)


def draw_groups(groups: Sequence[QueryGroup], strata: Strata, count: int, seed: int) -> Floats:
    """Return how many searches each group represents (n,): 0 if it is not drawn; if there are no more, all are drawn.

    A group with more searches than each draw is surely drawn, and represents these.
    """
    weights = np.array([group.weight for group in groups])
    if len(groups) <= count:
        return weights
    order = np.lexsort((strata.periods, strata.frequencies, strata.topics))
    ends = np.cumsum(weights[order])
    step = ends[-1] / count
    points = (np.random.default_rng(seed).random() + np.arange(count)) * step
    represented = np.zeros(len(groups))
    drawn = order[np.searchsorted(ends, points, side="right")]
    represented[drawn] = np.maximum(weights[drawn], step)
    return represented


@dataclass(frozen=True)
class TrafficCoverage:
    """The share of searches whose query is covered, with a 95 % interval from `low` to `high`, over sessions."""

    share: float
    low: float
    high: float


def estimate_coverage(searches: Iterable[tuple[ServedSearch, bool]]) -> TrafficCoverage:
    """Return the share of searches that are covered; those of a session, else of a user, are drawn together.

    The interval is that of a ratio of means over sessions (Cochran 1977, Sampling Techniques, section 6.4), on the
    scale of log odds.
    """
    sums: dict[str, tuple[float, float]] = {}
    for place, (search, is_covered) in enumerate(searches):
        unit = search.session or search.user or str(place)
        inside, whole = sums.get(unit, (0.0, 0.0))
        sums[unit] = inside + search.weight * is_covered, whole + search.weight
    parts, wholes = np.array([*sums.values()]).T
    n, share = len(wholes), float(parts.sum() / wholes.sum())
    if not 0 < share < 1:
        return TrafficCoverage(share, share, share)
    if n < 2:
        return TrafficCoverage(share, 0.0, 1.0)
    error = math.sqrt(float(((parts - share * wholes) ** 2).sum()) * n / (n - 1)) / float(wholes.sum())
    odds, width = math.log(share / (1 - share)), _NORMAL * error / (share * (1 - share))
    return TrafficCoverage(share, *(1 / (1 + math.exp(-value)) for value in (odds - width, odds + width)))


def list_strata(groups: Sequence[QueryGroup], strata: Strata, represented: Floats) -> list[dict[str, Any]]:
    """Return the share of the searches and of those represented in each topic and class of frequency."""
    weights = np.array([group.weight for group in groups])
    rows = []
    for title, values, names in (("frequency", strata.frequencies, FREQUENCIES), ("topic", strata.topics, ())):
        for value in np.unique(values).tolist():
            inside = values == value
            first = int(np.flatnonzero(inside)[0])  # groups are ordered by frequency
            name = names[value] if names else f"topic {value + 1}: {groups[first].text}"
            shares = {
                "searches": weights[inside].sum() / weights.sum(),
                "represented": represented[inside].sum() / represented.sum(),
            }
            rows.append(
                {"by": title, "stratum": name, "queries": int(inside.sum()), **{n: float(s) for n, s in shares.items()}}
            )
    return rows
