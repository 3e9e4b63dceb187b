"""How much of the variance between systems each setting explains, and each pair of settings beyond its two.

The shares are those of functional ANOVA over the systems that were measured (Hooker 2007; Hutter et al. 2014): the
variance of the means by value over the variance of all means. They are exact for a full grid; in other designs the
shares of settings that vary together overlap. Queries are resampled, so the intervals state how the shares would vary
with other queries. A share is a sum of squares, so noise only adds to it, and no share of a resample is 0; an interval
is therefore that of the effects, of which the share is the squared length (`_enclose`). A setting is a column of
values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from runner.statistics.clusters import Clusters

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
    means /= _measure_lengths(means)
    codes = {name: _number_values(column) for name, column in settings.items()}
    codes = {name: of for name, of in codes.items() if of.max() > 0}
    effects: dict[tuple[str, ...], NDArray[np.float64]] = {(name,): _average(means, of) for name, of in codes.items()}
    for one, other in combinations([name for name in codes if not any(map(_is_missing, settings[name]))], 2):
        both = _number_values(list(zip(codes[one].tolist(), codes[other].tolist(), strict=True)))
        is_full = both.max() + 1 == (codes[one].max() + 1) * (codes[other].max() + 1)
        if is_full or both.max() + 1 < len(values):  # else each system has a pair of its own, which explains all
            effects[one, other] = _average(means, both) - _add_up(means, codes[one], codes[other])
    importances = [Importance(names, *_enclose(of, confidence)) for names, of in effects.items()]
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


def _measure_lengths(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the length of each row; resampling adds noise to the lengths after the first, which is taken out."""
    squares = (means**2).sum(axis=1, keepdims=True)
    squares[1:] *= squares[0] / squares[1:].mean()
    lengths: NDArray[np.float64] = np.sqrt(np.maximum(squares, np.finfo(float).tiny))
    return lengths


def _is_missing(value: object) -> bool:
    return value is None or value != value  # NaN


def _number_values(column: Sequence[object]) -> NDArray[np.int64]:
    numbers: dict[object, int] = {}
    values = (None if _is_missing(value) else value for value in column)
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def _average(means: NDArray[np.float64], codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return, for each system, the mean over the systems with its value (draws x systems)."""
    has_value = (codes[:, None] == np.arange(codes.max() + 1)).astype(np.float64)
    averages: NDArray[np.float64] = means @ (has_value / has_value.sum(axis=0)) @ has_value.T
    return averages


def _add_up(means: NDArray[np.float64], one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sum of an effect of each of two settings that is nearest to the means (draws x systems)."""
    columns = [codes[:, None] == np.arange(codes.max() + 1) for codes in (one, other)]
    basis, sizes, _ = np.linalg.svd(np.hstack(columns).astype(np.float64), full_matrices=False)
    basis = basis[:, sizes > 1e-9]
    fitted: NDArray[np.float64] = means @ basis @ basis.T
    return fitted


def _enclose(effects: NDArray[np.float64], confidence: float) -> tuple[float, float, float]:
    """Return the squared length of the first effects, with the interval that the others, of resamples, give.

    The true effects are within a radius of the estimated ones, so their length is, too. Without an effect, the interval
    contains 0 with the probability `confidence`.
    """
    estimated, length = effects[0], float(np.linalg.norm(effects[0]))
    radius = float(np.quantile(np.linalg.norm(effects[1:] - estimated, axis=1), confidence))
    return length**2, max(length - radius, 0.0) ** 2, min(length + radius, 1.0) ** 2
