"""Warnings about queries with more judged documents than a search returns, where measures cannot reach 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from runner.datasets.base import Judgments
from runner.metrics.measures import Measure


def list_depth_warnings(judgments: Judgments, n_queries: int, depth: int, measures: Sequence[Measure]) -> list[str]:
    """Return a sentence for each kind of measure that needs more than `depth` results per query."""
    golds, judged = judgments.golds(n_queries), np.bincount(judgments.queries, minlength=n_queries)
    warnings = []
    if beyond := _describe_beyond(golds, depth):
        warnings.append(
            f"{beyond} have more gold documents than the search depth of {depth:,}, so recall, AP and Rprec "
            f"cannot reach 1; set metrics.depth={int(golds.max())}"
        )
    if any(measure.name == "Bpref" for measure in measures) and (
        beyond := _describe_beyond(judged * (golds > 0), depth)
    ):
        warnings.append(
            f"{beyond} have more judged documents than the search depth of {depth:,}, and Bpref ignores those "
            f"below it; set metrics.depth={int(judged[golds > 0].max())}"
        )
    return warnings


def _describe_beyond(documents: NDArray[np.integer], depth: int) -> str:
    """Return how many queries have more documents than `depth`, in words; "" if there are none."""
    n = int(np.count_nonzero(documents > depth))
    return f"{n:,} of {np.count_nonzero(documents):,} queries" if n else ""
