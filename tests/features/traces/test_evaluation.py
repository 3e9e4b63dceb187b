"""A run's folder becomes two files, whatever is in it, and the same ones from the same files."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.config.objects import ConfigError
from runner.features.traces import evaluation
from runner.features.traces.evaluation import Evaluation, Job, Reading, iter_jobs, read_events
from runner.features.traces.events.document import load_document
from runner.features.traces.measures.stages import round_numbers
from runner.features.traces.runs.layout import RunFolder, find_runs
from runner.features.traces.runs.tasks import Tasks, find_tasks
from tests.features.traces.formats.written import SESSION, TRANSCRIPT
from tests.features.traces.recorded import trajectory, write_run, write_task

TASK = "some-task-001"


def the_run(folder: Path) -> RunFolder:
    (run,) = find_runs(folder, find_tasks([folder / "tasks"]))
    return run


def the_job(folder: Path, reading: Reading | None = None) -> Job:
    (job,) = iter_jobs([the_run(folder)], reading or Reading())
    return job


def evaluated(folder: Path, reading: Reading | None = None) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return what an evaluation returns, and the documents that it writes."""
    evaluate, job = Evaluation(reading or Reading(), folder / "out"), the_job(folder, reading)
    made = evaluate(job)
    events, metrics = evaluate.files(job.run.artifact)
    return made, load_document(events), json.loads(metrics.read_bytes())


def test_a_run_becomes_its_events_and_its_metrics_rounded(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", TASK, ["src/a.py", "src/b.py", "src/c.py"])
    write_run(tmp_path, "mcp", TASK, trajectory("src/x.py", "src/a.py"))
    made, events, metrics = evaluated(tmp_path)
    assert [event["target_files"] for event in events["events"]] == [["src/x.py"], ["src/a.py"]]
    assert made["file_level_metrics"]["file_recall"] == 1 / 3
    assert metrics["file_level_metrics"]["file_recall"] == 0.3333
    assert metrics == json.loads(orjson.dumps(round_numbers(made)))
    assert metrics["provenance"]["benchmark"] == "suite"


def test_a_kill_while_events_are_written_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path, "mcp", TASK, trajectory("a.py"))
    evaluated(tmp_path)
    before = {file: file.read_bytes() for file in (tmp_path / "out").rglob("*.json")}

    def iter_killed(_: object) -> Iterator[bytes]:
        yield b"{"
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluation, "iter_json", iter_killed)
    with pytest.raises(KeyboardInterrupt):
        evaluated(tmp_path)
    assert {file: file.read_bytes() for file in (tmp_path / "out").rglob("*") if file.is_file()} == before


def test_what_the_records_do_not_say_of_the_outcome_the_trace_does(tmp_path: Path) -> None:
    write_run(tmp_path, "mcp", TASK, trajectory("a.py", "b.py"), reward=0.5)
    outcome = evaluated(tmp_path)[0]["outcome"]
    assert (outcome["reward"], outcome["agent"], outcome["agent_version"]) == (0.5, "harness", "1.0")
    assert (outcome["model"], outcome["seconds"], outcome["tokens"]) == ("model", 1.0, 221)
    assert outcome["cost"] is None


def test_a_run_without_a_trace_is_degraded_and_not_zero(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", TASK)
    write_run(tmp_path, "mcp", TASK, None)
    made, events, _ = evaluated(tmp_path)
    assert events["coverage"]["trace_source"] is None
    assert "no usable trace" in events["coverage"]["degraded_reason"]
    assert made["file_level_metrics"] == {"computable": False, "reason": "no_trace"}


def test_a_session_gives_a_transcript_its_times_and_is_named_where_it_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "agent_stdout.log").write_bytes(TRANSCRIPT)
    (tmp_path / "agent_trace.jsonl").write_bytes(SESSION + b"torn\n")
    events = evaluated(tmp_path)[1]
    assert events["coverage"]["trace_source"] == "transcript"
    assert events["coverage"]["has_trajectory"] is False
    assert any(event["elapsed_seconds"] is not None for event in events["events"])
    assert " in the session" in events["coverage"]["degraded_reason"]
    assert "trajectory" not in events["coverage"]["degraded_reason"]


def test_a_packed_session_that_is_cut_short_is_read_as_far_as_it_goes_and_named(tmp_path: Path) -> None:
    (tmp_path / "agent_stdout.log").write_bytes(TRANSCRIPT)
    (tmp_path / "agent_trace.jsonl.gz").write_bytes(gzip.compress(SESSION + os.urandom(5000))[:-4000])
    events = evaluated(tmp_path)[1]
    assert any(event["elapsed_seconds"] is not None for event in events["events"])
    assert "files that cannot be read completely" in events["coverage"]["degraded_reason"]
    assert "in the session" in events["coverage"]["degraded_reason"]


def test_a_folder_in_place_of_a_session_is_named(tmp_path: Path) -> None:
    (tmp_path / "agent_stdout.log").write_bytes(TRANSCRIPT)
    (tmp_path / "agent_trace.jsonl").mkdir()
    events = evaluated(tmp_path)[1]
    assert events["events"]
    assert "cannot be opened (Is a directory) in the session" in events["coverage"]["degraded_reason"]


