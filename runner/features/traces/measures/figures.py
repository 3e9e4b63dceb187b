"""The numbers of an artifact by name, from which summaries and correlations are computed.

A figure that could not be computed is absent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from runner.features.traces.measures.records import Artifact
from runner.features.traces.measures.stages import AT_CUTOFFS
from runner.features.traces.measures.task_figures import Stage, list_names, list_task_figures
from runner.metrics.settings import MetricSettings

Floats = NDArray[np.float64]

OUTCOMES = list_names("outcome")
"""The figures that describe how a task ended."""

_HEADLINE = 10
_NARROW = 5


@dataclass(frozen=True)
class FigureNames:
    """The names of all figures of artifacts with ranking measures at these cutoffs."""

    cutoffs: tuple[int, ...] = MetricSettings.k_values

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """Return the file-level measures; `ttfr` is the time to the first relevant file."""
        return tuple(figure.name for figure in list_task_figures(self.cutoffs) if figure.stage == "files")

    @cached_property
    def all(self) -> tuple[str, ...]:
        """Return every figure, in the order of a row."""
        return tuple(figure.name for figure in list_task_figures(self.cutoffs))

    @property
    def headline(self) -> tuple[str, ...]:
        """Return nDCG at the largest cutoff up to 10, which summaries show; () without cutoffs.

        If all cutoffs are larger, it is the smallest of them.
        """
        return self._at("ndcg", _HEADLINE)

    @property
    def precision(self) -> tuple[str, ...]:
        """Return precision at the largest cutoff up to 5, chosen in the same way as `headline`."""
        return self._at("precision", _NARROW)

    def _at(self, name: str, limit: int) -> tuple[str, ...]:
        if not self.cutoffs:
            return ()
        return (f"{name}@{max((k for k in self.cutoffs if k <= limit), default=min(self.cutoffs))}",)


def list_figures(artifact: Artifact) -> dict[str, float]:
    """Return the known figures of an artifact by name."""
    metrics = artifact["file_level_metrics"]
    tables = {name: metrics.get(name) or {} for name in AT_CUTOFFS}
    at_cutoffs = {f"{name}@{k}": value for name, table in tables.items() for k, value in table.items()}
    stages: Mapping[Stage, Mapping[str, object]] = {
        "files": {**metrics, **at_cutoffs},
        "sizes": metrics,
        "chunks": artifact["chunk_level_metrics"],
        "probes": artifact["utilization_probes"],
        "errors": artifact["error_taxonomy"]["labels"],
        "outcome": artifact["outcome"] or {},
    }
    figures = list_task_figures(tuple(map(int, tables["ndcg"])))
    values = ((figure.name, stages[figure.stage].get(figure.name)) for figure in figures)
    return {name: float(value) for name, value in values if isinstance(value, int | float) and math.isfinite(value)}


def build_row(artifact: Artifact, names: FigureNames) -> Floats:
    """Return all figures of an artifact in the order of their names, NaN for an unknown figure."""
    known = list_figures(artifact)
    return np.array([known.get(name, math.nan) for name in names.all])


def group_columns(rows: Iterable[Floats], names: FigureNames) -> dict[str, Floats]:
    """Return the values of each figure by name, from one row per task."""
    table = np.array([*rows], dtype=np.float64).reshape(-1, len(names.all))
    return dict(zip(names.all, table.T, strict=True))
