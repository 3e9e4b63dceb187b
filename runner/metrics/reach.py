"""Warnings about queries with more judged documents than a search returns, where measures cannot reach 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrievers.base import NOTHING, Rankings
from runner.datasets.base import Judgments
from runner.metrics.measures import Measure
from runner.metrics.scores import Grader


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


def list_token_warnings(grader: Grader, rankings: Rankings, depth: int, measures: Sequence[Measure]) -> list[str]:
    """Return a sentence for each number of words that rankings of the full `depth` do not reach."""
    tokens = grader.grade(rankings).tokens
    if tokens is None or rankings.depth < depth:  # all hits are there
        return []
    is_cut = (rankings.documents != NOTHING).all(axis=1) & grader.find_counted(rankings)
    warnings = []
    for budget in dict.fromkeys(measure.cutoff for measure in measures if measure.in_tokens and measure.cutoff):
        returned = tokens.by_tokens().cut(budget).returned
        short = is_cut & (returned < budget)
        if short.any():
            words = float(returned[short].mean()) / depth
            needed = math.ceil(budget * depth / max(float(returned[short].min()), 1))
            warnings.append(
                f"{np.count_nonzero(short):,} of {np.count_nonzero(grader.golds):,} queries return fewer than "
                f"{budget:,} words within the search depth of {depth:,}, because their hits have {words:.3g} "
                f"words on average, so measures @tokens={budget} end early; set metrics.depth={needed}"
            )
    return warnings


def _describe_beyond(documents: NDArray[np.integer], depth: int) -> str:
    """Return how many queries have more documents than `depth`, in words; "" if there are none."""
    n = int(np.count_nonzero(documents > depth))
    return f"{n:,} of {np.count_nonzero(documents):,} queries" if n else ""
