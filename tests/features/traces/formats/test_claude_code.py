from __future__ import annotations

from pathlib import Path

import pytest

from tests.features.traces.formats.written import SESSION, TRANSCRIPT, assistant, lines, result, trace_of, use


def test_the_calls_of_a_transcript_are_in_call_order_with_their_own_results(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, TRANSCRIPT)
    assert [(step.index, step.id, step.seen.name, step.seen.result) for step in trace.steps] == [
        (0, "a", "Read", "import b"),
        (1, "t", "Task", "b.py and c.py"),
        (2, "s", "Grep", "b.py:1:b\nc.py:2:b"),
        (3, "z", "Bash", "d = 1"),
    ]
    assert trace.steps[0].seen.arguments == {"file_path": "/repo/a.py"}
    assert trace.source == "transcript"
    assert not trace.losses


def test_a_parent_tool_use_marks_a_subagent(tmp_path: Path) -> None:
    assert [step.subagent for step in trace_of(tmp_path, TRANSCRIPT).steps] == [False, False, True, False]


def test_a_sidechain_of_a_session_is_a_subagent(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, lines(assistant(use("a", "Read"), isSidechain=True), result("a", "")))
    assert [step.subagent for step in trace.steps] == [True]


def test_usage_counts_once_a_message_though_each_of_its_lines_repeats_it(tmp_path: Path) -> None:
    parts = [
        {"input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 5, "output_tokens": said}
        for said in (1, 1, 40)
    ]
    spoken = [assistant(use(str(i), "Read"), message="m", usage=usage) for i, usage in enumerate(parts)]
    other = assistant(use("9", "Read"), message="n", usage={"input_tokens": 100, "output_tokens": 0})
    trace = trace_of(tmp_path, lines(*spoken, other))
    assert [step.tokens for step in trace.steps] == [19, 19, 58, 158]
    assert trace.total_tokens == 158


def test_a_transcript_s_last_line_says_what_the_whole_cost(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, TRANSCRIPT)
    assert (trace.total_tokens, trace.seconds, trace.cost) == (9, 2.5, 0.25)


def test_the_usage_of_all_models_is_the_total(tmp_path: Path) -> None:
    models = {"big": {"inputTokens": 1, "outputTokens": 2}, "small": {"cacheReadInputTokens": 4}}
    total = {"type": "result", "modelUsage": models, "usage": {"input_tokens": 3}}
    assert trace_of(tmp_path, lines(assistant(), total)).total_tokens == 7


def test_a_session_tells_times_since_the_agent_s_first_step(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, SESSION)
    assert [step.elapsed_s for step in trace.steps] == pytest.approx([0, 1.5, 19.5])
    assert trace.seconds == pytest.approx(19.5)


def test_model_harness_and_folders_are_what_the_trace_says(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, TRANSCRIPT)
    assert (trace.model, trace.harness, trace.cwds) == ("claude-x", "claude-code 2.1", ["/repo"])
    trace = trace_of(tmp_path, SESSION)
    assert (trace.model, trace.harness, trace.cwds) == ("claude-x", "claude-code 2.2", ["/repo/sub"])


def test_tools_that_run_at_the_provider_are_calls_too(tmp_path: Path) -> None:
    searched = {"type": "server_tool_use", "id": "w", "name": "web_search", "input": {"query": "q"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "w", "content": [{"title": "t"}]}
    trace = trace_of(tmp_path, lines(assistant(searched, found)))
    assert [(step.seen.name, step.seen.result) for step in trace.steps] == [("web_search", "")]


def test_lines_that_are_no_messages_are_passed_over_and_those_without_a_type_counted(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, TRANSCRIPT + lines({"type": "ai-title"}, {"hello": 1}))
    assert trace.losses == {"steps of an unknown kind": 1}
    assert len(trace.steps) == 4


def test_content_that_is_text_has_no_calls_and_content_that_is_neither_is_counted(tmp_path: Path) -> None:
    plain = {"type": "user", "message": {"role": "user", "content": "hello"}}
    odd = {"type": "user", "message": {"role": "user", "content": {"type": "text"}}}
    trace = trace_of(tmp_path, TRANSCRIPT + lines(plain, odd, {"type": "user", "message": 7}))
    assert trace.losses == {"messages that are not a list": 1}
