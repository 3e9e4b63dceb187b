"""Documents of events, written out, for the tests of what is made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.features.traces.events.document import match_document
from runner.features.traces.measures.stages import build_artifact
from runner.features.traces.runs.outcomes import RunOutcome

CATEGORIES = (
    "file_read",
    "file_search",
    "symbol_navigation",
    "code_search",
    "commit_search",
    "deep_search",
    "file_write",
    "other",
)

WHEN = "2026-01-01T00:00:00+00:00"


def event(category: str, *files: str, **others: Any) -> dict[str, Any]:
    return {
        "timestamp": None,
        "tool_name": "Tool",
        "tool_category": category,
        "is_mcp": False,
        "target_files": list(files),
        "cumulative_tokens": None,
        "elapsed_seconds": None,
    } | others


def read(*files: str, **others: Any) -> dict[str, Any]:
    return event("file_read", *files, **others)


def write(*files: str, **others: Any) -> dict[str, Any]:
    return event("file_write", *files, **others)


def search(*files: str, **others: Any) -> dict[str, Any]:
    return event("code_search", *files, **others)


def document(
    events: Sequence[Mapping[str, Any]] = (),
    gold: Sequence[str] = (),
    *,
    edits: Sequence[str] | None = None,
    chunks: Sequence[str] = (),
    source: str | None = "trajectory",
    **provenance: Any,
) -> dict[str, Any]:
    """Return a document; its steps are numbered, and an event matches the gold files that it names as they are."""
    truth: dict[str, Any] = {"files": list(gold)}
    truth |= {} if edits is None else {"expected_edit_files": list(edits)}
    truth |= {"chunks": [{"file": file, "line_start": 1, "line_end": 9} for file in chunks]} if chunks else {}
    matched = [[name for name in gold if name in each["target_files"]] for each in events]
    made = {
        "schema_version": "1.1",
        "generated_at": WHEN,
        "provenance": {
            "run_id": "run", "task_name": "task", "config_name": "baseline", "benchmark": "suite", **provenance
        },
        "coverage": {
            "has_trajectory": source is not None,
            "has_transcript": False,
            "has_ground_truth": bool(gold),
            "has_chunk_ground_truth": bool(chunks),
            "trace_source": source,
            "degraded_reason": None if source else "no trajectory and no transcript",
        },
        "ground_truth": truth,
        "events": [
            {"step_index": step, **each, "hits_ground_truth": bool(hits), "matched_ground_truth_files": hits}
            for step, (each, hits) in enumerate(zip(events, matched, strict=True))
        ],
    }  # fmt: skip
    return match_document(made)


def done(task: str, *seen: str, gold: Sequence[str] = ("a.py", "b.py"), **said: Any) -> dict[str, Any]:
    """Return the artifact of a task whose agent read files; `said` is of its outcome, or else of its provenance."""
    outcome = {name: said.pop(name) for name in list(said) if name in RunOutcome.__annotations__}
    return build_artifact(
        document([read(*seen)], gold, task_name=task, **said), RunOutcome(**outcome) if outcome else None
    )
