"""Documents of events, outcomes, and the artifacts of tasks that are made of both."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from runner.features.traces.measures.stages import build_artifact
from runner.features.traces.runs.outcomes import RunOutcome
from tests.features.traces.documents import CATEGORIES, document, event
from tests.strategies.rankings import unique_lists

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
    some = unique_lists(FILES, 5)
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
"""Outcomes of a task, any part of which may be unknown."""

ARTIFACTS = st.builds(build_artifact, documents(), OUTCOMES)
