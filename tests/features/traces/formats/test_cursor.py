from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.features.traces.formats.written import CURSOR, CURSOR_DOCUMENT, EVENTS, lines, tool_call, trace_of

TREE = {
    "absPath": "/w",
    "childrenFiles": [{"name": "a.py"}],
    "childrenDirs": [{"absPath": "/w/b", "childrenFiles": [{"name": "c.py"}], "childrenDirs": []}],
}


@pytest.mark.parametrize("content", [CURSOR, CURSOR_DOCUMENT], ids=["lines", "document"])
def test_a_call_that_is_started_and_completed_is_one_call(tmp_path: Path, content: bytes) -> None:
    trace = trace_of(tmp_path, content)
    assert [(step.id, step.seen.name, step.seen.result) for step in trace.steps] == [
        ("a", "readToolCall", "import b"),
        ("g", "grepToolCall", "/w/b.py:3:b = 1"),
    ]
    assert [step.elapsed_s for step in trace.steps] == pytest.approx([1, 3])
    assert (trace.source, trace.model, trace.harness, trace.cwds) == ("trajectory", "Opus", "cursor", ["/repo"])
    assert (trace.total_tokens, trace.seconds) == (7, 5)
    assert not trace.losses


def test_events_without_a_tool_call_are_known_too(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, lines(*(event for event in EVENTS if event["type"] != "tool_call")))
    assert (trace.steps, trace.harness) == ([], "cursor")


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        ({"success": {"path": "/repo", "files": ["a.py", "b/c.py"]}}, "/repo/a.py\n/repo/b/c.py"),
        ({"success": {"stdout": "out"}, "isBackground": False}, "out"),
        ({"failure": {"stdout": "", "interleavedOutput": "no such file"}}, "no such file"),
        ({"success": {"workspaceResults": {"/w": {"files": {"files": ["a.py"]}}}}}, "/w/a.py"),
        ({"error": {"errorMessage": "denied"}}, 'Error: {"error": {"errorMessage": "denied"}}'),
        ({"fileNotFound": {}}, 'Error: {"fileNotFound": {}}'),
        ({"success": {"content": [{"text": {"text": "a"}}, {"image": {}}, {"text": {"text": "b"}}]}}, "a\nb"),
        ({"success": {"directoryTreeRoot": TREE}}, "/w/a.py\n/w/b/c.py"),
        ({"success": {"workspaceResults": {"/w": {"content": {"matches": [7, {"matches": 3}]}, "files": 1}}}}, ""),
        ("plain", "plain"),
        (None, "null"),
    ],
)
def test_results_read_as_those_of_other_agents_tools_do(tmp_path: Path, outcome: object, text: str) -> None:
    completed = tool_call("completed", "x", 5, someToolCall={"args": {}, "result": outcome})
    assert [step.seen.result for step in trace_of(tmp_path, lines(completed)).steps] == [text]


def test_a_tool_that_has_no_shape_of_its_own_is_a_function(tmp_path: Path) -> None:
    function = {"name": "read_file", "arguments": json.dumps({"path": "a.py"})}
    trace = trace_of(tmp_path, lines(tool_call("started", "x", 5, function=function)))
    assert [(step.seen.name, step.seen.arguments) for step in trace.steps] == [("read_file", {"path": "a.py"})]


def test_a_server_s_tool_is_called_as_other_agents_call_it(tmp_path: Path) -> None:
    arguments = {"name": "s-read_file", "providerIdentifier": "s", "toolName": "read_file", "args": {"path": "a.py"}}
    trace = trace_of(tmp_path, lines(tool_call("started", "x", 5, mcpToolCall={"args": arguments})))
    assert [(step.seen.name, step.seen.arguments) for step in trace.steps] == [("mcp__s__read_file", {"path": "a.py"})]


def test_a_call_that_is_cut_to_a_preview_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    preview = '{"editToolCall": {"args": {"path": "/repo/a.py", "streamContent": "abc...[truncated]...'
    cut = {"_corpus_truncated": True, "preview": preview}
    event = {"type": "tool_call", "subtype": "started", "call_id": "e", "tool_call": cut}
    trace = trace_of(tmp_path, lines(event))
    assert [(step.seen.name, step.seen.arguments["path"]) for step in trace.steps] == [("editToolCall", "/repo/a.py")]
    assert trace.losses == {"truncated values": 1, "calls without a result": 1}
