"""How much of the variance between systems each setting explains, and each pair of settings beyond its two.

The shares are those of functional ANOVA over the systems that were measured (Hooker 2007; Hutter et al. 2014): the
variance of the means by value over the variance of all means. They are exact for a full grid; in other designs the
shares of settings that vary together overlap. Queries are resampled, so the intervals state how the shares would vary
with other queries. Knows nothing of retrievers: a setting is a column of values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from runner.analysis.clusters import Clusters

DRAWS = 200
"""Samples of queries that an interval is estimated from."""


@dataclass(frozen=True)
class Importance:
    """The share of the variance that one setting explains, or two settings by their interaction, with its interval."""

    settings: tuple[str, ...]
    share: float
    low: float
    high: float


def estimate_importance(
    scores: NDArray[np.float64],
    settings: Mapping[str, Sequence[object]],
    rng: np.random.Generator,
    clusters: Clusters | None = None,
    confidence: float = 0.95,
) -> list[Importance]:
    """Return the importance of each setting and of each pair, the largest of each kind first.

    `scores` are systems x queries; queries with a NaN are left out. `settings` have a value for each system, None or
    NaN for a system without the setting, which counts as a value of its own; such a setting is in no pair. Clusters of
    queries are resampled as a whole. Returns nothing if all means are equal.
    """
    counted = ~np.isnan(scores).any(axis=0)
    values = scores[:, counted]
    if len(values) < 3 or not values.shape[1] or np.ptp(values.mean(axis=1)) == 0:
        return []
    means = np.vstack([values.mean(axis=1), _resample(values, None if clusters is None else clusters[counted], rng)])
    means -= means.mean(axis=1, keepdims=True)
    total = np.maximum((means**2).mean(axis=1), np.finfo(float).tiny)
    codes = {name: _number_values(column) for name, column in settings.items()}
    codes = {name: of for name, of in codes.items() if of.max() > 0}
    shares: dict[tuple[str, ...], NDArray[np.float64]] = {
        (name,): _explain(means, of) / total for name, of in codes.items()
    }
    for one, other in combinations([name for name in codes if not any(map(_is_missing, settings[name]))], 2):
        both = _number_values(list(zip(codes[one].tolist(), codes[other].tolist(), strict=True)))
        is_full = both.max() + 1 == (codes[one].max() + 1) * (codes[other].max() + 1)
        if is_full or both.max() + 1 < len(values):  # else each system has a pair of its own, which explains all
            explained = _explain(means, both) / total - shares[one,] - shares[other,]
            shares[one, other] = np.maximum(explained, 0)
    tail = (1 - confidence) / 2
    importances = [
        Importance(names, float(of[0]), *np.quantile(of[1:], [tail, 1 - tail]).tolist()) for names, of in shares.items()
    ]
    return sorted(
        importances, key=lambda importance: (len(importance.settings), -importance.share, importance.settings)
    )


def _resample(values: NDArray[np.float64], clusters: Clusters | None, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the means of the systems over samples of queries (draws x systems)."""
    queries = values.shape[1]
    unit = np.arange(queries) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    units = int(unit.max()) + 1
    weights = rng.multinomial(units, np.full(units, 1 / units), size=DRAWS)[:, unit].astype(np.float64)
    means: NDArray[np.float64] = weights @ values.T / weights.sum(axis=1, keepdims=True)
    return means


def _is_missing(value: object) -> bool:
    return value is None or value != value  # NaN


def _number_values(column: Sequence[object]) -> NDArray[np.int64]:
    numbers: dict[object, int] = {}
    values = (None if _is_missing(value) else value for value in column)
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def _explain(means: NDArray[np.float64], codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the variance of the means by value (draws), each weighted by the number of its systems."""
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    sums = np.add.reduceat(means[:, order], starts, axis=1)
    explained: NDArray[np.float64] = (sums**2 / counts).sum(axis=1) / len(codes)
    return explained
