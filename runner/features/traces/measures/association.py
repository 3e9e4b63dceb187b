"""Correlate how well an agent retrieves with reward, cost and time, over the tasks that have both.

This is association only: two figures that rise together need not cause each other. Several trials of a task, in one
configuration or several, count once, with their means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Required

import numpy as np
from typing_extensions import TypedDict

from runner.features.traces.measures.figures import OUTCOMES, FigureNames, Floats, build_row, group_columns
from runner.features.traces.measures.records import Artifact
from runner.statistics.corrections import CORRECTIONS, correct
from runner.statistics.correlation import FEWEST, RankCorrelation, spearman
from runner.statistics.settings import Statistics

MEASURES = ("file_recall", "mrr", "map_score", "context_efficiency")
"""The measures that are correlated with outcomes, besides the headline nDCG."""

CAVEAT = "Association only: a correlation does not show that one figure causes the other."


class OutcomeCorrelation(TypedDict, total=False):
    """The correlation of a measure with an outcome; without values if `computable` is false."""

    retrieval_metric: Required[str]
    outcome_metric: Required[str]
    computable: Required[bool]
    reason: str
    n: int
    spearman_r: float
    interval: list[float] | None
    spearman_p: float
    spearman_p_corrected: float | None


class Associations(TypedDict):
    """The correlations of measures with outcomes."""

    computable: bool
    reason: str | None
    n_joined: int
    confidence: float
    correction: str
    interpretation: str
    correlations: Sequence[OutcomeCorrelation]


def correlate_outcomes(artifacts: Iterable[Artifact], names: FigureNames, statistics: Statistics) -> Associations:
    """Correlate each measure with each outcome over the tasks that have both (Spearman); see `stages.round_numbers`.

    Trials of one task are not independent: their means, over the trials that have both figures, are one observation.
    `spearman_p` is for one pair of figures alone, `spearman_p_corrected` for all pairs together. A pair with too few
    tasks, or with a constant figure, is not computable. Raises `ValueError` for Tukey's correction.
    """
    measures = (*MEASURES, *names.headline)
    task_names: list[str] = []

    def iter_rows() -> Iterator[Floats]:
        for artifact in artifacts:
            task_names.append(artifact["provenance"]["task_name"])
            yield build_row(artifact, names)

    table = group_columns(iter_rows(), names)
    values = {name: table[name] for name in (*measures, *OUTCOMES)}
    order = np.lexsort(list(values.values()))  # not even the last digit may depend on the given order
    ordered = {name: column[order] for name, column in values.items()}
    tasks, clusters = np.unique(np.array(task_names, dtype=np.object_)[order], return_inverse=True)
    repeated = clusters if len(tasks) < len(order) else None
    pairs = list(product(measures, OUTCOMES))
    results = [
        spearman(ordered[measure], ordered[outcome], statistics.confidence, repeated) for measure, outcome in pairs
    ]
    p_values = {place: result.p_value for place, result in enumerate(results) if isinstance(result, RankCorrelation)}
    corrected = correct(np.array([*p_values.values()]), statistics.correction).tolist()
    by_place: dict[int, float] = dict(zip(p_values, corrected, strict=True))
    return {
        "computable": bool(p_values),
        "reason": None
        if p_values
        else f"no pair of a measure and an outcome that both vary over at least {FEWEST} tasks",
        "n_joined": len(np.unique(clusters[np.isfinite(ordered[MEASURES[0]]) & np.isfinite(ordered["reward"])])),
        "confidence": statistics.confidence,
        "correction": CORRECTIONS[statistics.correction].for_family().name,
        "interpretation": CAVEAT,
        "correlations": [
            _record(measure, outcome, result, by_place.get(place))
            for place, ((measure, outcome), result) in enumerate(zip(pairs, results, strict=True))
        ],
    }


def _record(measure: str, outcome: str, result: RankCorrelation | str, corrected: float | None) -> OutcomeCorrelation:
    if isinstance(result, str):
        return {"retrieval_metric": measure, "outcome_metric": outcome, "computable": False, "reason": result}
    return {
        "retrieval_metric": measure,
        "outcome_metric": outcome,
        "computable": True,
        "n": result.n,
        "spearman_r": result.rho,
        "interval": list(result.interval) if result.interval else None,
        "spearman_p": result.p_value,
        "spearman_p_corrected": corrected,
    }
