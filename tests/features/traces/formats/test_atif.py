from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.features.traces.formats.written import TRAJECTORY, answer, atif, call, step, trace_of


def test_a_trajectory_s_calls_have_the_results_of_their_steps(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, TRAJECTORY)
    assert [(step.id, step.seen.name, step.seen.result, step.subagent) for step in trace.steps] == [
        ("a", "Read", "import b", False),
        ("z", "Grep", "b.py:1:b", True),
    ]
    assert trace.source == "trajectory"
    assert not trace.losses


def test_the_clock_starts_at_the_agent_s_first_step_and_not_at_the_user_s(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, TRAJECTORY)
    assert [step.elapsed_s for step in trace.steps] == pytest.approx([0, 5])
    assert trace.seconds == pytest.approx(50)


def test_steps_of_one_message_count_its_prompt_once_and_cached_tokens_are_part_of_it(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, TRAJECTORY)
    assert [step.tokens for step in trace.steps] == [11, 14]
    assert trace.total_tokens == 14 + 25


def test_equal_prompt_sizes_and_missing_ones_count_as_separate_messages(tmp_path: Path) -> None:
    spent = [(10, 1), (20, 1), (10, 1), (None, 3), (None, 3)]
    steps = [step(metrics={"prompt_tokens": prompt, "completion_tokens": done}) for prompt, done in spent]
    assert trace_of(tmp_path, atif(*steps)).total_tokens == 11 + 21 + 11 + 3 + 3


def test_the_document_s_totals_are_taken_where_its_steps_repeat_no_usage(tmp_path: Path) -> None:
    totals = {"total_prompt_tokens": 40, "total_completion_tokens": 2, "total_cost_usd": 0.5}
    silent, first, second = ({}, *({"prompt_tokens": size, "completion_tokens": 1} for size in (5, 7)))
    for metrics, total in (([silent], 42), ([first, second], 42), ([first, first, second], 14)):
        steps = [step(call(str(i), "Read"), metrics=metric) for i, metric in enumerate(metrics)]
        trace = trace_of(tmp_path, atif(*steps, final_metrics=totals))
        assert (trace.total_tokens, trace.cost) == (total, 0.5)


def test_model_harness_and_folders_are_what_the_trace_says(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, TRAJECTORY)
    assert (trace.model, trace.harness, trace.cwds) == ("claude-x", "claude-code 2.1", ["/repo", "/workspace"])


def test_a_result_that_names_no_call_is_that_of_its_step_s_only_call(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, atif(step(call(None, "Read"), results=[answer(None, "x")])))
    assert [(step.id, step.seen.result) for step in trace.steps] == [("", "x")]
    several = step(call("a", "Read"), call("b", "Read"), results=[answer(None, "x"), answer("b", "y")])
    trace = trace_of(tmp_path, atif(several))
    assert [step.seen.result for step in trace.steps] == [None, "y"]
    assert trace.losses == {"results without a call": 1, "calls without a result": 1}


def test_an_id_that_is_used_again_for_another_call_is_another_call(tmp_path: Path) -> None:
    steps = [step(call("t1", "Read", {"path": path}), results=[answer("t1", path)]) for path in ("a.py", "b.py")]
    trace = trace_of(tmp_path, atif(*steps))
    assert [step.seen.result for step in trace.steps] == ["a.py", "b.py"]
    assert not trace.losses


def test_dicts_where_lists_are_expected_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    odd = [
        {"source": "agent", "tool_calls": {"a": 1}, "observation": [1]},
        {"source": "agent", "tool_calls": [3, call("x", "Read")], "observation": {"results": {"b": 2}}},
        {"source": "malformed"},
        {"source": "builder", "extra": {"trimmed": True}},
    ]
    trace = trace_of(tmp_path, atif(*odd))
    assert [step.id for step in trace.steps] == ["x"]
    assert trace.losses == {
        "tool calls that are not a list": 1,
        "tool calls that are not objects": 1,
        "results that are not a list": 1,
        "calls without a result": 1,
        "steps of an unknown kind": 1,
        "gaps of omitted steps": 1,
    }


def test_of_values_that_were_cut_to_save_space_the_preview_is_read(tmp_path: Path) -> None:
    def cut(value: object, length: int) -> dict[str, object]:
        return {"_corpus_truncated": True, "preview": json.dumps(value)[:length] + "...[truncated]..."}

    calls = [call("w", "Write", {"file_path": "/repo/a.py", "content": "x" * 500})]
    results = {"results": [answer("w", "first line\nsecond line, which is long")]}
    shrunk = {"source": "agent", "tool_calls": cut(calls, 150), "observation": cut(results, 85)}
    trace = trace_of(tmp_path, atif(shrunk))
    assert trace.steps[0].seen.arguments["file_path"] == "/repo/a.py"
    assert str(trace.steps[0].seen.result).startswith("first line\nsecond")
    assert trace.losses == {"truncated values": 2}


def test_a_step_that_is_damaged_is_lost_alone(tmp_path: Path) -> None:
    good = [step(call(name, "Read"), results=[answer(name, "x")]) for name in ("before", "damaged", "after")]
    content = atif(*good).replace(b'"damaged"', b"*damaged*")
    trace = trace_of(tmp_path, content)
    assert [step.id for step in trace.steps] == ["before", "after"]
    assert trace.losses == {"steps that are not JSON objects": 1}


def test_a_string_that_was_never_closed_ends_with_its_line(tmp_path: Path) -> None:
    good = [step(call(name, "Read"), results=[answer(name, "x")]) for name in ("before", "damaged", "after")]
    trace = trace_of(tmp_path, atif(*good, indent=1).replace(b'"damaged"', b'"damaged'))
    assert [step.id for step in trace.steps] == ["before", "after"]


def test_a_trajectory_that_was_cut_off_keeps_the_steps_that_are_whole(tmp_path: Path) -> None:
    good = [step(call(name, "Read"), results=[answer(name, "x")]) for name in ("first", "second", "third")]
    content = atif(*good)
    trace = trace_of(tmp_path, content[: content.index(b"third") + 20])
    assert [step.id for step in trace.steps] == ["first", "second"]
    assert trace.losses == {"truncated or damaged documents": 1}


def test_subagents_that_are_in_files_of_their_own_are_named(tmp_path: Path) -> None:
    away = answer("t", "done") | {"subagent_trajectory_ref": [{"trajectory_path": "sub.json"}]}
    trace = trace_of(tmp_path, atif(step(call("t", "Task"), results=[away])))
    assert trace.losses == {"subagents with a trajectory in a separate file": 1}
