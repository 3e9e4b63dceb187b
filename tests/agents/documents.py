"""Documents of events for the tests of what is made of them: written out, or drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from runner.agents.events.document import match_document
from runner.agents.measures.stages import build_artifact
from runner.agents.runs.outcomes import RunOutcome

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


FILES = (
    "a.py",
    "src/a.py",
    "src/b.py",
    "src/deep/a.py",
    "lib/c.py",
    "lib/d.py",
    "readme.md",
    "other/e.py",
    "x::f/g.py",
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a document of a few files, that may have no gold, no trace, no clock, no tokens, edits and chunks or not."""
    some = st.lists(st.sampled_from(FILES), max_size=5, unique=True)
    events = draw(
        st.lists(
            st.builds(
                lambda category, files, mcp, seconds, tokens: event(
                    category, *files, is_mcp=mcp, elapsed_seconds=seconds, cumulative_tokens=tokens
                ),
                st.sampled_from(CATEGORIES),
                some,
                st.booleans(),
                st.none() | st.floats(0, 1e5),
                st.none() | st.integers(0, 10**9),
            ),
            max_size=8,
        )
    )
    source = draw(st.sampled_from(["trajectory", "transcript", "merged", None]))
    return document(
        events if source else (),
        draw(some),
        edits=draw(st.none() | some),
        chunks=draw(st.lists(st.sampled_from(FILES), max_size=3)),
        source=source,
        task_name=draw(st.sampled_from("pqrstu")),
        config_name=draw(st.sampled_from(["baseline", "mcp"])),
        benchmark=draw(st.sampled_from(["fix", "test"])),
        batch_timestamp=draw(st.none() | st.sampled_from(["2026-01-01", "2026-01-02"])),
    )


OUTCOMES = st.none() | st.builds(
    RunOutcome,
    reward=st.none() | st.sampled_from([0.0, 0.5, 1.0]),
    cost=st.none() | st.floats(0, 10),
    seconds=st.none() | st.floats(0, 1e4),
    tokens=st.none() | st.integers(0, 10**6),
    model=st.sampled_from(["m1", "m2", None]),
    agent=st.sampled_from(["harness", None]),
)
"""How a task may have ended, as far as that is known."""


def done(task: str, *seen: str, gold: Sequence[str] = ("a.py", "b.py"), **said: Any) -> dict[str, Any]:
    """Return the artifact of a task whose agent read files; `said` is of its outcome, or else of its provenance."""
    outcome = {name: said.pop(name) for name in list(said) if name in RunOutcome.__dataclass_fields__}
    return build_artifact(
        document([read(*seen)], gold, task_name=task, **said), RunOutcome(**outcome) if outcome else None
    )
