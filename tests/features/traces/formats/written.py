"""Small traces, written as agents write them: each reads a file, searches it, and asks a subagent."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runner.features.traces.formats import FORMATS, read_trace
from runner.features.traces.trace import ToolCall, Trace

Line = dict[str, Any]


def seen(call: ToolCall) -> ToolCall:
    """See all of a call."""
    return call


def lines(*content: object) -> bytes:
    """Return JSON lines."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in content)


def trace_of(folder: Path, content: bytes, name: str = "trace", *, packed: bool = False) -> Trace[ToolCall]:
    """Return the trace that a file of this content holds."""
    file = folder / name
    file.write_bytes(gzip.compress(content) if packed else content)
    return read_trace(file, seen, FORMATS)


def use(identifier: str | None, name: object, **arguments: object) -> Line:
    """Return a block that uses a tool."""
    return {"type": "tool_use", "id": identifier, "name": name, "input": arguments}


def assistant(*blocks: object, message: str = "m1", usage: Line | None = None, **fields: object) -> Line:
    """Return a line of Claude Code in which the model speaks."""
    usage = {"input_tokens": 1, "output_tokens": 2} if usage is None else usage
    spoken = {"id": message, "model": "claude-x", "role": "assistant", "content": list(blocks), "usage": usage}
    return {"type": "assistant", "message": spoken, **fields}


def result(identifier: str | None, content: object) -> Line:
    """Return a line of Claude Code with a tool's result."""
    block = {"type": "tool_result", "tool_use_id": identifier, "content": content}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def step(*calls: Line, results: Sequence[Line] = (), **fields: object) -> Line:
    """Return an agent's step in ATIF."""
    return {"source": "agent", "tool_calls": list(calls), "observation": {"results": list(results)}, **fields}


def call(identifier: str | None, name: object, arguments: object = None) -> Line:
    """Return a call in ATIF."""
    return {"tool_call_id": identifier, "function_name": name, "arguments": arguments}


def answer(identifier: str | None, content: object) -> Line:
    """Return a result in ATIF."""
    return {"source_call_id": identifier, "content": content}


def atif(*steps: object, indent: int | None = None, **members: object) -> bytes:
    """Return an ATIF document."""
    document = {"schema_version": "ATIF-v1.5", "session_id": "s", "steps": list(steps), **members}
    return json.dumps(document, indent=indent).encode()


TRANSCRIPT = lines(
    {"type": "system", "subtype": "init", "cwd": "/repo", "model": "claude-x", "claude_code_version": "2.1"},
    assistant({"type": "thinking", "thinking": "hm"}),
    assistant(use("a", "Read", file_path="/repo/a.py")),
    result("a", "import b"),
    assistant(use("t", "Task", prompt="look around"), message="m2"),
    assistant(use("s", "Grep", pattern="b"), message="m3", parent_tool_use_id="t"),
    result("s", [{"type": "text", "text": "b.py:1:b"}, {"type": "image"}, {"type": "text", "text": "c.py:2:b"}]),
    result("t", "b.py and c.py"),
    assistant(use("z", "Bash", command="cat d.py"), message="m4"),
    result("z", "d = 1"),
    {"type": "result", "subtype": "success", "duration_ms": 2500, "total_cost_usd": 0.25, "usage": {"input_tokens": 9}},
)

SESSION = lines(
    {"type": "queue-operation", "timestamp": "2026-01-01T00:00:00Z"},
    assistant(use("a", "Read", file_path="/repo/a.py"), timestamp="2026-01-01T00:00:10.500Z", cwd="/repo/sub"),
    result("a", "import b"),
    assistant(use("t", "Task", prompt="look"), message="m2", timestamp="2026-01-01T00:00:12Z", version="2.2"),
    result("t", "b.py and c.py"),
    assistant(use("z", "Bash", command="cat d.py"), message="m4", timestamp="2026-01-01T00:00:30Z"),
    result("z", "d = 1"),
)

TRAJECTORY = atif(
    {"source": "user", "message": 'say {"steps": [', "timestamp": "2026-01-01T00:00:00Z"},
    step(
        call("a", "Read", {"file_path": "a.py"}),
        results=[answer("a", "import b")],
        timestamp="2026-01-01T00:00:10Z",
        metrics={"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": 8},
        extra={"cwd": "/repo", "is_sidechain": False},
    ),
    step(
        call("z", "Grep", {"pattern": "b"}),
        results=[answer("z", "b.py:1:b")],
        timestamp="2026-01-01T00:00:15Z",
        metrics={"prompt_tokens": 10, "completion_tokens": 4, "cached_tokens": 8},
        extra={"is_sidechain": True},
    ),
    step(timestamp="2026-01-01T00:01:00Z", metrics={"prompt_tokens": 20, "completion_tokens": 5}),
    indent=1,
    agent={"name": "claude-code", "version": "2.1", "model_name": "claude-x", "extra": {"cwds": ["/workspace"]}},
    final_metrics={"total_prompt_tokens": 40, "total_completion_tokens": 10, "total_cost_usd": 0.5},
)


def tool_call(subtype: str, identifier: str, at: int, **tool: object) -> Line:
    """Return an event of Cursor."""
    fields = {"subtype": subtype, "call_id": identifier, "timestamp_ms": at}
    return {"type": "tool_call", **fields, "tool_call": tool}


_READ = {"args": {"path": "/repo/a.py"}}
_GREP = {"args": {"pattern": "b"}}
_FOUND = {"content": {"matches": [{"file": "b.py", "matches": [{"lineNumber": 3, "content": "b = 1"}]}]}}
EVENTS = [
    {"type": "system", "subtype": "init", "cwd": "/repo", "model": "Opus"},
    {"type": "thinking", "subtype": "delta", "text": "hm", "timestamp_ms": 1_000_000},
    tool_call("started", "a", 1_001_000, readToolCall=_READ),
    tool_call("completed", "a", 1_001_500, readToolCall=_READ | {"result": {"success": {"content": "import b"}}}),
    tool_call(
        "completed", "g", 1_003_000, grepToolCall=_GREP | {"result": {"success": {"workspaceResults": {"/w": _FOUND}}}}
    ),
    {"type": "result", "duration_ms": 5000, "usage": {"inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 4}},
]
CURSOR = lines(*EVENTS)
CURSOR_DOCUMENT = json.dumps({"schema_version": "cursor-jsonl-v1", "steps": EVENTS}).encode()

WRITTEN = {
    "Claude Code": {"transcript": TRANSCRIPT, "session": SESSION},
    "ATIF": {"trajectory": TRAJECTORY},
    "Cursor": {"cursor": CURSOR, "cursor document": CURSOR_DOCUMENT},
}
"""The traces by format and kind of file. Each has a call that reads a file, and one that follows it."""
ALL = {kind: content for kinds in WRITTEN.values() for kind, content in kinds.items()}
FORMAT_OF = {kind: name for name, kinds in WRITTEN.items() for kind in kinds}
DOCUMENTS = frozenset(kind for kind, content in ALL.items() if b"\n{" not in content)
"""The kinds that are one JSON document; the others are JSON lines."""
