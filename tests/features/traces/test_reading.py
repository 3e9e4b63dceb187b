from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from runner.features.traces.reading import read_run
from runner.features.traces.trace import ToolCall, Trace
from tests.features.traces.formats.written import (
    SESSION,
    TRANSCRIPT,
    answer,
    assistant,
    atif,
    call,
    lines,
    result,
    step,
    use,
)
from tests.strategies.rankings import unique_lists


def _text(call: ToolCall) -> str:
    return f"{call.name}: {call.result or ''}"


def _longer(one: str, other: str) -> str:
    return max(one, other, key=len)


def _run(folder: Path, trajectory: bytes | None, transcript: bytes | None) -> Trace[str]:
    files: list[Path | None] = []
    for name, content in (("trajectory", trajectory), ("transcript", transcript)):
        files.append(None if content is None else folder / name)
        if content is not None:
            (folder / name).write_bytes(content)
    return read_run(files[0], files[1], _text, _longer)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def test_a_run_of_one_file_has_that_file_s_trace_named_by_its_part(tmp_path: Path) -> None:
    assert _run(tmp_path, SESSION, None).source == "trajectory"
    assert _run(tmp_path, None, TRANSCRIPT).source == "transcript"
    nothing = _run(tmp_path, None, None)
    assert (nothing.source, nothing.losses) == (None, {"runs without a trace": 1})


def test_calls_only_in_the_transcript_follow_the_call_before_them_there(tmp_path: Path) -> None:
    trace = _run(tmp_path, SESSION, TRANSCRIPT)
    assert trace.source == "merged"
    assert [(step.index, step.id, step.subagent) for step in trace.steps] == [
        (0, "a", False),
        (1, "t", False),
        (2, "s", True),
        (3, "z", False),
    ]


def test_times_are_the_trajectory_s_and_tokens_the_transcript_s(tmp_path: Path) -> None:
    trace = _run(tmp_path, SESSION, TRANSCRIPT)
    assert [step.elapsed_s for step in trace.steps] == [0, 1.5, None, 19.5]
    assert [step.tokens for step in trace.steps] == [3, 6, 9, 12]
    assert (trace.total_tokens, trace.seconds, trace.cost) == (9, 2.5, 0.25)
    assert trace.cwds == ["/repo/sub", "/repo"]


def test_a_call_in_both_files_takes_the_richer_result(tmp_path: Path) -> None:
    poor = atif(step(call("a", "Read")), step(call("z", "Bash"), results=[answer("z", "d = 1, and more")]))
    trace = _run(tmp_path, poor, TRANSCRIPT)
    assert {step.id: step.seen for step in trace.steps} == {
        "a": "Read: import b",
        "t": "Task: b.py and c.py",
        "s": "Grep: b.py:1:b\nc.py:2:b",
        "z": "Bash: d = 1, and more",
    }
    assert trace.losses == {"calls without a result in the trajectory": 1}


def test_a_call_is_a_subagent_s_if_either_file_says_so(tmp_path: Path) -> None:
    trace = _run(tmp_path, atif(step(call("s", "Grep"))), TRANSCRIPT)
    assert [step.id for step in trace.steps if step.subagent] == ["s"]


def test_calls_before_the_first_that_both_have_come_first(tmp_path: Path) -> None:
    trace = _run(tmp_path, atif(step(call("z", "Bash")), step(call("y", "Bash"))), TRANSCRIPT)
    assert [step.id for step in trace.steps] == ["a", "t", "s", "z", "y"]


def test_calls_without_an_id_are_never_joined(tmp_path: Path) -> None:
    transcript = lines(assistant(use(None, "Grep"), use("b", "Read")), result("b", "x"))
    trace = _run(tmp_path, atif(step(call(None, "Read"))), transcript)
    assert [(step.id, step.seen) for step in trace.steps] == [("b", "Read: x"), ("", "Read: ")]
    assert trace.losses["calls in the transcript without an id to merge by"] == 1


def test_an_id_that_is_used_again_joins_in_order(tmp_path: Path) -> None:
    trajectory = atif(*(step(call("t1", name)) for name in ("Read", "Grep")))
    transcript = lines(assistant(use("t1", "Read")), result("t1", "r"), assistant(use("t1", "Grep")), result("t1", "g"))
    assert [step.seen for step in _run(tmp_path, trajectory, transcript).steps] == ["Read: r", "Grep: g"]


@pytest.mark.parametrize("damaged", [b"", b"no trace"])
def test_a_damaged_trace_is_reported_and_the_other_one_is_still_read(tmp_path: Path, damaged: bytes) -> None:
    trace = _run(tmp_path, damaged, TRANSCRIPT)
    assert (trace.source, len(trace.steps), len(trace.losses)) == ("transcript", 4, 1)
    assert next(iter(trace.losses)).endswith("in the trajectory")
    trace = _run(tmp_path, SESSION, damaged)
    assert (trace.source, len(trace.steps)) == ("trajectory", 3)
    trace = _run(tmp_path, damaged, damaged)
    assert (trace.source, len(trace.losses)) == (None, 2)


@given(unique_lists("abcdef", 6), unique_lists("abcdef", 6))
def test_merging_lists_each_call_once_in_the_order_of_the_trajectory(
    folder: Path, own: list[str], other: list[str]
) -> None:
    trajectory = atif(*(step(call(name, "Read")) for name in own))
    trace = _run(folder, trajectory, lines(assistant(*(use(name, "Read") for name in other))))
    ids = [step.id for step in trace.steps]
    assert sorted(ids) == sorted({*own, *other})
    assert [name for name in ids if name in own] == own
    assert [step.index for step in trace.steps] == list(range(len(ids)))


def test_transcripts_of_real_runs_add_the_calls_of_subagents(real_traces: Path) -> None:
    sessions = sorted(real_traces.glob("runs/**/agent_trace.jsonl"))
    runs = [read_run(path, path.with_name("agent_stdout.log"), _text, _longer) for path in sessions]
    alone = [read_run(path, None, _text, _longer) for path in sessions]
    assert {run.source for run in runs} == {"merged"}
    assert sum(len(run.steps) for run in runs) == 313
    assert sum(len(run.steps) for run in alone) == 200
    for run, session in zip(runs, alone, strict=True):
        extra = [step for step in run.steps if step.elapsed_s is None]
        assert len(extra) == len(run.steps) - len(session.steps)
        assert all(step.subagent for step in extra)
        assert [step.id for step in run.steps if step.elapsed_s is not None] == [step.id for step in session.steps]
