from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.formats.recording import Recording
from runner.features.traces.trace import ToolCall
from tests.strategies.traces import RECORDED_FACTS


def _names(call: ToolCall) -> str:
    return call.name


def test_a_call_is_read_when_its_result_arrives_and_listed_in_call_order() -> None:
    looked: list[str | None] = []

    def look(call: ToolCall) -> str:
        looked.append(call.result)
        return call.name

    recording = Recording(look)
    recording.add_call("a", "Task", {})
    recording.add_call("b", "Read", {})
    recording.add_result("b", "text")
    assert looked == ["text"]
    recording.add_result("a", "done")
    assert looked == ["text", "done"]
    assert [step.seen for step in recording.build_trace("transcript").steps] == ["Task", "Read"]


def test_of_calls_that_wait_for_results_only_some_are_held() -> None:
    looked: list[str | None] = []

    def look(call: ToolCall) -> None:
        looked.append(call.result)

    recording = Recording(look)
    for i in range(1500):
        recording.add_call(str(i), "Read", {})
    assert looked == [None] * 500
    recording.add_result("0", "late")
    trace = recording.build_trace("transcript")
    assert [step.index for step in trace.steps] == list(range(1500))
    assert trace.losses == {"calls without a result": 1500, "repeated or late results": 1}


def test_repeated_calls_and_results_count_once() -> None:
    recording = Recording(_names)
    for _ in range(2):
        recording.add_call("a", "Read", {"path": "a.py"})
        recording.add_result("a", "text")
    trace = recording.build_trace("transcript")
    assert len(trace.steps) == 1
    assert trace.losses == {"repeated calls": 1, "repeated or late results": 1}


def test_a_call_whose_id_another_call_takes_keeps_its_place() -> None:
    recording = Recording(_names)
    recording.add_call("a", "Read", {})
    recording.add_call("a", "Grep", {})
    trace = recording.build_trace("transcript")
    assert [(step.index, step.seen) for step in trace.steps] == [(0, "Read"), (1, "Grep")]


@pytest.mark.parametrize("name", ["Edit(path='a.py'", "Edit(path...)", "", None, 3, "two\nlines", "<tool>"])
def test_a_call_with_a_malformed_name_is_skipped_with_its_result(name: object) -> None:
    recording = Recording(_names)
    recording.add_call("a", name, {})
    recording.add_result("a", "No such tool")
    trace = recording.build_trace("transcript")
    assert not trace.steps
    assert trace.losses == {"calls with a malformed name": 1}


@pytest.mark.parametrize("name", ["Read", "mcp__sourcegraph__sg_read_file", "web.search", "fs/read", "ns::tool", "a-b"])
def test_the_names_that_tools_have_are_well_formed(name: str) -> None:
    recording = Recording(_names)
    recording.add_call("a", name, None)
    assert [step.seen for step in recording.build_trace("transcript").steps] == [name]


def test_arguments_may_be_json_in_a_string_and_else_must_be_an_object() -> None:
    recording: Recording[object] = Recording(lambda call: call.arguments)
    for arguments in ('{"path": "a.py"}', "", None, "ls -l", [1], 5):
        recording.add_call(None, "Read", arguments)
    trace = recording.build_trace("transcript")
    assert [step.seen for step in trace.steps] == [{"path": "a.py"}, {}, {}, {}, {}, {}]
    assert trace.losses["arguments that are not an object"] == 3


def test_arguments_that_are_nested_too_deeply_are_left_out() -> None:
    recording: Recording[object] = Recording(lambda call: call.arguments)
    deep: object = 1
    for _ in range(100):
        deep = [deep]
    recording.add_call("a", "Read", {"deep": deep})
    recording.add_call("b", "Read", {"less": [[[[1]]]]})
    trace = recording.build_trace("transcript")
    assert [step.seen for step in trace.steps] == [{}, {"less": [[[[1]]]]}]
    assert trace.losses["arguments nested deeper than 100"] == 1


def test_times_without_a_zone_are_utc_and_those_that_cannot_be_read_are_counted() -> None:
    recording = Recording(_names)
    times = ["2026-01-01T00:00:00", "2026-01-01T01:00:02+01:00", "yesterday", 1767225605, math.nan]
    for i, time in enumerate([*times, "9999-12-31T23:59:59-12:00"]):
        recording.set_time(time)
        recording.add_call(str(i), "Read", {})
    trace = recording.build_trace("trajectory")
    assert [step.elapsed_s for step in trace.steps] == [0, 2, None, 5, None, None]
    assert [step.time for step in trace.steps] == [1767225600, 1767225602, None, 1767225605, None, None]
    assert trace.losses["unreadable times"] == 3
    assert trace.seconds == 5


def test_a_clock_that_runs_back_before_the_first_step_is_not_believed() -> None:
    recording = Recording(_names)
    for i, time in enumerate([100, 90]):
        recording.set_time(time)
        recording.add_call(str(i), "Read", {})
    trace = recording.build_trace("trajectory")
    assert [step.elapsed_s for step in trace.steps] == [0, None]
    assert trace.losses["times before the agent's first step"] == 1


def test_tokens_are_unknown_until_a_message_says_them() -> None:
    recording = Recording(_names)
    recording.add_call("a", "Read", {})
    recording.count_tokens("m", None)
    recording.count_tokens("m", 5)
    recording.count_tokens("m", 3)
    recording.add_call("b", "Read", {})
    recording.count_tokens(None, 2)
    recording.count_tokens(None, 2)
    trace = recording.build_trace("trajectory")
    assert [step.tokens for step in trace.steps] == [None, 5]
    assert trace.total_tokens == 9


@given(st.lists(RECORDED_FACTS, max_size=20))
def test_any_recording_numbers_steps_from_0_and_never_lowers_the_token_count(
    said: list[tuple[str, object, object, object]],
) -> None:
    recording = Recording(_names)
    for what, first, second, third in said:
        if what == "call":
            recording.add_call(first, second, third)
        elif what == "result":
            recording.add_result(first, str(second))
        elif what == "at":
            recording.set_time(first)
        else:
            recording.count_tokens(first, int(str(second)))
    trace = recording.build_trace("transcript")
    assert [step.index for step in trace.steps] == list(range(len(trace.steps)))
    tokens = [step.tokens for step in trace.steps if step.tokens is not None]
    assert tokens == sorted(tokens)
    assert all(step.elapsed_s is None or 0 <= step.elapsed_s < math.inf for step in trace.steps)
    assert all(times > 0 for times in trace.losses.values())
