"""Read Cursor's events: a tool call is started, then completed with its result, as JSON lines or steps of a document.

Usage is reported once, at the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from io import BufferedReader
from typing import Any

from runner.features.traces.formats.recording import Recording
from runner.features.traces.formats.tolerant import (
    amount,
    count_unknown,
    elements,
    fields,
    read_lines,
    read_members,
    restore,
    total,
)

_FAILURES = ("error", "failure", "fileNotFound", "permissionDenied", "invalidFile", "rejected")
_DOCUMENT = re.compile(rb'[^{]*\{\s*"(?:schema_version|source_format|steps|_\w+)"')


def read(file: BufferedReader[Any], recording: Recording[Any]) -> None:
    """Read the events of an agent."""
    document = _DOCUMENT.match(file.peek())
    for event in _read_steps(file, recording) if document else read_lines(file, recording):
        kind = event.get("type")
        if kind == "system":
            recording.add_cwd(event.get("cwd"))
            recording.harness = "cursor"
            recording.model = event["model"] if isinstance(event.get("model"), str) else recording.model
        elif kind in ("thinking", "assistant", "tool_call"):
            recording.set_time(amount(event.get("timestamp_ms"), scale=1000))
            if kind == "tool_call":
                _read_tool_call(event, recording)
        elif kind == "result":
            usage = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
            recording.total_tokens = total(event.get("usage"), *usage)
            recording.seconds = amount(event.get("duration_ms"), scale=1000)
        elif not isinstance(kind, str):
            count_unknown(event, recording)


def _read_steps(file: BufferedReader[Any], recording: Recording[Any]) -> Iterator[Mapping[str, Any]]:
    return (step for name, step in read_members(file, recording) if name == "steps")


def _read_tool_call(event: Mapping[str, Any], recording: Recording[Any]) -> None:
    identifier = event.get("call_id")
    tools = fields(restore(event.get("tool_call"), recording))
    name = next((name for name in tools if name.endswith("ToolCall")), None)
    tool = fields(tools.get(name or "function"))
    arguments = tool.get("args", tool.get("arguments"))
    if name == "mcpToolCall":
        name, arguments = _parse_server_call(fields(arguments))
    key = identifier
    if event.get("subtype") == "started" or not recording.has_call(identifier):
        key = recording.add_call(identifier, name or tool.get("name"), arguments)
    if event.get("subtype") == "completed":
        recording.add_result(key, _format_result(tool.get("result")))


def _parse_server_call(call: Mapping[str, Any]) -> tuple[str, object]:
    """Return the name of a server's tool as other agents write it, and its arguments."""
    server, tool = call.get("providerIdentifier") or "server", call.get("toolName") or call.get("name")
    return f"mcp__{server}__{tool}", call.get("args")


def _format_result(result: object) -> str:
    """Return a result as the tools of other agents print it: text, one path per line, path:line:text, or an error."""
    if isinstance(result, str):
        return result
    outcome = next((value for value in fields(result).values() if isinstance(value, dict)), {})
    if isinstance(outcome.get("content"), list):
        blocks = (fields(fields(block).get("text")).get("text") for block in outcome["content"])
        return "\n".join(block for block in blocks if isinstance(block, str))
    for name in ("content", "interleavedOutput", "stdout"):
        if isinstance(outcome.get(name), str):
            return str(outcome[name])
    if isinstance(outcome.get("files"), list):
        return "\n".join(f"{outcome.get('path')}/{file}" for file in outcome["files"])
    if isinstance(outcome.get("workspaceResults"), dict):
        return "\n".join(_iter_matches(outcome["workspaceResults"]))
    if isinstance(outcome.get("directoryTreeRoot"), dict):
        return "\n".join(_iter_files(outcome["directoryTreeRoot"]))
    failed = isinstance(result, dict) and any(name in result for name in _FAILURES)
    return f"{'Error: ' if failed else ''}{json.dumps(result, ensure_ascii=False)}"


def _iter_files(folder: Mapping[str, Any]) -> Iterator[str]:
    for file in elements(folder.get("childrenFiles")):
        yield f"{folder.get('absPath')}/{fields(file).get('name')}"
    for inner in elements(folder.get("childrenDirs")):
        yield from _iter_files(fields(inner))


def _iter_matches(workspaces: Mapping[str, Any]) -> Iterator[str]:
    for folder, modes in workspaces.items():
        for mode in fields(modes).values():
            for file in elements(fields(mode).get("files")):
                yield f"{folder}/{file}"
            for file in elements(fields(mode).get("matches")):
                for match in elements(fields(file).get("matches")):
                    line = fields(match)
                    yield f"{folder}/{file.get('file')}:{line.get('lineNumber')}:{line.get('content')}"
