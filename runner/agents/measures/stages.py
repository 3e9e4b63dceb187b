"""What an agent's retrieval on one task was worth, in five stages: from the document of its events to an artifact.

Files, chunks, utilisation, errors, and the artifact that holds them; the keys are those of the published evaluation
of retrieval by code agents (CodeScaleBench, "Retrieval Evaluation Specification", version 1). What cannot be computed
is null with a reason, never 0. Ranking measures are those of retrievers. Knows nothing of traces, or of other tasks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from runner.agents.long_json import Lazy
from runner.agents.measures.rankings import ranked
from runner.agents.measures.taxonomy import labels, slices
from runner.agents.measures.trail import Trail, trail_of
from runner.agents.runs.outcomes import Outcome
from runner.metrics.measures import expand
from runner.metrics.settings import MetricSettings

SCHEMA_VERSION = "1.1"

NO_GROUND_TRUTH, NO_TRACE, NO_CHUNKS = "no_ground_truth", "no_trace", "no_chunk_ground_truth"
"""Why a stage cannot be computed."""

DIGITS = 4
"""How many decimals an artifact is written with."""

AT_CUTOFFS: Mapping[str, str] = {"precision": "P", "recall": "R", "f1": "F1", "ndcg": "nDCG"}
"""The measures that an artifact has at each cutoff, and what they are called elsewhere."""

_WHOLE: Mapping[str, str] = {"mrr": "RR", "map_score": "AP"}

Artifact = Mapping[str, Any]
"""What is known of one task of one configuration. Every summary, comparison and report reads it and nothing else."""


def artifact(
    document: Mapping[str, Any], outcome: Outcome | None = None, cutoffs: Sequence[int] = MetricSettings.k_values
) -> dict[str, Any]:
    """Compute all stages of a document of events, in full precision: see `rounded`.

    Measures of the top of the ranking are taken at each of the `cutoffs`. `outcome` is how the task ended, where that
    is known. `generated_at` is the document's, so that the same document gives the same artifact.
    """
    trail = trail_of(document)
    return {
        "schema_version": SCHEMA_VERSION,
        "generated_at": document["generated_at"],
        "provenance": dict(document["provenance"]),
        "coverage": dict(document["coverage"]),
        "event_summary": dict(document.get("summary") or {}),
        "outcome": asdict(outcome) if outcome else None,
        "file_level_metrics": file_level(trail, cutoffs),
        "chunk_level_metrics": chunk_level(trail),
        "utilization_probes": utilization(trail),
        "error_taxonomy": taxonomy(trail),
        "ground_truth_files": list(trail.gold),
        "retrieved_files": list(trail.retrieved),
    }


def why_not(trail: Trail) -> str | None:
    """Return why nothing can be said of what a task's agent retrieved; None where something can."""
    if not trail.gold:
        return NO_GROUND_TRUTH
    return None if trail.traced else NO_TRACE


def file_level(trail: Trail, cutoffs: Sequence[int]) -> dict[str, Any]:
    """Measure the files retrieved, in order of first sight, against the gold ones (stage 1).

    `context_efficiency` is null where nothing was retrieved; `ttfr_...` (time to the first relevant file) where no
    gold was, or the trace has no clock, or no token count.
    """
    if reason := why_not(trail):
        return {"computable": False, "reason": reason}
    measures = (*expand(AT_CUTOFFS.values(), cutoffs), *expand(_WHOLE.values(), ()))
    scores = ranked([trail.retrieved], [trail.gold]).scores(measures)
    value = {str(measure): float(scores.of(measure)[0]) for measure in measures}
    overlap, first = len({*trail.gold} & {*trail.retrieved}), trail.first_gold
    return {
        "computable": True,
        "reason": None,
        **{key: {str(k): value[f"{name}@{k}"] for k in cutoffs} for key, name in AT_CUTOFFS.items()},
        **{key: value[name] for key, name in _WHOLE.items()},
        "file_recall": overlap / len(trail.gold),
        "context_efficiency": overlap / len(trail.retrieved) if trail.retrieved else None,
        "n_retrieved": len(trail.retrieved),
        "n_ground_truth": len(trail.gold),
        "n_overlap": overlap,
        "first_gt_hit_step": first.get("step_index") if first else None,
        "ttfr_seconds": first.get("elapsed_seconds") if first else None,
        "ttfr_tokens": first.get("cumulative_tokens") if first else None,
    }


def chunk_level(trail: Trail) -> dict[str, Any]:
    """Count the gold line ranges whose file was seen (stage 2): what lines of it were, no event tells."""
    reason = NO_CHUNKS if not trail.chunks else None if trail.traced else NO_TRACE
    seen, n = {*trail.retrieved}, len(trail.chunks)
    hit = sum(file in seen for file in trail.chunks)
    return {
        "resolution": "chunk_level" if trail.chunks else "file_level_only",
        "validity": "file_match_only" if trail.chunks else "unsupported",
        "computable": reason is None,
        "reason": reason,
        "chunk_recall": None if reason else hit / n,
        "chunks_total": n,
        "chunks_hit": None if reason else hit,
    }


def utilization(trail: Trail) -> dict[str, Any]:
    """Measure what use was made of the gold files: which were read, which written, what was read before it was written.

    Stage 3. The write proxy and the ratio are null where nothing was written; the overlap with the files that are to
    be edited is then 0, which it is.
    """
    reason = why_not(trail)
    gold, edits = {*trail.gold}, {*trail.edits}
    read, written = {*trail.read}, {*trail.written}
    known = reason is None
    prepared = sum(trail.read.get(file, math.inf) < event for file, event in trail.written.items())
    return {
        "probe_available": bool(trail.gold),
        "reason": reason,
        "util_read_overlap_with_relevant_files": len(read & gold) / len(gold) if known else None,
        "util_write_overlap_with_relevant_files_proxy": len(written & gold) / len(gold) if known and written else None,
        "util_write_overlap_with_expected_edit_files": len(written & edits) / len(edits) if known and edits else None,
        "util_read_before_write_ratio": prepared / len(written) if known and written else None,
        "expected_edit_probe_available": bool(trail.gold and edits),
        "expected_edit_probe_reason": reason or (None if edits else "no_expected_edit_files"),
        "files_read": len(read) if trail.traced else None,
        "files_read_relevant": len(read & gold) if known else None,
        "files_written": len(written) if trail.traced else None,
        "files_written_relevant": len(written & gold) if known else None,
        "files_written_expected_edit": len(written & edits) if known and edits else None,
    }


def taxonomy(trail: Trail) -> dict[str, Any]:
    """Count the errors by label, and say what slice the task is in (stage 4)."""
    if reason := why_not(trail):
        return {"computable": False, "reason": reason, "labels": {}, "slices": {}}
    return {"computable": True, "reason": None, "labels": labels(trail), "slices": slices(trail)}


def rounded(value: Any) -> Any:  # noqa: ANN401 (any JSON)
    """Return what JSON may hold with every number rounded: what is written, and nothing that is computed with."""
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    if isinstance(value, Lazy):
        return Lazy(lambda: map(rounded, value))
    return value
