"""Sum per-query values by cluster, the unit that statistics resample.

Queries that are variants of each other form a cluster; without clusters, each query is its own cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Clusters = NDArray[np.int64]
"""The cluster of each query, as numbers from 0."""


@dataclass(frozen=True, eq=False)
class Units:
    """The sums of the queries of each cluster (m x clusters), and how many of them count for each system."""

    sums: Floats
    counts: Floats

    @property
    def independent(self) -> NDArray[np.int64]:
        """Return how many clusters have a query that counts (m,)."""
        independent: NDArray[np.int64] = np.count_nonzero(self.counts, axis=1)
        return independent

    @property
    def means(self) -> Floats:
        """Return the mean over queries (m,); NaN if no query counts."""
        n = self.counts.sum(axis=1)
        means: Floats = np.divide(self.sums.sum(axis=1), n, out=np.full(len(n), np.nan), where=n > 0)
        return means

    @property
    def residuals(self) -> Floats:
        """Return each cluster's contribution to the error of the mean (m x clusters): its sum less its expected sum.

        The mean is a ratio of sums if clusters differ in size; these are its linear terms (Cochran 1977, 6.3).
        """
        return np.nan_to_num(self.sums - self.means[:, None] * self.counts)

    @property
    def errors(self) -> Floats:
        """Return the standard error of each mean (m,); NaN below two clusters."""
        clusters, queries = self.independent, self.counts.sum(axis=1)
        squares = (self.residuals**2).sum(axis=1) * clusters
        variances = np.full(len(clusters), np.nan)
        np.divide(squares, (clusters - 1) * queries**2, out=variances, where=clusters > 1)
        errors: Floats = np.sqrt(variances)
        return errors


def by_cluster(values: Floats, clusters: Clusters | None, weights: Floats | None = None) -> Units:
    """Sum values (m x queries, NaN where a query does not count) by cluster.

    With weights (m x queries), a query counts as that many.
    """
    present = (~np.isnan(values)).astype(np.float64)
    filled = np.nan_to_num(values)
    if weights is not None:
        present, filled = present * weights, filled * weights
    if clusters is None:
        return Units(filled, present)
    _, codes = np.unique(clusters, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    if not len(starts):
        return Units(filled, present)
    return Units(*(np.add.reduceat(part[:, order], starts, axis=1) for part in (filled, present)))


def count_clusters(labels: Sequence[str]) -> int | None:
    """Return how many clusters the labels form; None if every query is its own cluster."""
    clusters = number_clusters(labels)
    return None if clusters is None else len(np.unique(clusters))


def number_clusters(labels: Sequence[str]) -> Clusters | None:
    """Return the cluster number of each query by its label; a query with an empty label is its own cluster.

    Returns None if no query has a label, so that every query is its own cluster.
    """
    if not any(labels):
        return None
    numbers: dict[str, int] = {}
    keys = [f"label {label}" if label else f"query {position}" for position, label in enumerate(labels)]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
