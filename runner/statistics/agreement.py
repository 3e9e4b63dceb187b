"""Measure how far two rankings of the same queries agree, and what the better system for each query would reach.

Rankings hold document numbers (n x k, padded with -1 at the end). A document has the same number in both rankings and
occurs at most once in each. Coefficients are per query (n), NaN where neither ranking found anything, since agreement
is measured on retrieved documents only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING

Documents = NDArray[np.integer]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Headroom:
    """The mean of the `best` system (by position) and of an `oracle` that picks the best system for each query.

    Both are over the `queries` that count for every system. The difference is an upper bound of what a choice per query
    could gain, because the oracle sees the scores that it is measured by.
    """

    queries: int
    best: int
    mean: float
    oracle: float


def rank_1(first: Documents, second: Documents) -> Floats:
    """Return 1 for each query whose best document is the same in both rankings, else 0."""
    return jaccard(first, second, 1)


def jaccard(first: Documents, second: Documents, k: int) -> Floats:
    """Return the Jaccard coefficient of the first k documents: those in both rankings as a share of those in either."""
    a, b = first[:, :k], second[:, :k]
    both = np.count_nonzero(_places(a, b) < b.shape[1], axis=1)
    return _divide(both, _lengths(a) + _lengths(b) - both)


def rbo(first: Documents, second: Documents, p: float = 0.9) -> Floats:
    """Return the rank-biased overlap of both rankings, extrapolated (Webber, Moffat & Zobel 2010, equation 32).

    `p` is the probability that a reader continues from one rank to the next; with 0.9, the first ten ranks have 86 % of
    the weight. The shorter ranking is assumed to continue with the agreement seen so far.
    """
    depth = max(first.shape[1], second.shape[1], 1)
    shorter, longer = np.sort([_lengths(first), _lengths(second)], axis=0)[:, :, None]
    d = np.arange(1, depth + 1)
    overlap = _overlaps(first, second, depth)
    at_shorter = np.where(shorter > 0, np.take_along_axis(overlap, np.maximum(shorter - 1, 0), axis=1), 0)
    agreed = overlap / d + np.where(d > shorter, _divide(at_shorter * (d - shorter), shorter * d, 0.0), 0)
    seen: Floats = (np.where(d <= longer, agreed, 0) * p**d).sum(axis=1) * (1 - p) / p
    ends = _divide(overlap[:, -1:] - at_shorter, longer) + _divide(at_shorter, shorter, 0.0)
    beyond: Floats = np.squeeze(ends * p**longer, axis=1)
    return seen + beyond


def kendall_tau(first: Documents, second: Documents, k: int = 10) -> Floats:
    """Return Kendall's tau over the documents that are among the first k of either ranking.

    A document that a ranking lacks is placed behind all documents that it has. Two documents that the same ranking
    lacks count as neither concordant nor discordant, because their order there is unknown. This is 1 - 2 K / pairs for
    the distance K of Fagin, Kumar & Sivakumar (2003) with penalty 1/2. NaN for fewer than two documents.
    """
    a, b = first[:, :k], second[:, :k]
    in_b, in_a = _places(a, b), _places(b, a)
    only_b = (b != NOTHING) & (in_a == a.shape[1])
    behind = a.shape[1] + b.shape[1]
    by_first = np.hstack([np.broadcast_to(np.arange(a.shape[1]), a.shape), np.full(b.shape, behind)])
    by_second = np.hstack([np.where(in_b < b.shape[1], in_b, behind), np.broadcast_to(np.arange(b.shape[1]), b.shape)])
    there = np.hstack([a != NOTHING, only_b])
    order = np.sign(by_first[:, :, None] - by_first[:, None]) * np.sign(by_second[:, :, None] - by_second[:, None])
    concordant = (order * (there[:, :, None] & there[:, None])).sum(axis=(1, 2))
    n = np.count_nonzero(there, axis=1)
    return _divide(concordant, n * (n - 1))


def headroom(scores: Floats) -> Headroom:
    """Return the mean of the best system and of an oracle that picks the best system for each query.

    `scores` are m x queries; the means are NaN if no query counts for all systems.
    """
    counted = scores[:, ~np.isnan(scores).any(axis=0)]
    if not counted.shape[1]:
        return Headroom(0, 0, float("nan"), float("nan"))
    means = counted.mean(axis=1)
    best = int(np.argmax(means))
    return Headroom(counted.shape[1], best, float(means[best]), float(counted.max(axis=0).mean()))


def _lengths(documents: Documents) -> NDArray[np.int64]:
    lengths: NDArray[np.int64] = np.count_nonzero(documents != NOTHING, axis=1)
    return lengths


def _places(of: Documents, within: Documents) -> NDArray[np.int64]:
    """Return the position of each document of one ranking in another (n x k); the other's depth if it is missing."""
    queries = np.arange(len(of))[:, None] * (max(of.max(initial=0), within.max(initial=0)) + 1)
    there = np.flatnonzero(within != NOTHING)
    keys = (within + queries).ravel()[there]
    order = np.argsort(keys)
    wanted = of + queries
    depth = within.shape[1]
    if not len(keys):
        return np.full(of.shape, depth)
    at = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    is_within = (of != NOTHING) & (keys[at] == wanted)
    places: NDArray[np.int64] = np.where(is_within, there[at] % depth, depth)
    return places


def _overlaps(first: Documents, second: Documents, depth: int) -> NDArray[np.int64]:
    """Return how many documents both rankings share among their first d, for each d from 1 to `depth` (n x depth)."""
    places = _places(first, second)
    there = places < second.shape[1]
    since = np.maximum(places, np.arange(first.shape[1]))
    queries, _ = np.nonzero(there)
    counts = np.bincount(queries * depth + since[there], minlength=len(first) * depth)
    overlaps: NDArray[np.int64] = np.cumsum(counts.reshape(len(first), depth), axis=1)
    return overlaps


def _divide(parts: NDArray[np.integer], wholes: NDArray[np.integer], otherwise: float = np.nan) -> Floats:
    shape = np.broadcast_shapes(parts.shape, wholes.shape)
    shares: Floats = np.divide(parts, wholes, out=np.full(shape, otherwise), where=wholes > 0)
    return shares
