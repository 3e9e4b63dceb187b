"""Tool calls in traces, and ranges of lines."""

from __future__ import annotations

from hypothesis import strategies as st

from runner.features.traces.events.line_ranges import LineRange
from runner.features.traces.trace import ToolCall
from tests.strategies.gold import SEEN_PATHS
from tests.strategies.json_values import JSON

TOOL_NAMES = st.sampled_from(
    [
        "Read",
        "Write",
        "Grep",
        "Glob",
        "Bash",
        "keyword_search",
        "find_references",
        "read_file",
        "mcp__x__read_file",
        "\udfff",
        "Edit(path",
    ]
)
ARGUMENT_NAMES = st.sampled_from(
    ["path", "file_path", "command", "query", "repo", "files", "input", "symbol", "pattern"]
)
TOOL_CALLS = st.builds(
    ToolCall,
    TOOL_NAMES,
    st.dictionaries(
        ARGUMENT_NAMES,
        SEEN_PATHS
        | st.text(max_size=20)
        | st.lists(SEEN_PATHS, max_size=2)
        | SEEN_PATHS.map("cat {} > c.py".format)
        | st.integers(),
    ),
    st.none() | st.text(max_size=60) | SEEN_PATHS.map("{}:1:x".format),
)

CALL_IDS = st.sampled_from(["a", "b", "c", "", None, 7, ["a"]])
RECORDED_FACTS = st.one_of(
    st.tuples(st.just("call"), CALL_IDS, JSON | st.sampled_from(["Read", "Grep"]), JSON),
    st.tuples(st.just("result"), CALL_IDS, st.text(), st.none()),
    st.tuples(st.just("at"), JSON, st.none(), st.none()),
    st.tuples(st.just("spent"), CALL_IDS, st.integers(0, 9), st.none()),
)
"""Calls with name and arguments, results, times and numbers of tokens."""


def line_ranges(lines: int) -> st.SearchStrategy[LineRange]:
    """Draw ranges of the lines of a file, some of which end behind it or have no end."""
    return st.builds(
        lambda start, length: LineRange(start, None if length is None else start + length),
        st.integers(1, lines),
        st.none() | st.integers(0, lines),
    )
