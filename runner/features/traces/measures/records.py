"""The measures of one task in one configuration as typed records: JSON objects whose keys and types mypy checks.

The keys are those of the published evaluation of retrieval by code agents (CodeScaleBench, "Retrieval Evaluation
Specification", version 1).
"""

from __future__ import annotations

from typing import Literal, Required

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from runner.features.traces.events.records import CoverageRecord, EventSummary, ProvenanceRecord
from runner.features.traces.runs.outcomes import RunOutcome

CutoffMeasure = Literal["precision", "recall", "f1", "ndcg"]


class FileMetrics(TypedDict, total=False):
    """How well the retrieved files match the gold ones (stage 1); without values if `computable` is false."""

    computable: Required[bool]
    reason: Required[str | None]
    precision: dict[str, float]
    recall: dict[str, float]
    f1: dict[str, float]
    ndcg: dict[str, float]
    mrr: float
    map_score: float
    file_recall: float
    context_efficiency: float | None
    n_retrieved: int
    n_ground_truth: int
    n_overlap: int
    first_gt_hit_step: int | None
    ttfr_seconds: float | None
    ttfr_tokens: int | None


class ChunkMetrics(TypedDict):
    """How many of the gold line ranges lie in files that were seen, and how many of their lines were read (stage 2)."""

    resolution: Literal["chunk_level", "file_level_only"]
    validity: Literal["file_match_only", "unsupported"]
    computable: bool
    reason: str | None
    chunk_recall: float | None
    chunks_total: int
    chunks_hit: int | None
    line_recall: float | None
    lines_total: int
    lines_hit: int | None
    reads_without_lines: int | None


class UtilizationProbes(TypedDict):
    """How the agent used the gold files (stage 3)."""

    probe_available: bool
    reason: str | None
    util_read_overlap_with_relevant_files: float | None
    util_write_overlap_with_relevant_files_proxy: float | None
    util_write_overlap_with_expected_edit_files: float | None
    util_read_before_write_ratio: float | None
    expected_edit_probe_available: bool
    expected_edit_probe_reason: str | None
    files_read: int | None
    files_read_relevant: int | None
    files_written: int | None
    files_written_relevant: int | None
    files_written_expected_edit: int | None


class TaskSlices(TypedDict, total=False):
    """The slices that a task belongs to; empty if its errors could not be classified."""

    candidate_set_size: Literal["small", "medium", "large"]
    candidate_set_count: int
    dominant_retrieval_category: str
    evidence_type: Literal["mcp", "local"]


class ErrorTaxonomy(TypedDict):
    """The errors of a task, counted by label (stage 4)."""

    computable: bool
    reason: str | None
    labels: dict[str, int]
    slices: TaskSlices


class Artifact(TypedDict):
    """All data about one task in one configuration; every summary, comparison and report reads only this."""

    schema_version: str
    generated_at: str
    provenance: ProvenanceRecord
    coverage: CoverageRecord
    event_summary: EventSummary
    outcome: RunOutcome | None
    file_level_metrics: FileMetrics
    chunk_level_metrics: ChunkMetrics
    utilization_probes: UtilizationProbes
    error_taxonomy: ErrorTaxonomy
    ground_truth_files: list[str]
    retrieved_files: list[str]


def json_schema() -> dict[str, object]:
    """Return the JSON schema of an artifact."""
    return TypeAdapter(Artifact).json_schema()
