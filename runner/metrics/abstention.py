"""Measure abstention on queries without gold: how many get no result at each threshold, and what the others lose.

A query with gold is answerable; one without gold is a no-result query. A query whose search raised an error is neither.
A threshold drops the results that score below it from the same rankings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Rankings
from runner.metrics.scores import Grader, find_answered

Status = Literal["pass", "partial", "fail", "true_negative", "false_positive", "unjudged", "error"]
"""The outcome of a query.

With gold: the first gold is at rank 1 (pass), at a later rank up to the cutoff that `find_missed_cutoff` returns
(partial), or not among these (fail). Without gold: no result, or some; or unjudged. Or an error.
"""

_GOLD_AT = {"pass": "rank 1", "partial": "ranks 2 to {}", "fail": "not in the first {}"}
"""Where the first gold of a query with a status is, given the cutoff."""


def describe_status(status: str, cutoff: int) -> str:
    """Return a status in words, with the ranks at which its first gold is: "partial (ranks 2 to 10)"."""
    ranks = _GOLD_AT.get(status, "").format(cutoff)
    return status.replace("_", " ") + (f" ({ranks})" if ranks else "")


@dataclass(frozen=True)
class AtThreshold:
    """The figures when results that score below a threshold are dropped; the threshold None drops none.

    A no-result query is a true negative if no result remains, else a false positive. `recall` is the mean R@k of the
    answerable queries, `recall_lost` the loss from their recall without a threshold, and `left_with_nothing` the share
    of them that gets no result. A share is NaN if there are no such queries.
    """

    threshold: float | None
    true_negatives: int
    false_positives: int
    tn_rate: float
    fp_rate: float
    recall: float
    recall_lost: float
    left_with_nothing: float

    def to_dict(self) -> dict[str, Any]:
        """Return the values for JSON, with None for NaN."""
        return asdict(self, dict_factory=_without_nan)


@dataclass(frozen=True)
class Abstention:
    """How well scores separate no-result queries from answerable ones.

    `auroc` is that of each query's best score, `k` the cutoff of the recall in `thresholds`. The first threshold is
    None.
    """

    no_result: int
    answerable: int
    errors: int
    k: int
    auroc: float
    thresholds: tuple[AtThreshold, ...]

    @property
    def everything(self) -> AtThreshold:
        """Return the figures without a threshold."""
        return self.thresholds[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the values for JSON, with None for NaN."""
        return asdict(self, dict_factory=_without_nan)

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Abstention:
        """Return the figures that `to_dict` returned; raises `TypeError` or `LookupError` for other content."""
        thresholds = tuple(AtThreshold(**_with_nan(at)) for at in content["thresholds"])
        return Abstention(**{**_with_nan(content), "thresholds": thresholds})


def _without_nan(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value if value == value else None for name, value in items}


def _with_nan(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.nan if value is None and name != "threshold" else value for name, value in content.items()}


def measure_abstention(grader: Grader, rankings: Rankings, thresholds: Sequence[float] = (), k: int = 10) -> Abstention:
    """Measure abstention without a threshold, then at each threshold, from the same rankings."""
    graded, best, ran = grader.grade(rankings), _best(rankings), find_answered(rankings)
    answerable, no_result = ran & (grader.golds > 0), ran & grader.is_no_result
    gold = graded.gold
    scores = rankings.scores[gold.queries, gold.ranks - 1]

    def at(threshold: float | None) -> AtThreshold:
        silent = (graded.returned == 0) | ~_passes(best, threshold)
        hits = gold.total(_passes(scores, threshold).astype(np.float64), k)
        return AtThreshold(
            threshold=threshold,
            true_negatives=int(silent[no_result].sum()),
            false_positives=int((~silent[no_result]).sum()),
            tn_rate=_mean(silent[no_result]),
            fp_rate=_mean(~silent[no_result]),
            recall=_mean(hits[answerable] / grader.golds[answerable]),
            recall_lost=_mean((gold.count(k) - hits)[answerable] / grader.golds[answerable]),
            left_with_nothing=_mean(silent[answerable]),
        )

    return Abstention(
        no_result=int(no_result.sum()),
        answerable=int(answerable.sum()),
        errors=int((~ran).sum()),
        k=k,
        auroc=compute_auroc(best[answerable], best[no_result]),
        thresholds=tuple(at(threshold) for threshold in (None, *thresholds)),
    )


def list_statuses(
    grader: Grader, rankings: Rankings, cutoff: int, threshold: float | None = None
) -> tuple[Status, ...]:
    """Return the outcome of each query, counting gold among the first hits up to a cutoff.

    Only results that score at or above the threshold count.
    """
    graded = grader.grade(rankings)
    gold = graded.gold.select(_passes(rankings.scores[graded.gold.queries, graded.gold.ranks - 1], threshold))
    by_rule: list[tuple[Status, NDArray[np.bool_]]] = [
        ("error", ~find_answered(rankings)),
        ("unjudged", (grader.golds == 0) & ~grader.is_no_result),
        ("false_positive", (grader.golds == 0) & (graded.returned > 0) & _passes(_best(rankings), threshold)),
        ("true_negative", grader.golds == 0),
        ("pass", gold.first == 1),
        ("partial", gold.first <= cutoff),
        ("fail", gold.first > cutoff),
    ]
    first_rule = np.argmax([rule for _, rule in by_rule], axis=0)
    return tuple(by_rule[rule][0] for rule in first_rule)


def compute_auroc(positives: NDArray[np.floating[Any]], negatives: NDArray[np.floating[Any]]) -> float:
    """Return the probability that a positive scores above a negative, counting ties as half; NaN if either is empty."""
    ordered = np.sort(negatives)
    below = np.searchsorted(ordered, positives, side="left") + np.searchsorted(ordered, positives, side="right")
    return _mean(below / 2) / len(negatives) if len(negatives) else math.nan


def _best(rankings: Rankings) -> NDArray[np.float32]:
    """Return the best score of each query (queries,), -inf for a query without results."""
    best: NDArray[np.float32] = rankings.scores.max(axis=1, initial=-np.inf)
    return best


def _passes(scores: NDArray[np.float32], threshold: float | None) -> NDArray[np.bool_]:
    """Return which scores are at or above the threshold, compared as 32-bit floats."""
    return scores >= np.float32(-np.inf if threshold is None else threshold)


def _mean(values: NDArray[np.generic]) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else math.nan
