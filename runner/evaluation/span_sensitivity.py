"""Measures rankings again with other thresholds for the share of a gold span that a chunk must cover."""

from __future__ import annotations

from dataclasses import replace

from retrievers.base import Rankings
from runner.datasets.base import Dataset
from runner.metrics.measures import Measure
from runner.metrics.scores import Grader

THRESHOLDS = (0.1, 0.25, 0.5, 0.75, 1.0)


def measure_by_threshold(dataset: Dataset, rankings: Rankings, measure: Measure) -> dict[str, float]:
    """Return the mean of a measure at several thresholds, {} if gold is not spans or the measure counts words."""
    if dataset.spans is None or measure.needs_spans:
        return {}
    means: dict[str, float] = {}
    for threshold in THRESHOLDS:
        judgments, unknown = replace(dataset.spans, threshold=threshold).judge(dataset.corpus)
        n = len(dataset.corpus)
        grader = Grader(judgments, len(dataset.queries), n, None, {name: n + i for i, name in enumerate(unknown)})
        scores = grader.score(rankings, [measure])
        means[f"{measure} with span_threshold={threshold:g}"] = scores.means()[str(measure)]
    return means
