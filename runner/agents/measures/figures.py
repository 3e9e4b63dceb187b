"""The numbers of an artifact by name: what summaries, comparisons and correlations are made of.

A figure that could not be computed is not there. Knows nothing of how one is computed, or of other tasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.agents.measures.stages import AT_CUTOFFS, CUTOFFS, Artifact
from runner.agents.measures.taxonomy import LABELS

Floats = NDArray[np.float64]

MEASURES = (
    "mrr", "map_score", "file_recall", "context_efficiency",
    *(f"{name}@{k}" for k in CUTOFFS for name in AT_CUTOFFS),
    "ttfr_seconds", "ttfr_tokens",
)  # fmt: skip
"""The file-level measures; `ttfr` is the time to the first relevant file."""

PROBES = (
    "util_read_overlap_with_relevant_files",
    "util_write_overlap_with_relevant_files_proxy",
    "util_write_overlap_with_expected_edit_files",
    "util_read_before_write_ratio",
)
"""The utilisation probes."""

OUTCOMES = ("reward", "cost", "seconds", "tokens")
"""How a task ended, as far as that is a number; the cost is in dollars."""

SIZES = ("n_retrieved", "n_ground_truth", "n_overlap")
"""How many files were retrieved, are gold, and are both."""

FIGURES = (*MEASURES, *SIZES, "chunk_recall", *PROBES, *LABELS, *OUTCOMES)
"""The names of all figures."""


def figures(artifact: Artifact) -> dict[str, float]:
    """Return those figures of an artifact that are known, in the order of their names in `FIGURES`."""
    metrics = artifact["file_level_metrics"]
    said: dict[str, Any] = {
        **{f"{name}@{k}": value for name in AT_CUTOFFS for k, value in metrics.get(name, {}).items()},
        **metrics,
        **artifact["chunk_level_metrics"],
        **artifact["utilization_probes"],
        **artifact["error_taxonomy"]["labels"],
        **(artifact.get("outcome") or {}),
    }
    known = {name: value for name in FIGURES if isinstance(value := said.get(name), int | float)}
    return {name: float(value) for name, value in known.items() if math.isfinite(value)}


def columns(artifacts: Sequence[Artifact], names: Sequence[str]) -> dict[str, Floats]:
    """Return figures of artifacts by name (one value for each artifact), NaN where one is not known."""
    found = [figures(each) for each in artifacts]
    return {name: np.array([each.get(name, math.nan) for each in found], dtype=np.float64) for name in names}
