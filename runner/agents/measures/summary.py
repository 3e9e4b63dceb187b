"""Summarise tasks: means over those that could be measured, and how many could not, with reasons.

The input is artifacts, in any order.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import TypedDict

from runner.agents.measures.figures import FigureNames, Floats, build_row, group_columns
from runner.agents.measures.matching import LOW
from runner.agents.measures.records import Artifact
from runner.agents.measures.stages import NO_GROUND_TRUTH, SCHEMA_VERSION
from runner.agents.measures.task_figures import Stage, list_names
from runner.agents.measures.taxonomy import CATEGORY, SLICES

FILE = "run_retrieval_summary.json"

SliceLabels = Mapping[str, str]


class ValueSummary(TypedDict):
    """The mean, sample standard deviation (null below two values) and median of some values, and their number."""

    mean: float | None
    std: float | None
    median: float | None
    n: int


@dataclass(frozen=True, eq=False)
class Fold:
    """A summary of some tasks: how many could be measured, and the values of each figure over those that have it.

    `reasons` counts the other tasks by reason. `without_low_confidence` summarises the tasks whose gold does not have
    low confidence; None if no measured task has such gold.
    """

    n_tasks: int
    n_measured: int
    n_degraded: int
    n_chunk_capable: int
    n_probed: int
    n_edits_probed: int
    reasons: Mapping[str, int]
    confidences: Mapping[str, int]
    sources: Mapping[str, int]
    slices: Mapping[str, Mapping[str, int]]
    figures: Mapping[str, ValueSummary]
    measures: Sequence[str]
    without_low_confidence: Fold | None = None

    def to_json(self) -> dict[str, object]:
        """Return the summary with the keys of the published evaluation."""
        totals = {f"mean_{name.removeprefix('n_')}": self.figures[name]["mean"] for name in list_names("sizes")}
        content: dict[str, object] = {
            "total_event_files": self.n_tasks,
            "computable_tasks": self.n_measured,
            "skipped_no_ground_truth": self.reasons.get(NO_GROUND_TRUTH, 0),
            "not_computable": self.reasons,
            "degraded_tasks": self.n_degraded,
            "ground_truth_confidences": self.confidences,
            "trace_sources": self.sources,
            "chunk_capable_tasks": self.n_chunk_capable,
            "file_level_aggregates": {
                **{name: self.figures[name] for name in self.measures},
                "_totals": {"n_tasks": self.n_measured, **totals},
            },
            "chunk_level_aggregates": self._select("chunks"),
            "utilization_aggregates": {
                **self._select("probes"),
                "n_tasks_with_probes": self.n_probed,
                "n_tasks_with_expected_edit_probe": self.n_edits_probed,
            },
            "error_taxonomy_aggregates": {**self._select("errors"), "slice_distributions": self.slices},
            "outcome_aggregates": self._select("outcome"),
        }
        if self.without_low_confidence:
            content["without_low_confidence"] = self.without_low_confidence.to_json()
        return content

    def _select(self, stage: Stage) -> dict[str, ValueSummary]:
        return {name: self.figures[name] for name in list_names(stage)}


@dataclass(frozen=True, eq=False)
class RunSummary:
    """A summary of all tasks, and of those of each configuration, suite, slice and run.

    A slice contains only tasks whose errors were classified. `generated_at` is the latest time of the artifacts.
    """

    generated_at: str
    whole: Fold
    by_configuration: Mapping[str, Fold]
    by_suite: Mapping[str, Fold]
    by_slice: Mapping[str, Mapping[str, Fold]]
    by_run: Mapping[str, Fold]
    headline: Sequence[str]

    def to_json(self) -> dict[str, object]:
        """Return the summary with the keys of the published evaluation; a run has only a few means."""
        return {
            "schema_version": SCHEMA_VERSION,
            "generated_at": self.generated_at,
            **self.whole.to_json(),
            "by_configuration": _to_json(self.by_configuration),
            "by_suite": _to_json(self.by_suite),
            "by_slice": {name: _to_json(folds) for name, folds in self.by_slice.items()},
            "by_run": {name: self._means(fold) for name, fold in self.by_run.items()},
        }

    def _means(self, fold: Fold) -> dict[str, object]:
        names = ("file_recall", "mrr", "map_score", *self.headline, "context_efficiency", "reward", "cost", "seconds")
        return {
            "total_event_files": fold.n_tasks,
            "computable_tasks": fold.n_measured,
            "degraded_tasks": fold.n_degraded,
            "means": {name: fold.figures[name]["mean"] for name in names},
        }


def summarise_runs(artifacts: Iterable[Artifact], names: FigureNames) -> RunSummary:
    """Summarise artifacts: all of them, then by configuration, suite, slice and run; see `stages.round_numbers`."""
    tasks = [_build_task(artifact, names) for artifact in artifacts]
    return RunSummary(
        generated_at=max((task.generated_at for task in tasks), default=""),
        whole=_fold(tasks, names),
        by_configuration=_fold_groups(tasks, names, lambda task: task.config),
        by_suite=_fold_groups(tasks, names, lambda task: task.suite),
        by_slice={name: _fold_groups(tasks, names, _slice_getter(name)) for name in SLICES},
        by_run=_fold_groups(tasks, names, lambda task: task.run),
        headline=names.headline,
    )


def summarise_values(values: Iterable[float]) -> ValueSummary:
    """Return the mean, sample standard deviation, median and number of values; their order does not matter."""
    column = np.sort(np.fromiter(values, np.float64))  # not even the last digit may depend on the order
    n = len(column)
    return {
        "mean": float(column.mean()) if n else None,
        "std": float(column.std(ddof=1)) if n > 1 else None,
        "median": float(np.median(column)) if n else None,
        "n": n,
    }


@dataclass(frozen=True, slots=True, eq=False)
class _SummaryTask:
    """The part of an artifact that enters a summary; `slices` is empty if the task was not classified."""

    config: str
    suite: str
    run: str
    generated_at: str
    reason: str | None
    confidence: str
    source: str
    degraded: bool
    chunk_capable: bool
    probed: bool
    edits_probed: bool
    slices: SliceLabels
    figures: Floats


def _build_task(artifact: Artifact, names: FigureNames) -> _SummaryTask:
    """Return the summary's part of an artifact; equal strings share one object in memory."""
    provenance, coverage, probes = artifact["provenance"], artifact["coverage"], artifact["utilization_probes"]
    metrics, slices = artifact["file_level_metrics"], artifact["error_taxonomy"]["slices"]
    return _SummaryTask(
        config=sys.intern(provenance["config_name"]),
        suite=sys.intern(provenance["benchmark"]),
        run=sys.intern(provenance["run_id"]),
        generated_at=sys.intern(artifact["generated_at"]),
        reason=sys.intern(metrics["reason"]) if metrics["reason"] else None,
        confidence=sys.intern(coverage.get("ground_truth_confidence") or "unknown"),
        source=sys.intern(coverage["trace_source"] or "none"),
        degraded=bool(coverage["degraded_reason"]),
        chunk_capable=artifact["chunk_level_metrics"]["resolution"] == "chunk_level",
        probed=probes["probe_available"],
        edits_probed=probes["expected_edit_probe_available"],
        slices={name: sys.intern(label) for name in (*SLICES, CATEGORY) if (label := slices.get(name))},
        figures=build_row(artifact, names),
    )


