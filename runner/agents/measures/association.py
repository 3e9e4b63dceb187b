"""What goes together with how well an agent retrieves: reward, cost and time, over the tasks that have both.

Association only: that two figures go up together does not say that one is the cause of the other. Knows nothing of
configurations; tasks of several may be given together, where the same task counts once for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np

from runner.agents.measures.figures import OUTCOMES, FigureNames, columns, row
from runner.agents.measures.stages import Artifact
from runner.analysis.corrections import correct
from runner.analysis.correlation import FEWEST, Correlation, spearman
from runner.metrics.settings import MetricSettings

MEASURES = ("file_recall", "mrr", "map_score", "context_efficiency")
"""The measures that outcomes are held against, beside the headline nDCG."""

CAVEAT = "Association only: that two figures go together does not make one the cause of the other."


def associations(artifacts: Iterable[Artifact], settings: MetricSettings) -> dict[str, Any]:
    """Correlate each measure with each outcome over the tasks that have both (Spearman); see `stages.rounded`.

    `spearman_p` is of one pair of figures alone, `spearman_p_corrected` for all pairs together. A pair with too few
    tasks, or with a figure that does not vary, is not computable. Raises `ValueError` for Tukey's correction.
    """
    correction = "holm" if settings.correction == "maxt" else settings.correction
    names = FigureNames(settings.k_values)
    measures = (*MEASURES, *names.headline)
    table = columns((row(each, names) for each in artifacts), names)
    values = {name: table[name] for name in (*measures, *OUTCOMES)}
    order = np.lexsort(list(values.values()))  # so that the order given changes not even the last digit
    ordered = {name: column[order] for name, column in values.items()}
    pairs = list(product(measures, OUTCOMES))
    found = [spearman(ordered[measure], ordered[outcome], settings.confidence) for measure, outcome in pairs]
    known = {place: each.p_value for place, each in enumerate(found) if isinstance(each, Correlation)}
    corrected = correct(np.array([*known.values()]), correction).tolist()
    by_place = dict(zip(known, corrected, strict=True))
    return {
        "computable": bool(known),
        "reason": None if known else f"no measure and outcome that both vary over at least {FEWEST} tasks",
        "n_joined": int(np.count_nonzero(np.isfinite(values[MEASURES[0]]) & np.isfinite(values["reward"]))),
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
