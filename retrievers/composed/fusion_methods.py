"""The formulas of fusion in one table: the value of a hit of a part, and how these values become one score.

Formulas only use scores, ranks and the number of parts that returned a document; they do not search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from retrievers.choices import OneOf
from retrievers.composed.candidates import Candidates, Floats

Mask = NDArray[np.bool_]
Values = tuple[Floats, Floats | float]
"""The values of hits, broadcast to shape (n, depth), and the value of documents that the part did not return, (n,)."""


@dataclass(frozen=True, eq=False)
class PartHits:
    """The hits of one part of a fusion, and the candidates of all parts."""

    rankings: Rankings
    candidates: Candidates

    @cached_property
    def present(self) -> Mask:
        """Return which places have a hit, of shape (n, depth)."""
        present: Mask = self.rankings.documents != NOTHING
        return present

    @cached_property
    def scores(self) -> Floats:
        """Return the scores, of shape (n, depth), best first, 0 in empty places."""
        return np.where(self.present, self.rankings.scores, 0).astype(np.float64)

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Return the ranks of all places, of shape (depth,), from 1."""
        return np.arange(1, self.rankings.depth + 1)


class Parameters(NamedTuple):
    """The settings that formulas use."""

    normalization: str
    rrf_k: float


@dataclass(frozen=True)
class Fusion:
    """A method of fusion. The score of a document is `scale(n) * reduce(w * value)` over the parts.

    w is the weight of a part and n the number of parts that returned the document. `missing` replaces the value of
    documents that a part did not return. `formula` and `reference` are for readers: v is a normalised score, r a rank
    from 1, h the number of hits of the part, c the number of candidates of the query.
    """

    formula: str
    reads: Literal["scores", "ranks"]
    reference: str
    value: Callable[[PartHits, Parameters], Values]
    reduce: np.ufunc = np.add
    missing: float | None = None
    scale: Callable[[Floats], Floats] | None = None

    def weigh(self, hits: PartHits, weight: Floats, parameters: Parameters) -> Floats:
        """Return the weighted values of a part's places, (n, depth + 1); the last is for missing documents.

        `weight` has the shape (1, 1), or (n, 1) for weights by query.
        """
        values = np.empty((len(hits.rankings), hits.rankings.depth + 1))
        values[:, :-1], values[:, -1] = self.value(hits, parameters)
        values *= weight
        if self.missing is not None:
            values[:, -1] = self.missing
        return values

    def combine(self, candidates: Candidates, values: Sequence[Floats]) -> Floats:
        """Return the score of each candidate, of shape (n, m), from the weighted values of the parts."""
        totals = candidates.reduce(values, self.reduce)
        if self.scale is not None:
            totals *= self.scale(np.maximum(candidates.counts, 1).astype(np.float64))  # 0 in empty places
        return totals


def _minmax(scores: Floats, present: Mask) -> Values:
    """Return 0 for the lowest hit, 1 for the highest, and shares between."""
    low = _lowest(scores, present)
    span = scores[:, :1] - low
    return np.divide(scores - low, span, out=np.ones_like(scores), where=span > 0), 0.0


def _zscore(scores: Floats, present: Mask) -> Values:
    """Return standard deviations from the mean."""
    n, deviations = _deviations(scores, present)
    spread = np.sqrt(np.square(deviations).sum(axis=1, keepdims=True) / n)
    values = np.divide(deviations, spread, out=np.zeros_like(scores), where=spread > 0)
    # Equal scores are their own lowest value, so a missing document is placed a standard deviation below them.
    below = np.where(present[:, :1] & (spread == 0), -1.0, _lowest(values, present))
    return values, below[:, 0]


def _max(scores: Floats, present: Mask) -> Values:
    """Return shares of the largest absolute score."""
    highest, lowest = scores[:, :1], _lowest(scores, present)
    largest = np.maximum(np.abs(highest), np.abs(lowest))
    # Equal scores up to 0 would give their hits the value of missing documents, and the part no influence.
    varied = (highest > lowest) | (lowest > 0)
    values = np.divide(scores, largest, out=np.ones_like(scores), where=varied)
    return values, np.minimum(_lowest(values, present), 0)[:, 0]


def _rank(scores: Floats, present: Mask) -> Values:
    """Return 1 for the first hit, down to 1/n for the last of n."""
    return 1 - np.arange(scores.shape[1]) / _count(present), 0.0


def _none(scores: Floats, present: Mask) -> Values:
    """Return the scores themselves."""
    return scores, 0.0


