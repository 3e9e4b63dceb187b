"""Read Claude Code's JSON lines: the transcript printed as stream-json, and the session log, which also records times.

Both contain messages of Anthropic's API. A message may be split over several lines, each of which repeats its usage;
the last line has the full usage. `parent_tool_use_id` or `isSidechain` marks the work of a subagent.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BufferedReader
from typing import Any

from runner.features.traces.formats.recording import Recording
from runner.features.traces.formats.tolerant import (
    amount,
    count_unknown,
    fields,
    objects,
    read_lines,
    restore,
    text,
    total,
)

_USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_MODEL_USAGE = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")


def read(file: BufferedReader[Any], recording: Recording[Any]) -> None:
    """Read a transcript or a session."""
    for line in read_lines(file, recording):
        recording.add_cwd(line.get("cwd"))
        _set_harness(line.get("claude_code_version") or line.get("version"), recording)
        kind = line.get("type")
        if kind in ("assistant", "user"):
            _read_message(line, recording)
        elif kind == "result":
            _read_totals(line, recording)
        elif kind == "system":
            _set_model(line.get("model"), recording)
        elif not isinstance(kind, str):
            count_unknown(line, recording)


def _set_harness(version: object, recording: Recording[Any]) -> None:
    if recording.harness is None and isinstance(version, str):
        recording.harness = f"claude-code {version}"


def _set_model(name: object, recording: Recording[Any]) -> None:
    if recording.model is None and isinstance(name, str) and name != "<synthetic>":
        recording.model = name


def _read_totals(line: Mapping[str, Any], recording: Recording[Any]) -> None:
    models = [total(usage, *_MODEL_USAGE) or 0 for usage in fields(line.get("modelUsage")).values()]
    recording.total_tokens = sum(models) or total(line.get("usage"), *_USAGE)
    recording.seconds = amount(line.get("duration_ms"), scale=1000)
    recording.cost = amount(line.get("total_cost_usd"))


def _read_message(line: Mapping[str, Any], recording: Recording[Any]) -> None:
    message = fields(restore(line.get("message"), recording))
    if line["type"] == "assistant":
        recording.set_time(line.get("timestamp"))
        recording.count_tokens(message.get("id"), total(message.get("usage"), *_USAGE))
        _set_model(message.get("model"), recording)
    content = restore(message.get("content"), recording)
    if isinstance(content, str):
        return
    subagent = bool(line.get("parent_tool_use_id")) or line.get("isSidechain") is True
    for block in objects(content, "messages", recording):
        kind = str(block.get("type"))
        if kind.endswith("tool_use"):  # also server_tool_use and mcp_tool_use
            arguments = restore(block.get("input"), recording)
            recording.add_call(block.get("id"), block.get("name"), arguments, subagent=subagent)
        elif kind.endswith("tool_result"):
            recording.add_result(block.get("tool_use_id"), text(restore(block.get("content"), recording)))
