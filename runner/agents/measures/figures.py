"""The numbers of an artifact by name: what summaries, comparisons and correlations are made of.

A figure that could not be computed is not there. Knows nothing of how one is computed, or of other tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
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


def row(artifact: Artifact) -> Floats:
    """Return all figures of an artifact as numbers, in the order of `FIGURES`, NaN where one is not known."""
    known = figures(artifact)
    return np.array([known.get(name, math.nan) for name in FIGURES])


def columns(rows: Iterable[Floats]) -> dict[str, Floats]:
    """Return rows as the values of each figure by its name."""
    table = np.array([*rows], dtype=np.float64).reshape(-1, len(FIGURES))
    return dict(zip(FIGURES, table.T, strict=True))
