"""Criteria by which results are compared: the columns of a leaderboard and the objectives of a search.

To add a column, or a cost that a search can minimise, add one value here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from runner.comparison.headline import find_deepest_recall, list_token_measures
from runner.evaluation.represented import OVER_SEARCHES
from runner.evaluation.result import Result
from runner.metrics.abstention import AtThreshold


@dataclass(frozen=True)
class Criterion:
    """A figure of a result: its `name` in files and settings, its `title` in tables, and its `value`, NaN if unknown.

    `larger` says whether larger is better. If a table is too wide, columns with the highest `priority` number are
    dropped first; None leaves the criterion out of tables but not out of files. `measure` is the measure whose mean the
    criterion is, "" for other figures. `definition` explains a title that does not explain itself.
    """

    name: str
    title: str
    value: Callable[[Result], float]
    larger: bool = True
    format: Literal["score", "percent", "milliseconds", "seconds", "number"] = "score"
    priority: int | None = 5
    measure: str = ""
    definition: str = ""


def mean_of(measure: str, priority: int = 5) -> Criterion:
    """Return the mean of a measure as a criterion."""
    return Criterion(
        measure, measure, lambda result: _number(result.means.get(measure)), priority=priority, measure=measure
    )


HOLE_RATE = "hole_rate_at_"
"""How the name of the hole rate begins, before its cutoff."""

COSTS: Mapping[str, Criterion] = {
    cost.name: cost
    for cost in (
        Criterion("median_ms", "query ms", lambda r: _number(r.timings.median_ms), False, "milliseconds"),
        # Not in tables, because a mean is dominated by the few slowest queries.
        Criterion("mean_ms", "mean ms", lambda r: _number(r.timings.mean_ms), False, "milliseconds", None),
        Criterion("p95_ms", "p95 ms", lambda r: _number(r.timings.p95_ms), False, "milliseconds", 9),
        Criterion("index_s", "index s", lambda r: r.timings.index_s, False, "seconds", 10),
        Criterion(
            "index_mb",
            "index MB",
            lambda r: _number(r.timings.index_bytes) / 1e6,
            False,
            "number",
            None,
            definition="Size of the index that is searched, in millions of bytes, without intermediate results",
        ),
        Criterion(
            "api_cost",
            "API cost",
            lambda r: _number(r.timings.money),
            False,
            "number",
            None,
            definition="What calls of models behind APIs cost for the index and all queries when this work was first "
            "done, in the currency of the prices, without grading",
        ),
    )
}
"""The time per query and for indexing, the size of the index, and the cost of models behind APIs."""


def find_objective(name: str) -> Criterion:
    """Return the cost, or the mean of the measure, with a name."""
    return COSTS.get(name) or mean_of(name)


_GRADE = Criterion("grade", "grade", lambda r: _number(r.grades.figures()["grade/mean"]) if r.grades else math.nan)
_INDEX_RECALL = Criterion(
    "index_recall_at_10", "index recall@10", lambda r: r.diagnostics.get("index_recall_at_10", math.nan)
)
_OVER_SEARCHES = Criterion(
    OVER_SEARCHES,
    "over searches",
    lambda r: r.diagnostics.get(OVER_SEARCHES, math.nan),
    definition="Mean of the primary measure over the searches that the queries of a sample of traffic represent",
)
_AUROC = Criterion("auroc", "AUROC", lambda r: r.abstention.auroc, priority=8)


def select_criteria(results: Sequence[Result], primary: str) -> list[Criterion]:
    """Return the columns of a leaderboard besides the primary measure: those for which any result has a value."""
    recall = find_deepest_recall(measure for result in results for measure in result.measures)
    criteria = [mean_of(recall)] if recall and recall != primary else []
    criteria += [mean_of("RR", 6)] if primary != "RR" else []
    tokens = list_token_measures(primary, {measure for result in results for measure in result.measures})
    criteria += [mean_of(measure, 4) for measure in tokens if measure != primary]
    for threshold in sorted({threshold for result in results for threshold in _by_threshold(result)}):
        criteria += _at_threshold(threshold)
    criteria += [_OVER_SEARCHES, _INDEX_RECALL, _GRADE, _AUROC, *_rate_of_holes(results), *COSTS.values()]
    free = all(not _number(result.timings.money) > 0 for result in results)
    criteria = [c for c in criteria if not (free and c is COSTS["api_cost"])]
    return [c for c in criteria if not all(math.isnan(c.value(result)) for result in results)]


def _rate_of_holes(results: Sequence[Result]) -> list[Criterion]:
    """Return the hole rate at the cutoff of the primary measure, if any result has unjudged hits."""
    cutoff = next((result.holes.cutoff for result in results if result.holes and result.holes.unjudged), None)
    if cutoff is None:
        return []

    def value(result: Result) -> float:
        return _number(result.holes.rates.get(str(cutoff))) if result.holes else math.nan

    return [Criterion(f"{HOLE_RATE}{cutoff}", f"holes@{cutoff}", value, larger=False, format="percent", priority=7)]


def _at_threshold(threshold: float) -> list[Criterion]:
    """Return the true negative rate at a score threshold, and its cost for the answerable queries."""

    def at(name: str, title: str, figure: str, larger: bool, priority: int) -> Criterion:
        def value(result: Result) -> float:
            return float(getattr(_by_threshold(result).get(threshold), figure, math.nan))

        return Criterion(f"{name}@{threshold:g}", f"{title}@{threshold:g}", value, larger, priority=priority)

    return [
        at("tn_rate", "TN rate", "tn_rate", True, 7),
        at("recall_lost", "recall lost", "recall_lost", False, 5),
        at("rejected", "answerable rejected", "left_with_nothing", False, 5),
    ]


def _by_threshold(result: Result) -> dict[float, AtThreshold]:
    """Return the figures of the queries without gold at each configured threshold."""
    return {at.threshold: at for at in result.abstention.thresholds if at.threshold is not None}


def _number(value: float | None) -> float:
    """Return a number; None, which records contain for NaN, becomes NaN."""
    return math.nan if value is None else float(value)