def _count(present: Mask) -> NDArray[np.int64]:
    n: NDArray[np.int64] = np.maximum(present.sum(axis=1, keepdims=True), 1)
    return n


def _deviations(scores: Floats, present: Mask) -> tuple[NDArray[np.int64], Floats]:
    n = _count(present)
    varied = present & (scores[:, :1] > _lowest(scores, present))  # the mean of equal scores may be off by rounding
    return n, np.where(varied, scores - scores.sum(axis=1, keepdims=True) / n, 0.0)


def _lowest(scores: Floats, present: Mask) -> Floats:
    last = np.maximum(present.sum(axis=1, keepdims=True) - 1, 0)
    return np.take_along_axis(scores, last, axis=1)


NORMALIZATIONS: dict[str, Callable[[Floats, Mask], Values]] = {
    "minmax": _minmax,
    "zscore": _zscore,
    "max": _max,
    "rank": _rank,
    "none": _none,
}


def _normalize(hits: PartHits, parameters: Parameters) -> Values:
    return NORMALIZATIONS[parameters.normalization](hits.scores, hits.present)


def _spread(hits: PartHits, parameters: Parameters) -> Values:
    """Scale scores so that mean - 3 s becomes 0 and mean + 3 s becomes 1; s is the sample's standard deviation."""
    n, deviations = _deviations(hits.scores, hits.present)
    spread = np.sqrt(np.square(deviations).sum(axis=1, keepdims=True) / np.maximum(n - 1, 1))
    values: Floats = np.divide(deviations, 6 * spread, out=np.zeros_like(deviations), where=spread > 0)
    return values + 0.5, 0.0


def _reciprocal(hits: PartHits, parameters: Parameters) -> Values:
    return 1 / (parameters.rrf_k + hits.ranks), 0.0


def _inverse_square(hits: PartHits, parameters: Parameters) -> Values:
    return 1 / np.square(hits.ranks, dtype=np.float64), 0.0


def _points(hits: PartHits, parameters: Parameters) -> Values:
    """Return c, c - 1, ... for the hits; the other candidates share the remaining points equally."""
    n_candidates: Floats = np.count_nonzero(hits.candidates.counts, axis=1).astype(np.float64)
    n_hits = hits.present.sum(axis=1)
    return n_candidates[:, None] + 1 - hits.ranks, (n_candidates - n_hits + 1) / 2


_FOX = "Fox and Shaw (1994), Combination of multiple searches"
_MOURAO = "Mourão, Martins and Magalhães (2015), Multimodal medical information retrieval with unsupervised rank fusion"

FUSIONS: dict[str, Fusion] = {
    "weighted": Fusion("sum of w v", "scores", f"CombSUM; {_FOX}", _normalize),
    "combmnz": Fusion("n * sum of w v", "scores", _FOX, _normalize, scale=np.positive),
    "combanz": Fusion("1/n * sum of w v", "scores", _FOX, _normalize, scale=np.reciprocal),
    "combmax": Fusion("largest w v", "scores", _FOX, _normalize, reduce=np.maximum, missing=-np.inf),
    "combmin": Fusion("smallest w v", "scores", _FOX, _normalize, reduce=np.minimum, missing=np.inf),
    "dbsf": Fusion(
        "sum of w (s - mean + 3 sd) / (6 sd)",
        "scores",
        "distribution-based score fusion; Mazzeschi (2023); as in Qdrant",
        _spread,
    ),
    "rrf": Fusion(
        "sum of w / (rrf_k + r)",
        "ranks",
        "Cormack, Clarke and Büttcher (2009), Reciprocal rank fusion outperforms Condorcet",
        _reciprocal,
    ),
    "isr": Fusion("n * sum of w / r^2", "ranks", _MOURAO, _inverse_square, scale=np.positive),
    "log_isr": Fusion("ln(n) * sum of w / r^2", "ranks", _MOURAO, _inverse_square, scale=np.log),
    "borda": Fusion(
        "sum of w (c - r + 1); w (c - h + 1) / 2 if missing",
        "ranks",
        "Aslam and Montague (2001), Models for metasearch",
        _points,
    ),
}
"""The methods of fusion by name. docs/fusion.md has the same table."""

Method = Annotated[str, OneOf({name: fusion.formula for name, fusion in FUSIONS.items()})]

Normalization = Annotated[
    str, OneOf({name: (own.__doc__ or "").removeprefix("Return ").rstrip(".") for name, own in NORMALIZATIONS.items()})
]
