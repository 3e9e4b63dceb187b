"""Estimate relevance from clicks by a position-based click model, with intervals.

A result is clicked if it is examined and attractive: P(click) = examination(rank) x attractiveness(query, document).
Examination is fitted by expectation maximisation (Chuklin, Markov and de Rijke 2015, Click Models for Web Search,
sections 3.3 and 4.2), and the attractiveness of each pair by its posterior given that. Nothing here reads a log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_LEVEL = 0.95
_GRID = 400
"""The number of values at which the posterior of an attractiveness is computed."""
_CHUNK = 2_000
"""The number of pairs whose posteriors are in memory at once."""
_MOST_ROUNDS = 5_000
_TOLERANCE = 1e-7


class ClickError(ValueError):
    """Clicks cannot separate examination from attractiveness."""


@dataclass(frozen=True)
class Impressions:
    """How often pairs were shown and clicked at a rank: columns with one row for each pair and rank.

    `pairs` are numbers from 0 and `ranks` from 1. A rank at which a pair was never shown has no row.
    """

    pairs: Ints
    ranks: Ints
    shown: Ints
    clicked: Ints

    def __len__(self) -> int:
        return int(self.pairs.max(initial=-1)) + 1


@dataclass(frozen=True)
class Attractiveness:
    """The probability that a pair is clicked once it is examined (n,): posterior mean and 95 % interval."""

    mean: Floats
    low: Floats
    high: Floats


def fit_examination(log: Impressions) -> Floats:
    """Return the probability that a result is examined at each rank, relative to rank 1 (k,).

    The estimate uses pairs that were shown at several ranks. Raises `ClickError` if these do not connect all ranks with
    rank 1: it is then unknown whether users do not look there or documents are poor.
    """
    ranks = int(log.ranks.max(initial=0))
    _check_connected(log, ranks)
    examination, attractiveness = 1 / np.arange(1.0, ranks + 1), np.full(len(log), 0.5)
    unclicked = log.shown - log.clicked
    shown_at = np.bincount(log.ranks - 1, log.shown, ranks)
    shown_of = np.bincount(log.pairs, log.shown, len(log))
    for _ in range(_MOST_ROUNDS):
        examined, attracted = examination[log.ranks - 1], attractiveness[log.pairs]
        neither = np.maximum(1 - examined * attracted, 1e-12)
        seen = log.clicked + unclicked * examined * (1 - attracted) / neither
        wanted = log.clicked + unclicked * attracted * (1 - examined) / neither
        new = np.bincount(log.ranks - 1, seen, ranks) / shown_at
        attractiveness = np.bincount(log.pairs, wanted, len(log)) / shown_of
        step = np.abs(new - examination).max()
        examination = new
        if step < _TOLERANCE:
            break
    relative: Floats = examination / examination[0]
    return relative


def estimate_attractiveness(log: Impressions, examination: Floats) -> Attractiveness:
    """Return the attractiveness of each pair, given the examination at each rank.

    The interval is that of the posterior under Jeffreys' prior of a proportion, Beta(1/2, 1/2), which is uniform in the
    angle whose squared sine is the proportion.
    """
    order = np.argsort(log.pairs, kind="stable")
    starts = np.searchsorted(log.pairs[order], np.arange(len(log) + 1))
    grid = np.sin((np.arange(_GRID) + 0.5) / _GRID * np.pi / 2) ** 2
    columns: list[Floats] = []
    for first in range(0, len(log), _CHUNK):
        last = min(first + _CHUNK, len(log))
        rows = order[starts[first] : starts[last]]
        chance = np.clip(np.outer(examination[log.ranks[rows] - 1], grid), 1e-12, 1 - 1e-12)
        evidence = log.clicked[rows, None] * np.log(chance)
        evidence += (log.shown[rows] - log.clicked[rows])[:, None] * np.log1p(-chance)
        total = np.add.reduceat(evidence, starts[first:last] - starts[first], axis=0)
        weights = np.exp(total - total.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        below = np.cumsum(weights, axis=1)
        ends = [np.sin(_quantile(below, share) * np.pi / 2) ** 2 for share in ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2)]
        columns.append(np.stack([weights @ grid, *ends]))
    mean, low, high = np.concatenate(columns, axis=1) if columns else np.zeros((3, 0))
    return Attractiveness(mean, low, high)


def _quantile(below: Floats, share: float) -> Floats:
    """Return the point of the grid at which cumulative weights reach a share, by linear interpolation (n,)."""
    place = np.minimum((below < share).sum(axis=1), below.shape[1] - 1)
    rows = np.arange(len(below))
    before = np.where(place > 0, below[rows, place - 1], 0.0)
    there = below[rows, place]
    part = np.divide(share - before, there - before, out=np.zeros(len(below)), where=there > before)
    return np.asarray((place + np.clip(part, 0, 1)) / below.shape[1])


def _check_connected(log: Impressions, ranks: int) -> None:
    """Raise `ClickError` for ranks that no chain of pairs shown at several ranks connects with rank 1."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = len(log)
    if not pairs:
        raise ClickError("the log contains no impressions")
    size = pairs + ranks
    edges = coo_array((np.ones(len(log.pairs)), (log.pairs, pairs + log.ranks - 1)), shape=(size, size))
    _, labels = connected_components(edges, directed=False)
    apart = np.flatnonzero(labels[pairs:] != labels[pairs]) + 1
    if len(apart):
        shown = ", ".join(map(str, apart[:5].tolist()))
        raise ClickError(
            f"no document was shown both at rank 1 and, directly or through other documents, at rank {shown}, so the "
            "effect of the rank cannot be estimated"
        )
