"""Read ATIF, the Agent Trajectory Interchange Format of Harbor: one JSON document with the agent, its steps and totals.

A step's `prompt_tokens` include the cached ones. Steps have no message id, yet some exporters split one message into
several steps, repeat its usage in each, and add up the repeats in `final_metrics`. Consecutive steps with the same
prompt therefore count as one message, and the totals are used only if no usage is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BufferedReader
from typing import Any

from runner.features.traces.formats.recording import Recording
from runner.features.traces.formats.tolerant import (
    amount,
    count_unknown,
    elements,
    fields,
    objects,
    read_members,
    restore,
    text,
    total,
)

_Prompt = tuple[Any, Any, Any]


def read(file: BufferedReader[Any], recording: Recording[Any]) -> None:
    """Read a trajectory."""
    final: int | None = None
    summed = messages = 0
    before: _Prompt | None = None
    for name, member in read_members(file, recording):
        if name == "steps":
            prompt = _prompt(member)
            messages += prompt not in (None, before)
            before = prompt or before
            summed += _read_step(member, str(messages) if prompt else None, recording)
        elif name == "agent":
            _read_agent(member, recording)
        elif name == "final_metrics":
            final = total(member, "total_prompt_tokens", "total_completion_tokens")
            recording.cost = amount(member.get("total_cost_usd"))
    if summed == (recording.tokens or 0):
        recording.total_tokens = final


def _read_agent(agent: Mapping[str, Any], recording: Recording[Any]) -> None:
    parts = [part for part in (agent.get("name"), agent.get("version")) if isinstance(part, str)]
    recording.harness = " ".join(parts) or None
    _set_model(agent.get("model_name"), recording)
    for folder in elements(fields(agent.get("extra")).get("cwds")):
        recording.add_cwd(folder)


def _set_model(name: object, recording: Recording[Any]) -> None:
    if recording.model is None and isinstance(name, str):
        recording.model = name


def _prompt(step: Mapping[str, Any]) -> _Prompt | None:
    """Return the counts that identify a prompt; None for a step that reports none."""
    metrics = fields(step.get("metrics"))
    if metrics.get("prompt_tokens") is None:
        return None
    created = fields(metrics.get("extra")).get("cache_creation_input_tokens")
    return metrics["prompt_tokens"], metrics.get("cached_tokens"), created


def _read_step(step: Mapping[str, Any], message: str | None, recording: Recording[Any]) -> int:
    """Read a step of a message, and return the tokens that it reports."""
    if step.get("source") not in ("agent", "user", "system"):
        count_unknown(step, recording)
        return 0
    extra = fields(restore(step.get("extra"), recording))
    recording.add_cwd(extra.get("cwd"))
    tokens = None
    if step["source"] == "agent":
        recording.set_time(step.get("timestamp"))
        _set_model(step.get("model_name"), recording)
        tokens = total(step.get("metrics"), "prompt_tokens", "completion_tokens")
        recording.count_tokens(message, tokens)
    calls = objects(restore(step.get("tool_calls"), recording), "tool calls", recording)
    keys = [
        recording.add_call(
            call.get("tool_call_id"),
            call.get("function_name"),
            restore(call.get("arguments"), recording),
            subagent=extra.get("is_sidechain") is True,
        )
        for call in calls
    ]
    observation = fields(restore(step.get("observation"), recording))
    for result in objects(observation.get("results"), "results", recording):
        own = keys[0] if len(keys) == 1 else None  # a result without an id belongs to the only call
        recording.add_result(result.get("source_call_id") or own, text(restore(result.get("content"), recording)))
        if result.get("subagent_trajectory_ref"):
            recording.count_loss("subagents with a trajectory in a separate file")
    return tokens or 0
