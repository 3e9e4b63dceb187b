"""Intervals of a mean by resampling queries, which simulations compare with those of the program."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from runner.statistics.clusters import by_cluster
from runner.statistics.significance import iter_resampled_means

Floats = NDArray[np.float64]


def percentile(values: Floats, resamples: int = 1000) -> Floats:
    """Return the percentile interval of the mean at 95 % (Efron 1979) of each row of values (m x 2)."""
    intervals: Floats = np.quantile(_resampled(values, resamples), [0.025, 0.975], axis=1).T
    return intervals


def bca(values: Floats, resamples: int = 1000) -> Floats:
    """Return the bias-corrected and accelerated interval of the mean at 95 % (Efron 1987) of each row (m x 2)."""
    from scipy.special import ndtr, ndtri

    resampled, means = np.sort(_resampled(values, resamples), axis=1), values.mean(axis=1, keepdims=True)
    below = ((resampled < means - 1e-12).mean(axis=1) + (resampled <= means + 1e-12).mean(axis=1)) / 2
    bias = ndtri(np.clip(below, 1 / (resamples + 1), resamples / (resamples + 1)))[:, None]
    squares = ((values - means) ** 2).sum(axis=1)
    cubes = ((values - means) ** 3).sum(axis=1)
    skew = np.divide(cubes, 6 * squares**1.5, out=np.zeros(len(values)), where=squares > 1e-20)[:, None]
    moved = bias + ndtri([0.025, 0.975])
    places = np.clip(ndtr(bias + moved / (1 - skew * moved)) * (resamples - 1), 0, resamples - 1)
    low = np.floor(places).astype(np.int64)
    rest = places - low
    high = np.minimum(low + 1, resamples - 1)
    bounds: Floats = (1 - rest) * np.take_along_axis(resampled, low, 1) + rest * np.take_along_axis(resampled, high, 1)
    return bounds


def _resampled(values: Floats, resamples: int) -> Floats:
    return np.concatenate([block for _, block in iter_resampled_means(by_cluster(values, None), resamples, 0)], axis=1)
