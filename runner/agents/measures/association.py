"""What goes together with how well an agent retrieves: reward, cost and time, over the tasks that have both.

Association only: that two figures go up together does not say that one is the cause of the other. Knows nothing of
configurations; a task that several of them did, or one did several times, counts once, with the means of its trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np

from runner.agents.measures.figures import OUTCOMES, FigureNames, Floats, columns, row
from runner.agents.measures.stages import Artifact
from runner.analysis.corrections import correct
from runner.analysis.correlation import FEWEST, Correlation, spearman
from runner.metrics.settings import MetricSettings

MEASURES = ("file_recall", "mrr", "map_score", "context_efficiency")
"""The measures that outcomes are held against, beside the headline nDCG."""

CAVEAT = "Association only: that two figures go together does not make one the cause of the other."


def associations(artifacts: Iterable[Artifact], settings: MetricSettings) -> dict[str, Any]:
    """Correlate each measure with each outcome over the tasks that have both (Spearman); see `stages.rounded`.

    Trials of one task are not independent: their means are one observation, over the trials that have both figures.
    `spearman_p` is of one pair of figures alone, `spearman_p_corrected` for all pairs together. A pair with too few
    tasks, or with a figure that does not vary, is not computable. Raises `ValueError` for Tukey's correction.
    """
    correction = "holm" if settings.correction == "maxt" else settings.correction
    names = FigureNames(settings.k_values)
    measures = (*MEASURES, *names.headline)
    task_names: list[str] = []

    def rows() -> Iterator[Floats]:
        for artifact in artifacts:
            task_names.append(artifact["provenance"]["task_name"])
            yield row(artifact, names)

    table = columns(rows(), names)
    values = {name: table[name] for name in (*measures, *OUTCOMES)}
    order = np.lexsort(list(values.values()))  # so that the order given changes not even the last digit
    ordered = {name: column[order] for name, column in values.items()}
    tasks, clusters = np.unique(np.array(task_names, dtype=np.object_)[order], return_inverse=True)
    repeated = clusters if len(tasks) < len(order) else None
    pairs = list(product(measures, OUTCOMES))
    found = [spearman(ordered[measure], ordered[outcome], settings.confidence, repeated) for measure, outcome in pairs]
    known = {place: each.p_value for place, each in enumerate(found) if isinstance(each, Correlation)}
    corrected = correct(np.array([*known.values()]), correction).tolist()
    by_place = dict(zip(known, corrected, strict=True))
    return {
        "computable": bool(known),
        "reason": None if known else f"no measure and outcome that both vary over at least {FEWEST} tasks",
        "n_joined": len(np.unique(clusters[np.isfinite(ordered[MEASURES[0]]) & np.isfinite(ordered["reward"])])),
        "confidence": settings.confidence,
        "correction": correction,
        "interpretation": CAVEAT,
        "correlations": [
            {"retrieval_metric": measure, "outcome_metric": outcome, **_row(each, by_place.get(place))}
            for place, ((measure, outcome), each) in enumerate(zip(pairs, found, strict=True))
        ],
    }


def _row(found: Correlation | str, corrected: float | None) -> dict[str, Any]:
    if isinstance(found, str):
        return {"computable": False, "reason": found}
    return {
        "computable": True,
        "n": found.n,
        "spearman_r": found.rho,
        "interval": list(found.interval) if found.interval else None,
        "spearman_p": found.p_value,
        "spearman_p_corrected": corrected,
    }
