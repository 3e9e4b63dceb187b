"""Predict from the scores of hits which queries go well, and measure how well the predictions agree with the truth.

A predictor uses the scores of rankings and the lengths of the queries, but no judgments and no texts. A larger
prediction means a query that should go better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from runner.statistics.clusters import Clusters
from runner.statistics.coefficients import compute_kendall, compute_pearson, compute_spearman
from runner.statistics.corrections import holm
from runner.statistics.significance import cluster_means

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HitScores:
    """The scores of hits (queries x hits), 0 where there is none, and which are among the `top` and `first` few.

    `corpus` is the score of the corpus as one document. It is not available; the mean score of all hits of the query
    replaces it. `roots` are the square roots of the lengths of the queries.
    """

    scores: Floats
    top: NDArray[np.bool_]
    first: NDArray[np.bool_]
    corpus: Floats
    roots: Floats


class Predictor(NamedTuple):
    """A predictor: what it is, and the function that computes it for each query."""

    description: str
    compute: Callable[[HitScores], Floats]


FEWEST = 3
"""The fewest queries for which a correlation is computed."""


@dataclass(frozen=True)
class Correlation:
    """The agreement of predictions with the truth: Pearson's r, Spearman's rho and Kendall's tau-b.

    `queries` is the number of queries (or clusters) that have both values. `p_value` is that of tau, corrected for the
    number of predictors (Holm). All are NaN if there are too few queries, or if one side is constant.
    """

    queries: int
    pearson: float
    spearman: float
    kendall: float
    p_value: float


def predict(rankings: Rankings, lengths: Sequence[int], *, depth: int = 100, few: int = 5) -> dict[str, Floats]:
    """Return the value of each of `PREDICTORS` for each query (queries,), NaN where there are too few documents.

    `lengths` are the numbers of words of the queries. WIG uses the first `few` scores, the others the first `depth`, by
    default as many as the papers found to work well.
    """
    there = rankings.documents != NOTHING
    scores = np.where(there, rankings.scores, 0).astype(np.float64)
    top, first = (there & (np.arange(scores.shape[1]) < count) for count in (depth, few))
    roots = np.sqrt(np.maximum(np.array(lengths, dtype=np.float64), 1))
    hits = HitScores(scores, top, first, _mean(scores, there), roots)
    return {name: predictor.compute(hits) for name, predictor in PREDICTORS.items()}


def correlations(
    predictions: Mapping[str, Floats], truth: Floats, clusters: Clusters | None = None
) -> dict[str, Correlation]:
    """Correlate predictions with the actual scores of queries (queries,); pairs with a NaN are left out.

    With clusters, both are means of clusters, because variants of a query are not independent evidence.
    """
    by_name = {name: _correlation(values, truth, clusters) for name, values in predictions.items()}
    computable = [name for name, correlation in by_name.items() if correlation.p_value == correlation.p_value]
    corrected = dict(
        zip(computable, holm(np.array([by_name[name].p_value for name in computable])).tolist(), strict=True)
    )
    return {
        name: Correlation(c.queries, c.pearson, c.spearman, c.kendall, corrected.get(name, np.nan))
        for name, c in by_name.items()
    }


def _correlation(predicted: Floats, truth: Floats, clusters: Clusters | None) -> Correlation:
    both = ~(np.isnan(predicted) | np.isnan(truth))
    x, y = cluster_means(np.stack([predicted[both], truth[both]]), None if clusters is None else clusters[both])
    if len(x) < FEWEST or _constant(x) or _constant(y):
        return Correlation(len(x), np.nan, np.nan, np.nan, np.nan)
    kendall, p_value = compute_kendall(x, y)
    return Correlation(len(x), compute_pearson(x, y), compute_spearman(x, y), kendall, p_value)


def _constant(values: Floats) -> bool:
    """Tell whether all values are equal, up to rounding."""
    return bool(np.ptp(values) <= 1e-9 * np.abs(values).max())


def _mean(scores: Floats, some: NDArray[np.bool_]) -> Floats:
    counts = np.count_nonzero(some, axis=1)
    values = np.full(len(scores), np.nan)
    np.divide(np.where(some, scores, 0).sum(axis=1), counts, out=values, where=counts > 0)
    return values


def _deviation(scores: Floats, some: NDArray[np.bool_]) -> Floats:
    """Return the standard deviation of some of each query's scores."""
    return np.sqrt(_mean((scores - _mean(scores, some)[:, None]) ** 2, some))


def _largest_deviation(scores: Floats, some: NDArray[np.bool_]) -> Floats:
    """Return the largest standard deviation of the first i scores of each query, over all i."""
    if not scores.shape[1]:
        return np.full(len(scores), np.nan)
    shifted = np.where(some, scores - scores[:, :1], 0)  # near 0, so that squares keep small differences
    counts = np.arange(1, scores.shape[1] + 1)
    variances = np.cumsum(shifted**2, axis=1) / counts - (np.cumsum(shifted, axis=1) / counts) ** 2
    largest: Floats = np.sqrt(np.where(some, variances, 0).max(axis=1))
    return np.where(some[:, 0], largest, np.nan)


def _compute_commitment(hits: HitScores) -> Floats:
    values = np.full(len(hits.scores), np.nan)
    np.divide(_deviation(hits.scores, hits.top), np.abs(hits.corpus), out=values, where=hits.corpus != 0)
    return values


PREDICTORS: Mapping[str, Predictor] = {
    # Weighted information gain (Zhou & Croft 2007), in the form of Shtok et al. (2012) for any score.
    "WIG": Predictor(
        "the mean of the first few scores minus that of the whole list",
        lambda hits: (_mean(hits.scores, hits.first) - hits.corpus) / hits.roots,
    ),
    # Normalised query commitment (Shtok et al. 2012).
    "NQC": Predictor(
        "the standard deviation of the top scores divided by the mean of the whole list", _compute_commitment
    ),
    # Perez-Iglesias & Araujo 2010.
    "sigma_max": Predictor(
        "the largest standard deviation of any prefix of the scores",
        lambda hits: _largest_deviation(hits.scores, hits.top),
    ),
}
"""The predictors by name."""
