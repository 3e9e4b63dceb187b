"""Predict from the scores of hits which queries go well, and measure how well the predictions agree with the truth.

A predictor uses the scores of rankings and, optionally, the lengths of the queries, but no judgments and no texts. A
larger prediction means a query that should go better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import NOTHING, Rankings
from runner.analysis.clusters import Clusters
from runner.analysis.coefficients import compute_kendall, compute_pearson, compute_spearman
from runner.analysis.corrections import holm
from runner.analysis.significance import cluster_means

Floats = NDArray[np.float64]

PREDICTORS = {
    "max": "the first score",
    "gap(1,2)": "the first score minus the second",
    "gap(1,k)": "the first score minus the k-th",
    "WIG": "the mean of the first few scores minus that of the whole list",
    "NQC": "the standard deviation of the top scores divided by the mean of the whole list",
    "sigma_k": "the standard deviation of the top scores",
    "sigma_max": "the largest standard deviation of any prefix of the scores",
    "n(sigma%)": "the standard deviation of the scores that are at least half the first",
    "divergence": "how unevenly the score is distributed over the top documents",
}
"""The predictors, each with a short description; see `predict` for their sources."""

FEWEST = 3
"""The fewest queries for which a correlation is computed."""


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class PredictionSettings:
    """How many scores predictors use: the first `depth`, the first `few` for WIG, and the one at rank `gap`.

    A document counts in n(sigma%) if its score is at least this `share` of the first. The defaults are those that the
    papers found to work well.
    """

    depth: int = Field(default=100, ge=2)
    few: int = Field(default=5, ge=1)
    gap: int = Field(default=10, ge=2)
    share: float = Field(default=0.5, gt=0, le=1)


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


def predict(
    rankings: Rankings,
    lengths: Sequence[int] | None = None,
    settings: PredictionSettings = PredictionSettings(),  # noqa: B008 (immutable)
) -> dict[str, Floats]:
    """Return the value of every predictor for each query (queries,), NaN where there are too few documents.

    `lengths` are the numbers of words of the queries. The published predictors are:

    - WIG, weighted information gain (Zhou & Croft 2007), in the form of Shtok et al. (2012) for any score: the mean of
      the first few scores less the score of the corpus, divided by the root of the query's length.
    - NQC, normalised query commitment (Shtok et al. 2012): the standard deviation of the top scores divided by the
      score of the corpus.
    - sigma_k and sigma_max (Perez-Iglesias & Araujo 2010); n(sigma%) (Cummins, Jose & O'Riordan 2011).

    The score of the corpus as one document is not available; the mean score of all hits of the query replaces it.
    `divergence` is inspired by clarity (Cronen-Townsend et al. 2002), the divergence of the language of the top
    documents from that of the corpus. Without their terms, it is only the divergence of the top documents' shares of
    the score, above the lowest among them, from equal shares: 0 if all score alike, 1 if one has the whole score.
    """
    there = rankings.documents != NOTHING
    counts = np.count_nonzero(there, axis=1)
    scores = np.where(there, rankings.scores, 0).astype(np.float64)
    roots = np.sqrt(np.maximum(np.ones(len(scores)) if lengths is None else np.array(lengths, dtype=np.float64), 1))
    first = _at(scores, counts, 1)
    whole = _mean(scores, there)
    top = there & (np.arange(scores.shape[1]) < settings.depth)
    few = there & (np.arange(scores.shape[1]) < settings.few)
    near = top & (scores >= settings.share * first[:, None]) & (first > 0)[:, None]
    sigma = _deviation(scores, top)
    predictions = (
        first,
        first - _at(scores, counts, 2),
        first - _at(scores, counts, settings.gap),
        (_mean(scores, few) - whole) / roots,
        np.divide(sigma, np.abs(whole), out=np.full(len(scores), np.nan), where=whole != 0),
        sigma,
        _largest_deviation(scores, top),
        _deviation(scores, near) / roots,
        _divergence(scores, top),
    )
    return dict(zip(PREDICTORS, predictions, strict=True))


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


def _at(scores: Floats, counts: NDArray[np.int64], place: int) -> Floats:
    """Return the score at a rank (from 1), or the last score before it.

    NaN if there is no score, or only the first where a later rank was requested.
    """
    last = np.minimum(counts, place)
    values = np.full(len(scores), np.nan)
    enough = last >= min(place, 2)
    values[enough] = scores[enough, last[enough] - 1]
    return values


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


def _divergence(scores: Floats, some: NDArray[np.bool_]) -> Floats:
    """Return the Kullback-Leibler divergence of each query's score shares from equal shares, divided by its maximum."""
    counts = np.count_nonzero(some, axis=1)
    above = np.where(some, scores - np.where(some, scores, np.inf).min(axis=1, initial=np.inf)[:, None], 0)
    totals = above.sum(axis=1, keepdims=True)
    shares = np.divide(above, totals, out=some / np.maximum(counts, 1)[:, None], where=totals > 0)
    entropies = -(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1)
    values = np.full(len(scores), np.nan)
    np.divide(entropies, np.log(np.maximum(counts, 1)), out=values, where=counts > 1)
    return 1 - values
