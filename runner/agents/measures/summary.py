"""What tasks came to together: means over those that could be computed, and how many could not, and why.

It reads artifacts alone, and their order changes nothing. Knows nothing of differences, or how sure a mean is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from runner.agents.measures.figures import FIGURES, MEASURES, OUTCOMES, PROBES, SIZES, figures
from runner.agents.measures.stages import NO_GROUND_TRUTH, SCHEMA_VERSION, Artifact
from runner.agents.measures.taxonomy import LABELS, SLICES

Described = Mapping[str, float | int | None]


def summary(artifacts: Sequence[Artifact], generated_at: str) -> dict[str, Any]:
    """Fold the artifacts of a run: all of them, then by configuration, by suite and by slice; see `stages.rounded`.

    A mean comes with how many tasks it is of (`n`), their sample standard deviation (null below two) and median.
    `not_computable` counts the other tasks by reason. A slice has only tasks whose errors were classified.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "generated_at": generated_at,
        **_folded(artifacts),
        "by_configuration": _by(artifacts, lambda each: each["provenance"]["config_name"]),
        "by_suite": _by(artifacts, lambda each: each["provenance"]["benchmark"]),
        "by_slice": {name: _by(artifacts, partial(_slice, name)) for name in SLICES},
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


def _by(artifacts: Sequence[Artifact], key: Callable[[Artifact], str | None]) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[Artifact]] = {}
    for each in artifacts:
        if (name := key(each)) is not None:
            groups.setdefault(name, []).append(each)
    return {name: _folded(groups[name]) for name in sorted(groups)}


def _slice(name: str, artifact: Artifact) -> str | None:
    found: str | None = artifact["error_taxonomy"]["slices"].get(name)
    return found


def _folded(artifacts: Sequence[Artifact]) -> dict[str, Any]:
    computable = [each for each in artifacts if each["file_level_metrics"]["computable"]]
    others = Counter(each["file_level_metrics"]["reason"] for each in artifacts) - Counter({None: len(artifacts)})
    known = [figures(each) for each in artifacts]
    of = {name: described(each[name] for each in known if name in each) for name in FIGURES}
    probes = [each["utilization_probes"] for each in artifacts]
    errors = [each["error_taxonomy"]["slices"] for each in computable]
    return {
        "total_event_files": len(artifacts),
        "computable_tasks": len(computable),
        "skipped_no_ground_truth": others[NO_GROUND_TRUTH],
        "not_computable": dict(sorted(others.items())),
        "degraded_tasks": sum(bool(each["coverage"].get("degraded_reason")) for each in artifacts),
        "trace_sources": _counted(str(each["coverage"].get("trace_source") or "none") for each in artifacts),
        "chunk_capable_tasks": sum(each["chunk_level_metrics"]["resolution"] == "chunk_level" for each in artifacts),
        "file_level_aggregates": {
            **{name: of[name] for name in MEASURES},
            "_totals": {"n_tasks": len(computable), **{f"mean_{n.removeprefix('n_')}": of[n]["mean"] for n in SIZES}},
        },
        "chunk_level_aggregates": {"chunk_recall": of["chunk_recall"]},
        "utilization_aggregates": {
            **{name: of[name] for name in PROBES},
            "n_tasks_with_probes": sum(each["probe_available"] for each in probes),
            "n_tasks_with_expected_edit_probe": sum(each["expected_edit_probe_available"] for each in probes),
        },
        "error_taxonomy_aggregates": {
            **{name: of[name] for name in LABELS},
            "slice_distributions": {name: _counted(each[name] for each in errors) for name in SLICES},
        },
        "outcome_aggregates": {name: of[name] for name in OUTCOMES},
    }


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
