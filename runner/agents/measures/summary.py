"""What tasks came to together: means over those that could be computed, and how many could not, and why.

It reads artifacts alone, and their order changes nothing. Knows nothing of differences, or how sure a mean is.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from runner.agents.measures.figures import OUTCOMES, PROBES, SIZES, FigureNames, Floats, columns, row
from runner.agents.measures.matched import LOW
from runner.agents.measures.stages import NO_GROUND_TRUTH, SCHEMA_VERSION, Artifact
from runner.agents.measures.taxonomy import CATEGORY, LABELS, SLICES

FILE = "run_retrieval_summary.json"

Described = Mapping[str, float | int | None]


def summary(artifacts: Iterable[Artifact], names: FigureNames) -> dict[str, Any]:
    """Fold artifacts: all of them, then by configuration, by suite, by slice and by run; see `stages.rounded`.

    A mean comes with how many tasks it is of (`n`), their sample standard deviation (null below two) and median; of a
    run there are a few means alone. Where the gold of some measured tasks has low confidence, `without_low_confidence`
    has the same over all other tasks. `not_computable` counts the other tasks by reason. A slice has only tasks whose
    errors were classified. `generated_at` is the latest of theirs.
    """
    tasks = [_task(each, names) for each in artifacts]
    fold = partial(_folded_twice, names=names)
    return {
        "schema_version": SCHEMA_VERSION,
        "generated_at": max((each.generated_at for each in tasks), default=""),
        **fold(tasks),
        "by_configuration": _by(tasks, lambda each: each.config, fold),
        "by_suite": _by(tasks, lambda each: each.suite, fold),
        "by_slice": {name: _by(tasks, partial(_slice, name), fold) for name in SLICES},
        "by_run": _by(tasks, lambda each: each.run, partial(_few, names=names)),
    }


def described(values: Iterable[float]) -> Described:
    """Return mean, sample standard deviation, median and number of values, whatever their order."""
    column = np.sort(np.fromiter(values, np.float64))  # so that the order changes not even the last digit
    n = len(column)
    return {
        "mean": float(column.mean()) if n else None,
        "std": float(column.std(ddof=1)) if n > 1 else None,
        "median": float(np.median(column)) if n else None,
        "n": n,
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """What of an artifact enters a summary, the same words once: `slices` are those of a task that was classified."""

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
    slices: Mapping[str, str]
    figures: Floats


def _task(artifact: Artifact, names: FigureNames) -> _Task:
    provenance, coverage, probes = (artifact[part] for part in ("provenance", "coverage", "utilization_probes"))
    metrics, slices = artifact["file_level_metrics"], artifact["error_taxonomy"]["slices"]
    return _Task(
        config=sys.intern(provenance["config_name"]),
        suite=sys.intern(provenance["benchmark"]),
        run=sys.intern(provenance["run_id"]),
        generated_at=sys.intern(artifact["generated_at"]),
        reason=None if metrics["computable"] else sys.intern(metrics["reason"]),
        confidence=sys.intern(str(coverage.get("ground_truth_confidence") or "unknown")),
        source=sys.intern(str(coverage.get("trace_source") or "none")),
        degraded=bool(coverage.get("degraded_reason")),
        chunk_capable=artifact["chunk_level_metrics"]["resolution"] == "chunk_level",
        probed=probes["probe_available"],
        edits_probed=probes["expected_edit_probe_available"],
        slices={name: sys.intern(slices[name]) for name in (*SLICES, CATEGORY) if name in slices},
        figures=row(artifact, names),
    )


def _few(tasks: Sequence[_Task], names: FigureNames) -> dict[str, Any]:
    found = columns((each.figures for each in tasks), names)
    shown = ("file_recall", "mrr", "map_score", *names.headline, "context_efficiency", "reward", "cost", "seconds")
    return {
        "total_event_files": len(tasks),
        "computable_tasks": sum(each.reason is None for each in tasks),
        "degraded_tasks": sum(each.degraded for each in tasks),
        "means": {name: described(_known(found[name]))["mean"] for name in shown},
    }


def _folded_twice(tasks: Sequence[_Task], names: FigureNames) -> dict[str, Any]:
    """Fold tasks, and those of them whose gold is sure enough beside, where that makes a difference."""
    sure = [each for each in tasks if each.confidence != LOW]
    has_low = any(each.confidence == LOW and each.reason is None for each in tasks)
    return {**_folded(tasks, names), **({"without_low_confidence": _folded(sure, names)} if has_low else {})}


def _folded(tasks: Sequence[_Task], names: FigureNames) -> dict[str, Any]:
    others = Counter(each.reason for each in tasks if each.reason)
    of = {name: described(_known(column)) for name, column in columns((each.figures for each in tasks), names).items()}
    computable = [each for each in tasks if each.reason is None]
    return {
        "total_event_files": len(tasks),
        "computable_tasks": len(computable),
        "skipped_no_ground_truth": others[NO_GROUND_TRUTH],
        "not_computable": dict(sorted(others.items())),
        "degraded_tasks": sum(each.degraded for each in tasks),
        "ground_truth_confidences": _counted(each.confidence for each in computable),
        "trace_sources": _counted(each.source for each in tasks),
        "chunk_capable_tasks": sum(each.chunk_capable for each in tasks),
        "file_level_aggregates": {
            **{name: of[name] for name in names.measures},
            "_totals": {"n_tasks": len(computable), **{f"mean_{n.removeprefix('n_')}": of[n]["mean"] for n in SIZES}},
        },
        "chunk_level_aggregates": {"chunk_recall": of["chunk_recall"]},
        "utilization_aggregates": {
            **{name: of[name] for name in PROBES},
            "n_tasks_with_probes": sum(each.probed for each in tasks),
            "n_tasks_with_expected_edit_probe": sum(each.edits_probed for each in tasks),
        },
        "error_taxonomy_aggregates": {
            **{name: of[name] for name in LABELS},
            "slice_distributions": {
                name: _counted(each.slices[name] for each in computable) for name in (*SLICES, CATEGORY)
            },
        },
        "outcome_aggregates": {name: of[name] for name in OUTCOMES},
    }


def _by(
    tasks: Iterable[_Task],
    key: Callable[[_Task], str | None],
    fold: Callable[[Sequence[_Task]], dict[str, Any]],
) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[_Task]] = {}
    for each in tasks:
        if (name := key(each)) is not None:
            groups.setdefault(name, []).append(each)
    return {name: fold(groups[name]) for name in sorted(groups)}


def _slice(name: str, task: _Task) -> str | None:
    return task.slices.get(name)


def _known(column: Floats) -> Floats:
    return column[~np.isnan(column)]


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
