"""Estimates the mean over the searches of users that the queries of a sample represent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.datasets.query_fields import REPRESENTS
from runner.evaluation.result import Result
from runner.pages import numbers
from runner.statistics.clusters import Clusters
from runner.statistics.significance import mean_interval, moments

OVER_SEARCHES = "over_searches"
"""The name of the mean among the diagnostics; `.low` and `.high` after it are those of its interval."""


def measure_over_searches(
    metadata: Sequence[Mapping[str, Any]],
    scores: NDArray[np.float64],
    confidence: float = 0.95,
    clusters: Clusters | None = None,
) -> dict[str, float]:
    """Return the mean of a measure over searches and its interval; {} unless all queries say what they represent.

    `scores` are its values (n, NaN for queries that enter no mean). The estimator is that of Hajek (1971), a ratio of
    the sums of Horvitz & Thompson (1952), with its variance by linearisation (Cochran 1977, 6.3).
    """
    given = [row.get(REPRESENTS) for row in metadata]
    if not given or not all(isinstance(value, int | float) and value >= 0 for value in given):
        return {}
    weights = np.array(given, dtype=np.float64)
    counted = ~np.isnan(scores) & (weights > 0)
    if not counted.any():
        return {}
    units = None if clusters is None else clusters[counted]
    rows, own = scores[None, counted], weights[None, counted]
    low, high = mean_interval(rows, confidence, units, own)[0].tolist()
    mean = float(moments(rows, units, own)[1][0])
    return {OVER_SEARCHES: mean, f"{OVER_SEARCHES}.low": low, f"{OVER_SEARCHES}.high": high}


def describe_over_searches(result: Result) -> str:
    """Return the mean over searches with its interval in a line; "" if the queries do not say what they represent."""
    if OVER_SEARCHES not in result.diagnostics:
        return ""
    mean, low, high = (result.diagnostics[f"{OVER_SEARCHES}{end}"] for end in ("", ".low", ".high"))
    interval = numbers.interval((low, high))
    return f"{result.primary} {numbers.score(mean)} {interval} over the searches that the queries represent"
