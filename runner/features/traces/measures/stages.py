"""Measure an agent's retrieval on one task in four stages, from the document of its events to an artifact.

The stages are files, chunks, utilisation and errors. A value that cannot be computed is null with a reason, never 0.
Ranking measures are those of retrievers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from runner.features.traces.events.records import EventDocument
from runner.features.traces.measures.rankings import rank_files
from runner.features.traces.measures.records import (
    Artifact,
    ChunkMetrics,
    CutoffMeasure,
    ErrorTaxonomy,
    FileMetrics,
    UtilizationProbes,
)
from runner.features.traces.measures.taxonomy import classify_task, count_errors
from runner.features.traces.measures.trail import Trail, build_trail
from runner.features.traces.runs.outcomes import RunOutcome
from runner.metrics.measures import expand
from runner.metrics.settings import MetricSettings

SCHEMA_VERSION = "1.1"

NO_GROUND_TRUTH, NO_TRACE, NO_CHUNKS = "no_ground_truth", "no_trace", "no_chunk_ground_truth"
"""The reasons why a stage cannot be computed."""

DIGITS = 4
"""The number of decimals in written artifacts."""

AT_CUTOFFS: Mapping[CutoffMeasure, str] = {"precision": "P", "recall": "R", "f1": "F1", "ndcg": "nDCG"}
"""The measures that an artifact has at each cutoff, with their names elsewhere."""


def build_artifact(
    document: EventDocument, outcome: RunOutcome | None = None, cutoffs: Sequence[int] = MetricSettings.k_values
) -> Artifact:
    """Compute all stages of a document of events in full precision; see `round_numbers`.

    Ranking measures are taken at each of the `cutoffs`. `outcome` is how the task ended, if known. `generated_at` is
    that of the document, so that the same document gives the same artifact.
    """
    trail = build_trail(document)
    return {
        "schema_version": SCHEMA_VERSION,
        "generated_at": document["generated_at"],
        "provenance": document["provenance"],
        "coverage": document["coverage"],
        "event_summary": document.get("summary", {}),
        "outcome": outcome,
        "file_level_metrics": measure_files(trail, cutoffs),
        "chunk_level_metrics": measure_chunks(trail),
        "utilization_probes": measure_utilization(trail),
        "error_taxonomy": classify_errors(trail),
        "ground_truth_files": list(trail.gold),
        "retrieved_files": list(trail.retrieved),
    }


def find_obstacle(trail: Trail) -> str | None:
    """Return why the retrieval of a task cannot be measured; None if it can."""
    if not trail.gold:
        return NO_GROUND_TRUTH
    return None if trail.has_trace else NO_TRACE


def measure_files(trail: Trail, cutoffs: Sequence[int]) -> FileMetrics:
    """Measure the retrieved files, in order of first sight, against the gold files (stage 1).

    `context_efficiency` is null if nothing was retrieved; `ttfr_...` (time to the first relevant file) is null if no
    gold file was retrieved, or the trace has no clock or token counts.
    """
    if reason := find_obstacle(trail):
        return {"computable": False, "reason": reason}
    measures = (*expand(AT_CUTOFFS.values(), cutoffs), *expand(("RR", "AP"), ()))
    scores = rank_files([trail.retrieved], [trail.gold]).score(measures)
    value = {str(measure): float(scores.of(measure)[0]) for measure in measures}
    table = {name: {str(k): value[f"{symbol}@{k}"] for k in cutoffs} for name, symbol in AT_CUTOFFS.items()}
    overlap, first = len({*trail.gold} & {*trail.retrieved}), trail.first_gold
    return {
        "computable": True,
        "reason": None,
        "precision": table["precision"],
        "recall": table["recall"],
        "f1": table["f1"],
        "ndcg": table["ndcg"],
        "mrr": value["RR"],
        "map_score": value["AP"],
        "file_recall": overlap / len(trail.gold),
        "context_efficiency": overlap / len(trail.retrieved) if trail.retrieved else None,
        "n_retrieved": len(trail.retrieved),
        "n_ground_truth": len(trail.gold),
        "n_overlap": overlap,
        "first_gt_hit_step": first["step_index"] if first else None,
        "ttfr_seconds": first.get("elapsed_seconds") if first else None,
        "ttfr_tokens": first.get("cumulative_tokens") if first else None,
    }


def measure_chunks(trail: Trail) -> ChunkMetrics:
    """Count the gold line ranges whose file was seen, and their lines that a file reader showed (stage 2).

    A line counts once, and only if it was shown before the agent wrote its file. `reads_without_lines` counts the reads
    of files with gold lines whose lines are unknown: with any, `line_recall` is a lower bound.
    """
    reason = NO_CHUNKS if not trail.chunks else None if trail.has_trace else NO_TRACE
    seen, n = {*trail.retrieved}, len(trail.chunks)
    hit = sum(chunk.file in seen for chunk in trail.chunks)
    gold = _merge_ranges((chunk.file, chunk.start, chunk.end) for chunk in trail.chunks)
    shown = _merge_ranges((lines.file, lines.start, lines.end) for lines in trail.shown_unchanged)
    overlaps = (
        min(end, last) - max(start, first) + 1
        for file, start, end in gold
        for other, first, last in shown
        if other == file
    )
    lines, read = sum(end - start + 1 for _, start, end in gold), sum(max(0, n) for n in overlaps)
    return {
        "resolution": "chunk_level" if trail.chunks else "file_level_only",
        "validity": "file_match_only" if trail.chunks else "unsupported",
        "computable": reason is None,
        "reason": reason,
        "chunk_recall": None if reason else hit / n,
        "chunks_total": n,
        "chunks_hit": None if reason else hit,
        "line_recall": None if reason else read / lines,
        "lines_total": int(lines),
        "lines_hit": None if reason else int(read),
        "reads_without_lines": None if reason else trail.count_unknown_reads({file for file, *_ in gold}),
    }


def _merge_ranges(ranges: Iterable[tuple[str, int, float]]) -> list[tuple[str, int, float]]:
    """Return ranges of lines as the fewest that do not overlap, in order."""
    merged: list[tuple[str, int, float]] = []
    for file, start, end in sorted(ranges):
        if merged and merged[-1][0] == file and start <= merged[-1][2] + 1:
            merged[-1] = (file, merged[-1][1], max(end, merged[-1][2]))
        else:
            merged.append((file, start, end))
    return merged


def measure_utilization(trail: Trail) -> UtilizationProbes:
    """Measure how the gold files were used (stage 3): which were read, which written, which read before written.

    The write proxy and the ratio are null if nothing was written; the overlap with the files to change is then 0.
    """
    reason = find_obstacle(trail)
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
        "files_read": len(read) if trail.has_trace else None,
        "files_read_relevant": len(read & gold) if known else None,
        "files_written": len(written) if trail.has_trace else None,
        "files_written_relevant": len(written & gold) if known else None,
        "files_written_expected_edit": len(written & edits) if known and edits else None,
    }


def classify_errors(trail: Trail) -> ErrorTaxonomy:
    """Count the errors by label, and classify the task (stage 4)."""
    if reason := find_obstacle(trail):
        return {"computable": False, "reason": reason, "labels": {}, "slices": {}}
    return {"computable": True, "reason": None, "labels": count_errors(trail), "slices": classify_task(trail)}


def round_numbers(value: object) -> object:
    """Return a JSON value with every number rounded, for output only; nothing is computed from it."""
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: round_numbers(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [round_numbers(element) for element in value]
    return value