def test_the_same_files_give_the_same_bytes_and_their_newest_time(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "mcp", TASK, trajectory("a.py"))
    os.utime(folder / "agent" / "trajectory.json", (0, 1_700_000_000))
    os.utime(folder / "result.json", (0, 1_600_000_000))
    evaluated(tmp_path)
    files = sorted((tmp_path / "out").rglob("*.json"))
    before = [file.read_bytes() for file in files]
    events = evaluated(tmp_path)[1]
    assert [file.read_bytes() for file in files] == before
    assert events["generated_at"] == "2023-11-14T22:13:20+00:00"


@pytest.mark.parametrize("changed", ["trajectory", "record", "gold", "shell", "tools"])
def test_inputs_are_others_once_anything_that_decides_is(tmp_path: Path, changed: str) -> None:
    folder, task = write_run(tmp_path, "mcp", TASK, trajectory("a.py")), write_task(tmp_path / "tasks", TASK)
    (tmp_path / "tools.yaml").write_text("local: {file_read: [peek]}")
    before = the_job(tmp_path).inputs.fingerprint
    assert the_job(tmp_path).inputs.fingerprint == before
    reading = Reading()
    if changed == "trajectory":
        (folder / "agent" / "trajectory.json").write_text("{}")
    elif changed == "record":
        (folder / "verifier").mkdir()
        (folder / "verifier" / "reward.txt").write_text("0.5")
    elif changed == "gold":
        (task / "solution").mkdir()
        (task / "solution" / "solve.sh").write_text("true")
    elif changed == "shell":
        reading = Reading(shell=False)
    else:
        reading = Reading(str(tmp_path / "tools.yaml"))
    assert the_job(tmp_path, reading).inputs.fingerprint != before


def test_changed_gold_is_read_again_in_the_same_process(tmp_path: Path) -> None:
    write_run(tmp_path, "mcp", TASK, trajectory("src/a.py"))
    write_task(tmp_path / "tasks", TASK, ["src/a.py"])
    assert evaluated(tmp_path)[0]["file_level_metrics"]["file_recall"] == 1
    write_task(tmp_path / "tasks", TASK, ["src/a.py", "src/b.py"])
    assert evaluated(tmp_path)[0]["file_level_metrics"]["file_recall"] == 0.5


def test_one_file_alone_is_read_with_what_lies_beside_it(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", TASK)
    folder = write_run(tmp_path, "mcp", TASK, trajectory("src/a.py"))
    document = read_events(folder / "agent" / "trajectory.json", Reading(), find_tasks([tmp_path / "tasks"]))
    assert document["provenance"]["task_name"] == TASK
    assert document["provenance"]["config_name"] == "mcp"
    assert next(iter(document["events"]))["hits_ground_truth"]


@pytest.mark.parametrize(
    ("name", "said"), [("none.json", "no such file"), ("", "expected a file, found a folder; set path=FOLDER")]
)
def test_a_path_that_is_not_a_file_is_refused(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"file=.*{said}"):
        read_events(tmp_path / name, Reading(), Tasks())


@given(content=st.binary(max_size=300) | st.sampled_from([SESSION, TRANSCRIPT]), cut=st.integers(0, 2000))
def test_whatever_a_file_holds_gives_events(tmp_path_factory: pytest.TempPathFactory, content: bytes, cut: int) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "agent_trace.jsonl").write_bytes(content[:cut])
    made, events, _ = evaluated(folder)
    assert made["coverage"] == events["coverage"]
    assert events["events"] or events["coverage"]["degraded_reason"] or events["coverage"]["trace_source"]


def test_every_real_run_is_evaluated_and_its_document_is_valid(real_traces: Path, tmp_path: Path) -> None:
    evaluation = Evaluation(Reading(), tmp_path)
    jobs = list(iter_jobs(find_runs(real_traces, find_tasks([real_traces])), evaluation.reading))
    assert jobs
    for job in jobs:
        made = evaluation(job)
        load_document(evaluation.files(job.run.artifact)[0])
        assert made["coverage"]["trace_source"] is not None


def test_other_cutoffs_and_alternatives_as_gold_are_other_work(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", TASK)
    truth = {"required_files": ["src/a.py"], "sufficient_files": ["src/b.py"]}
    (tmp_path / "tasks" / "suite" / TASK / "tests" / "ground_truth.json").write_text(json.dumps(truth))
    write_run(tmp_path, "mcp", TASK, trajectory("src/a.py"))
    reading = Reading(k_values=(2,), sufficient_files=True)
    usual, other = evaluated(tmp_path)[0]["file_level_metrics"], evaluated(tmp_path, reading)[0]["file_level_metrics"]
    assert (usual["n_ground_truth"], usual["file_recall"]) == (1, 1)
    assert (other["n_ground_truth"], other["file_recall"], other["precision"]) == (2, 0.5, {"2": 0.5})
    assert the_job(tmp_path).inputs.fingerprint != the_job(tmp_path, reading).inputs.fingerprint
