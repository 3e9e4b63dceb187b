"""Measures rankings again with other thresholds for the share of a gold span that a chunk must cover."""

from __future__ import annotations

from dataclasses import replace

from retrievers.base import Rankings
from runner.datasets.dataset import Dataset
from runner.metrics.measures import Measure
from runner.metrics.scores import Grader

THRESHOLDS = (0.1, 0.25, 0.5, 0.75, 1.0)


def measure_by_threshold(dataset: Dataset, rankings: Rankings, measure: Measure) -> dict[str, float]:
    """Return the mean of a measure at several thresholds, {} if gold is not spans or the measure counts words."""
    spans = dataset.judgments.spans
    if spans is None or measure.needs_spans:
        return {}
    means: dict[str, float] = {}
    for threshold in THRESHOLDS:
        judged = replace(dataset, judgments=replace(spans, threshold=threshold).judge(dataset.corpus))
        grader = Grader(judged.judgments, len(dataset.queries), len(dataset.corpus), None, judged.judged_ids)
        scores = grader.score(rankings, [measure])
        means[f"{measure} with span_threshold={threshold:g}"] = scores.means()[str(measure)]
    return means