def _fold(tasks: Sequence[_SummaryTask], names: FigureNames) -> Fold:
    has_low = any(task.confidence == LOW and task.reason is None for task in tasks)
    others = _fold_all([task for task in tasks if task.confidence != LOW], names) if has_low else None
    return _fold_all(tasks, names, others)


def _fold_all(tasks: Sequence[_SummaryTask], names: FigureNames, without_low_confidence: Fold | None = None) -> Fold:
    columns = group_columns((task.figures for task in tasks), names)
    measured = [task for task in tasks if task.reason is None]
    return Fold(
        n_tasks=len(tasks),
        n_measured=len(measured),
        n_degraded=sum(task.degraded for task in tasks),
        n_chunk_capable=sum(task.chunk_capable for task in tasks),
        n_probed=sum(task.probed for task in tasks),
        n_edits_probed=sum(task.edits_probed for task in tasks),
        reasons=_count(task.reason for task in tasks if task.reason),
        confidences=_count(task.confidence for task in measured),
        sources=_count(task.source for task in tasks),
        slices={name: _count(task.slices[name] for task in measured) for name in (*SLICES, CATEGORY)},
        figures={name: summarise_values(column[~np.isnan(column)]) for name, column in columns.items()},
        measures=names.measures,
        without_low_confidence=without_low_confidence,
    )


def _fold_groups(
    tasks: Iterable[_SummaryTask], names: FigureNames, key: Callable[[_SummaryTask], str | None]
) -> dict[str, Fold]:
    groups: dict[str, list[_SummaryTask]] = {}
    for task in tasks:
        if (name := key(task)) is not None:
            groups.setdefault(name, []).append(task)
    return {name: _fold(groups[name], names) for name in sorted(groups)}


def _slice_getter(name: str) -> Callable[[_SummaryTask], str | None]:
    return lambda task: task.slices.get(name)


def _count(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _to_json(folds: Mapping[str, Fold]) -> dict[str, object]:
    return {name: fold.to_json() for name, fold in folds.items()}
