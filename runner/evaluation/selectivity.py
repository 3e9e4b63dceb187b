"""Measures queries with filters, grouped by the share of documents that pass the filter."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from retrievers.filters import group_by_selectivity
from runner.datasets.dataset import Dataset

CUTOFF = 10
"""The number of hits that a query should have, if that many documents pass its filter."""


def measure_by_selectivity(
    dataset: Dataset, rankings: Rankings, depth: int, measure: str, scores: NDArray[np.float64]
) -> dict[str, float]:
    """Return figures on the queries with filters, by band of selectivity; {} without filters or documents.

    `scores` are the values of `measure` (n, NaN for queries that enter no mean). `queries` counts the queries of a
    band; the mean is over those of them with a value. `short_results_at_10` counts queries with fewer hits than ten,
    the depth of the search and the number of documents that pass; `hits_outside_filter_at_10` counts the hits that do
    not pass.
    """
    filters, corpus = dataset.queries.filters, dataset.corpus
    if not any(filters) or not len(corpus):
        return {}
    n, depth, shares = len(filters), min(CUTOFF, depth), corpus.fields.measure_shares(filters)
    short, outside = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.int64)
    for query, own in enumerate(filters):
        if own is not None:
            mask, hits = corpus.fields.select(own), rankings.documents[query, :depth]
            known = hits[(hits != NOTHING) & (hits < len(corpus))]
            short[query] = np.count_nonzero(hits != NOTHING) < min(depth, round(shares[query] * len(corpus)))
            outside[query] = np.count_nonzero(~mask[known])
    figures: dict[str, float] = {}
    for name, group in group_by_selectivity(shares).items():
        counted = scores[group][~np.isnan(scores[group])]
        mean: Mapping[str, float] = {f"{measure}.{name}": float(counted.mean())} if len(counted) else {}
        figures |= {
            f"queries.{name}": float(len(group)),
            **mean,
            f"short_results_at_{CUTOFF}.{name}": float(short[group].sum()),
            f"hits_outside_filter_at_{CUTOFF}.{name}": float(outside[group].sum()),
        }
    return figures
