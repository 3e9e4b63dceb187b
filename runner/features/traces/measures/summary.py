"""Summarise traces: means over the tasks that could be measured, and how many traces could not, with reasons.

The input is artifacts, in any order. A task with several traces counts once, with the mean of their values.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from runner.features.traces.measures.figures import FigureNames, Floats, build_row, group_columns
from runner.features.traces.measures.records import Artifact
from runner.features.traces.measures.stages import NO_GROUND_TRUTH, SCHEMA_VERSION
from runner.features.traces.measures.task_figures import Stage, list_names
from runner.features.traces.measures.taxonomy import CATEGORY, SLICES
from runner.features.traces.measures.trials import LOW

FILE = "run_retrieval_summary.json"

SliceLabels = Mapping[str, str]


class ValueSummary(TypedDict):
    """The mean, sample standard deviation (null below two values) and median of some values, and their number."""

    mean: float | None
    std: float | None
    median: float | None
    n: int


class FigureSummary(ValueSummary):
    """The same of a figure's values by task, each the mean of the task's traces that have it; `traces` counts these."""

    traces: int


@dataclass(frozen=True, eq=False)
class Fold:
    """A summary of some traces: how many could be measured, and the values of each figure over their tasks.

    `n_tasks` counts the distinct tasks of the measured traces. `reasons` counts the other traces by reason.
    `without_low_confidence` summarises the traces whose gold does not have low confidence; None if no measured trace
    has such gold.
    """

    n_traces: int
    n_measured: int
    n_tasks: int
    n_degraded: int
    n_chunk_capable: int
    n_probed: int
    n_edits_probed: int
    reasons: Mapping[str, int]
    confidences: Mapping[str, int]
    sources: Mapping[str, int]
    slices: Mapping[str, Mapping[str, int]]
    figures: Mapping[str, FigureSummary]
    measures: Sequence[str]
    without_low_confidence: Fold | None = None

    def to_json(self) -> dict[str, object]:
        """Return the summary with the keys of the published evaluation."""
        totals = {f"mean_{name.removeprefix('n_')}": self.figures[name]["mean"] for name in list_names("sizes")}
        content: dict[str, object] = {
            "total_event_files": self.n_traces,
            "computable_tasks": self.n_measured,
            "distinct_tasks": self.n_tasks,
            "skipped_no_ground_truth": self.reasons.get(NO_GROUND_TRUTH, 0),
            "not_computable": self.reasons,
            "degraded_tasks": self.n_degraded,
            "ground_truth_confidences": self.confidences,
            "trace_sources": self.sources,
            "chunk_capable_tasks": self.n_chunk_capable,
            "file_level_aggregates": {
                **{name: self.figures[name] for name in self.measures},
                "_totals": {"n_tasks": self.n_tasks, **totals},
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

    def _select(self, stage: Stage) -> dict[str, FigureSummary]:
        return {name: self.figures[name] for name in list_names(stage)}


@dataclass(frozen=True, eq=False)
class RunSummary:
    """A summary of all traces, and of those of each configuration, suite, slice and run.

    A slice contains only traces whose errors were classified. `generated_at` is the latest time of the artifacts.
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
            "total_event_files": fold.n_traces,
            "computable_tasks": fold.n_measured,
            "distinct_tasks": fold.n_tasks,
            "degraded_tasks": fold.n_degraded,
            "means": {name: fold.figures[name]["mean"] for name in names},
        }


def summarise_runs(artifacts: Iterable[Artifact], names: FigureNames) -> RunSummary:
    """Summarise artifacts: all of them, then by configuration, suite, slice and run; see `stages.round_numbers`."""
    traces = [_build_trace(artifact, names) for artifact in artifacts]
    return RunSummary(
        generated_at=max((trace.generated_at for trace in traces), default=""),
        whole=_fold(traces, names),
        by_configuration=_fold_groups(traces, names, lambda trace: trace.config),
        by_suite=_fold_groups(traces, names, lambda trace: trace.suite),
        by_slice={name: _fold_groups(traces, names, _slice_getter(name)) for name in SLICES},
        by_run=_fold_groups(traces, names, lambda trace: trace.run),
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
class _SummaryTrace:
    """The part of an artifact that enters a summary; `slices` is empty if the trace was not classified."""

    task: str
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


def _build_trace(artifact: Artifact, names: FigureNames) -> _SummaryTrace:
    """Return the summary's part of an artifact; equal strings share one object in memory."""
    provenance, coverage, probes = artifact["provenance"], artifact["coverage"], artifact["utilization_probes"]
    metrics, slices = artifact["file_level_metrics"], artifact["error_taxonomy"]["slices"]
    return _SummaryTrace(
        task=sys.intern(provenance["task_name"]),
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


def _fold(traces: Sequence[_SummaryTrace], names: FigureNames) -> Fold:
    has_low = any(trace.confidence == LOW and trace.reason is None for trace in traces)
    others = _fold_all([trace for trace in traces if trace.confidence != LOW], names) if has_low else None
    return _fold_all(traces, names, others)


def _fold_all(traces: Sequence[_SummaryTrace], names: FigureNames, without_low_confidence: Fold | None = None) -> Fold:
    tasks = np.unique([trace.task for trace in traces], return_inverse=True)[1]
    columns = group_columns((trace.figures for trace in traces), names)
    measured = [trace for trace in traces if trace.reason is None]
    return Fold(
        n_traces=len(traces),
        n_measured=len(measured),
        n_tasks=len({trace.task for trace in measured}),
        n_degraded=sum(trace.degraded for trace in traces),
        n_chunk_capable=sum(trace.chunk_capable for trace in traces),
        n_probed=sum(trace.probed for trace in traces),
        n_edits_probed=sum(trace.edits_probed for trace in traces),
        reasons=_count(trace.reason for trace in traces if trace.reason),
        confidences=_count(trace.confidence for trace in measured),
        sources=_count(trace.source for trace in traces),
        slices={name: _count(trace.slices[name] for trace in measured) for name in (*SLICES, CATEGORY)},
        figures={name: _summarise_figure(column, tasks) for name, column in columns.items()},
        measures=names.measures,
        without_low_confidence=without_low_confidence,
    )


def _summarise_figure(values: Floats, tasks: NDArray[np.intp]) -> FigureSummary:
    """Summarise the means by task of a figure, given its value and the number of the task of each trace."""
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.lexsort((values[known], tasks[known]))]  # not even the last digit may depend on the order
    _, starts, counts = np.unique(tasks[order], return_index=True, return_counts=True)
    means = np.add.reduceat(values[order], starts) / counts if len(order) else values[order]
    return {**summarise_values(means), "traces": len(order)}


def _fold_groups(
    traces: Iterable[_SummaryTrace], names: FigureNames, key: Callable[[_SummaryTrace], str | None]
) -> dict[str, Fold]:
    groups: dict[str, list[_SummaryTrace]] = {}
    for trace in traces:
        if (name := key(trace)) is not None:
            groups.setdefault(name, []).append(trace)
    return {name: _fold(groups[name], names) for name in sorted(groups)}


def _slice_getter(name: str) -> Callable[[_SummaryTrace], str | None]:
    return lambda trace: trace.slices.get(name)


def _count(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _to_json(folds: Mapping[str, Fold]) -> dict[str, object]:
    return {name: fold.to_json() for name, fold in folds.items()}
