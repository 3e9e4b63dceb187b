"""From recorded runs to artifacts, reports and MLflow, from the command line."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import orjson
import pytest
from mlflow.entities import Run
from mlflow.tracking import MlflowClient
from scipy import stats

from runner.__main__ import INTERRUPTED, USER_MISTAKE, main
from runner.features.traces import evaluation, formats
from runner.features.traces.artifact_store import ArtifactStore, open_artifacts
from runner.features.traces.events.document import load_document
from runner.features.traces.report import files
from runner.features.traces.runs.layout import find_runs
from runner.tracking.settings import Tracking
from tests.features.traces.recorded import trajectory, world, write_run, write_task

RUNS = "path=runs"
COMMAND = ["traces", RUNS, "tasks=tasks", "output=out", "workers=1"]
SILENT = [*COMMAND, "log=false"]
LOGGED = [*COMMAND, "tracking.background=false"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has tasks, and runs of two configurations on them."""
    monkeypatch.chdir(tmp_path)
    world(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a working directory whose runs were evaluated, and what was printed. It is not to be changed."""
    folder, printed = tmp_path_factory.mktemp("evaluated"), io.StringIO()
    world(folder)
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        assert main(SILENT) == 0
    return folder, printed.getvalue()


@pytest.fixture
def again(first: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working directory of its own whose runs were evaluated."""
    shutil.copytree(first[0], tmp_path / "again")
    monkeypatch.chdir(tmp_path / "again")
    return tmp_path / "again"


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the runs that are evaluated, as they are."""
    done: list[str] = []
    original = evaluation.Evaluation.__call__

    def noted(self: evaluation.Evaluation, job: evaluation.Job) -> dict[str, Any]:
        done.append(job.run.artifact)
        return original(self, job)

    monkeypatch.setattr(evaluation.Evaluation, "__call__", noted)
    return done


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def read(file: Path) -> Any:
    return orjson.loads(file.read_bytes())


def runs(here: Path) -> list[Run]:
    client = MlflowClient(f"sqlite:///{here}/mlruns/mlflow.db")
    experiment = client.get_experiment_by_name("retrieval")
    return [] if experiment is None else list(client.search_runs([experiment.experiment_id]))


def test_runs_become_artifacts_a_summary_and_reports(first: tuple[Path, str]) -> None:
    out, shown = first[0] / "out", " ".join(first[1].split())
    tasks = [f"task-{number:03}" for number in range(4)]
    expected = {
        f"{c}/{t}.retrieval_{what}.json" for c in ("baseline", "mcp") for t in tasks for what in ("events", "metrics")
    }
    whole = {
        "artifacts.jsonl",
        "artifacts.lock",
        "report.html",
        "report.json",
        "report.md",
        "run_retrieval_summary.json",
    }
    assert set(content(out)) == expected | whole
    metrics = read(out / "mcp" / "task-000.retrieval_metrics.json")
    assert metrics["file_level_metrics"]["file_recall"] == 1.0
    assert load_document(out / "mcp" / "task-000.retrieval_events.json")["summary"]["ground_truth_files_hit"] == 2
    summary = read(out / "run_retrieval_summary.json")
    assert summary["computable_tasks"] == 8
    assert summary["file_level_aggregates"]["file_recall"]["mean"] == 0.75
    assert summary["by_configuration"]["baseline"]["file_level_aggregates"]["file_recall"]["mean"] == 0.5
    assert summary["by_run"]["run_1"]["means"]["reward"] == 0.5
    report = read(out / "report.json")
    assert [task["artifact"] for task in report["tasks"]][:2] == ["baseline/task-000", "mcp/task-000"]
    assert "8 traces of 2 configurations, 8 with ground truth" in shown
    assert "4 of 4" in shown


def test_the_same_files_give_the_same_bytes_however_many_are_at_work(again: Path) -> None:
    before = content(again / "out")
    shutil.rmtree(again / "out")
    assert main([*SILENT[:-2], "workers=2", "log=false"]) == 0
    assert content(again / "out") == before


def test_finished_runs_are_reused_unless_files_or_settings_change(again: Path, evaluated: list[str]) -> None:
    before = content(again / "out")
    assert main(SILENT) == 0
    assert not evaluated
    assert content(again / "out") == before
    write_run(again, "mcp", "task-001", trajectory("src/z.py"))
    (again / "out" / "mcp" / "task-002.retrieval_events.json").unlink()
    assert main(SILENT) == 0
    assert evaluated == ["mcp/task-001", "mcp/task-002"]
    evaluated.clear()
    assert main([*SILENT, "shell=false"]) == 0
    assert len(evaluated) == 8
    evaluated.clear()
    assert main([*SILENT, "shell=false", "resume=false"]) == 0
    assert len(evaluated) == 8


def test_a_kill_between_a_run_s_files_and_its_artifact_does_not_mix_two_settings(
    again: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(again / "out")

    def killed(self: ArtifactStore, name: str, inputs: str, made: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ArtifactStore, "add", killed)
        assert main([word for word in SILENT if word != "tasks=tasks"]) == INTERRUPTED
    (changed,) = [name for name, now in content(again / "out").items() if now != before[name] and "events" in name]
    assert main(SILENT) == 0
    assert content(again / "out")[changed] == before[changed]


def test_two_commands_do_not_write_into_one_folder_at_once(again: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = content(again / "out")
    with open_artifacts(again / "out"):
        assert main([*SILENT, "resume=false"]) == USER_MISTAKE
    assert (
        "output=out: another command is writing to this folder; wait until it has finished" in capsys.readouterr().err
    )
    assert content(again / "out") == before
    assert main(SILENT) == 0


def test_a_report_that_cannot_be_written_is_one_line(again: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (again / "out" / "report.md").unlink()
    (again / "out" / "report.md").mkdir()
    assert main(SILENT) == USER_MISTAKE
    assert "error: output=out: cannot be written (Is a directory)" in capsys.readouterr().err


def test_a_kill_while_a_report_is_written_leaves_no_partial_file(again: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(again / "out")

    def iter_killed(_: object) -> Iterator[bytes]:
        yield b"{"
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "report_json", iter_killed)
    assert main(SILENT) == INTERRUPTED
    assert content(again / "out") == before


def test_after_an_interrupt_the_same_command_goes_on(
    here: Path, evaluated: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    noted = evaluation.Evaluation.__call__

    def interrupted(self: evaluation.Evaluation, job: evaluation.Job) -> dict[str, Any]:
        if len(evaluated) == 3:
            raise KeyboardInterrupt
        return noted(self, job)

    with monkeypatch.context() as patch:
        patch.setattr(evaluation.Evaluation, "__call__", interrupted)
        assert main(SILENT) == INTERRUPTED
    assert "run the same command to resume" in capsys.readouterr().err
    evaluated.clear()
    assert main(SILENT) == 0
    assert len(evaluated) == 5
    assert read(here / "out" / "run_retrieval_summary.json")["total_event_files"] == 8


def test_a_damaged_trace_is_degraded_and_a_crash_is_named_and_neither_stops_the_rest(
    again: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = write_run(again, "mcp", "task-001", {}) / "agent" / "trajectory.json"
    damaged.write_bytes(b"\xff" * 99)
    assert main(SILENT) == 0
    assert "1 degraded" in capsys.readouterr().out
    original = evaluation.Evaluation.__call__

    def crashing(self: evaluation.Evaluation, job: evaluation.Job) -> dict[str, Any]:
        if job.run.artifact == "baseline/task-002":
            raise RuntimeError("a <bug>\nin here")
        return original(self, job)

    monkeypatch.setattr(evaluation.Evaluation, "__call__", crashing)
    assert main([*SILENT, "resume=false"]) == 1
    assert "RuntimeError: a <bug> in here" in capsys.readouterr().out
    for name in ("report.html", "report.md", "report.json", "run_retrieval_summary.json"):
        assert "RuntimeError" in (again / "out" / name).read_text()
    summary = read(again / "out" / "run_retrieval_summary.json")
    assert summary["total_event_files"] == 7
    assert summary["failed"] == {"baseline/task-002": "RuntimeError: a <bug> in here"}


def test_a_configuration_is_a_run_in_mlflow_that_is_compared_as_a_retriever_s_is(
    tracking: Tracking, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(LOGGED) == 0
    logged = {run.info.run_name: run for run in runs(here)}
    assert set(logged) == {"baseline", "mcp"}
    assert logged["mcp"].data.metrics["recall_at_10"] == 1.0
    assert logged["mcp"].data.metrics["agent/reward"] == 1.0
    assert logged["baseline"].data.metrics["recall_at_10"] == 0.5
    assert logged["mcp"].data.params["retriever"] == "mcp"
    assert logged["mcp"].data.params["agent.agent"] == "harness"
    artifacts = {file.name for file in (here / "mlruns" / "artifacts" / logged["mcp"].info.run_id).rglob("*.*")}
    assert {"result.json", "per_query.parquet", "report.html", "run_retrieval_summary.json"} <= artifacts
    words = [f"{role}={logged[name].info.run_id}" for role, name in (("baseline", "baseline"), ("candidate", "mcp"))]
    assert f"python -m runner compare {' '.join(words)}" in capsys.readouterr().out
    assert main(["compare", *words, "gate=none"]) == 0
    assert "mcp is not significantly better than baseline in nDCG@10" in " ".join(capsys.readouterr().out.split())


def test_a_configuration_is_logged_again_only_where_something_is_new(
    tracking: Tracking, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(LOGGED) == 0
    first = {run.info.run_name: run.info.run_id for run in runs(here)}
    capsys.readouterr()
    assert main(LOGGED) == 0
    assert {run.info.run_id for run in runs(here)} == set(first.values())
    printed = capsys.readouterr().out
    assert f"run: {first['mcp']} (mcp; unchanged)" in printed
    assert f"compare baseline={first['baseline']} candidate={first['mcp']}" in printed
    write_run(here, "mcp", "task-001", trajectory("src/z.py"))
    assert main(LOGGED) == 0
    assert sorted(run.info.run_name for run in runs(here)) == ["baseline", "mcp", "mcp"]
    shutil.rmtree(here / "mlruns" / "artifacts" / first["baseline"])  # as of a run that was deleted
    assert main(LOGGED) == 0
    assert sorted(run.info.run_name for run in runs(here)) == ["baseline", "baseline", "mcp", "mcp"]
    for asked in ("statistics.test=t", "timelines=1"):  # which the report that goes with a run tells
        before = len(runs(here))
        assert main([*LOGGED, asked]) == 0
        assert len(runs(here)) == before + 2


def test_a_run_that_was_deleted_is_logged_again(tracking: Tracking, here: Path) -> None:
    assert main(LOGGED) == 0
    (mcp,) = [run for run in runs(here) if run.info.run_name == "mcp"]
    MlflowClient(f"sqlite:///{here}/mlruns/mlflow.db").delete_run(mcp.info.run_id)
    assert main(LOGGED) == 0
    (again,) = [run for run in runs(here) if run.info.run_name == "mcp"]
    assert again.info.run_id != mcp.info.run_id
    assert len(runs(here)) == 2


@pytest.mark.parametrize(
    "record", ["[]", '{"mcp": 1, "baseline": {"run": 1, "of": 2}}', '{"mcp": {"ru', "\xff", "null"]
)
def test_a_damaged_record_of_logged_configurations_is_reported_and_rewritten(
    tracking: Tracking, here: Path, record: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(LOGGED) == 0
    (here / "out" / "logged.json").write_text(record, encoding="latin-1")
    assert main(LOGGED) == 0
    assert "out/logged.json: damaged; logging all configurations again" in " ".join(capsys.readouterr().err.split())
    assert len(runs(here)) == 4
    assert read(here / "out" / "logged.json").keys() == {"baseline", "mcp"}


def test_without_ground_truth_there_is_a_report_and_nothing_to_log(
    tracking: Tracking, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word for word in LOGGED if not word.startswith("tasks")]) == 0
    said = capsys.readouterr().err
    assert "not logged: mcp: none of the 4 tasks has ground truth" in said
    assert (
        "4 of 4 tasks are not measured, because they have no definition (tasks=FOLDER is not set): "
        "task-000, task-001, task-002, ..."
    ) in said
    assert not runs(here)
    assert "0 with ground truth" in (here / "out" / "report.md").read_text()


def test_one_trace_is_printed_as_json_and_nothing_else(here: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    file = "runs/official/run_1/mcp/task-000/agent/trajectory.json"
    assert main(["traces", f"file={file}", "tasks=tasks"]) == 0
    printed = capfdbinary.readouterr()
    document = json.loads(printed.out)
    assert document["provenance"]["task_name"] == "task-000"
    assert document["summary"]["ground_truth_files_hit"] == 2
    assert printed.err == b""


def test_one_trace_is_printed_without_loading_reports_or_tracking(here: Path) -> None:
    words = ["traces", "file=runs/official/run_1/mcp/task-000/agent/trajectory.json", "tasks=tasks"]
    loaded = "sorted({'rich', 'jinja2', 'runner.features.traces.pipeline', 'runner.tracking'} & set(sys.modules))"
    code = f"import sys; from runner.__main__ import main; print(main({words!r}), {loaded}, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "0 []"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["output=out"], "path, file: neither is set"),
        ([RUNS, "file=x"], "path, file: both are set"),
        ([RUNS], "output: is required"),
        (["path=none", "output=out"], "path=none: no such folder"),
        (["path=tasks/suite/task-000/tests", "output=out"], "contains no agent runs"),
        ([RUNS, "output=runs/official/run_1/mcp/task-000/result.json"], "cannot be written"),
        ([RUNS, "output=."], "output=.: contains the runs of path=runs; choose another folder"),
        ([RUNS, "output=out", "tasks=none"], "tasks=none: no such folder"),
        ([RUNS, "output=out", "tools=none.yaml"], "tools=none.yaml: cannot be read"),
        ([RUNS, "output=out", "baseline=basline"], "did you mean baseline?"),
        ([RUNS, "output=out", "workers=0"], "workers=0: should be greater than or equal to 1"),
        ([RUNS, "output=out", "worker=2"], "did you mean workers?"),
        (
            [RUNS, "output=out", "statistics.correction=tukey"],
            "statistics.correction=tukey: only corrects tests of all pairs of systems",
        ),
        (["file=none.json"], "file=none.json: no such file"),
    ],
)
def test_a_mistake_is_one_line_before_any_work(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["traces", *words, "log=false"]) == USER_MISTAKE
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.err.count("\n") == 1
    assert not shown.out
    assert not (here / "out").exists()


def test_files_in_the_output_folder_are_not_runs(here: Path) -> None:
    inside = [word.replace("path=runs", "path=.").replace("output=out", "output=runs/made") for word in SILENT]
    write_run(here / "runs" / "made", "mcp", "task-009", trajectory("a.py"))
    assert main(inside) == 0
    assert read(here / "runs" / "made" / "run_retrieval_summary.json")["total_event_files"] == 8


def test_another_baseline_can_be_named(tracking: Tracking, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LOGGED, "baseline=mcp"]) == 0
    ids = {run.info.run_name: run.info.run_id for run in runs(here)}
    assert f"compare baseline={ids['mcp']} candidate={ids['baseline']}" in capsys.readouterr().out


def write_priced_runs(here: Path, tasks: int = 6) -> None:
    """Write runs of two agents on tasks, and a task that only one of them has, with costs, times and rewards."""
    for number in range(tasks + 1):
        task = f"task-{number:03}"
        write_task(here / "tasks", task)
        for config, reads, dollars, seconds in (
            ("baseline", ("src/x.py", "src/a.py"), 0.5 + 0.25 * number, 90),
            ("mcp", ("src/a.py", *(["src/b.py"] if number % 2 else [])), 0.25, 60 - number),
        ):
            if config == "baseline" or number < tasks:
                folder = write_run(here, config, task, trajectory(*reads))
                outcome = {"reward": 0.2 * number, "cost_usd": dollars, "duration_seconds": seconds}
                usage = {"input_tokens": 5000 + 100 * number, "output_tokens": 400}
                (folder / "result.json").write_text(json.dumps({"task_name": task, **outcome, **usage}))


def test_compare_tests_retrieval_time_and_cost_of_two_agents_task_by_task(
    tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_priced_runs(tmp_path)
    assert main(LOGGED) == 0
    (command,) = re.findall(r"python -m runner (compare .*)", capsys.readouterr().out)
    assert main([*command.split(), "gate=none", "statistics.test=t", "statistics.correction=none", "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert any("without task-006, because not all results have them" in note for note in compared["notes"])
    before, after = (
        {measure: of["systems"][label] for measure, of in compared["measures"].items()} for label in ("baseline", "mcp")
    )
    dollars = np.array([0.5 + 0.25 * number for number in range(6)])
    cost = after["agent/cost"]
    assert (before["agent/cost"]["mean"], cost["mean"]) == (pytest.approx(dollars.mean()), 0.25)
    assert cost["difference"] == pytest.approx((0.25 - dollars).mean())
    assert cost["p"] == pytest.approx(stats.ttest_1samp(0.25 - dollars, 0).pvalue)
    assert (cost["wins"], cost["ties"], cost["losses"]) == (0, 0, 6)
    assert (before["agent/seconds"]["mean"], after["agent/seconds"]["mean"]) == (90, 57.5)
    assert after["agent/tokens"]["mean"] == 5650
    assert after["agent/reward"]["mean"] == pytest.approx(0.5)
    recall = after["agent/file_recall"]
    assert (before["agent/file_recall"]["mean"], recall["mean"], recall["difference"]) == (0.5, 0.75, 0.25)
    assert (recall["wins"], recall["ties"]) == (3, 3)
    assert after["RR"]["difference"] == 0.5
    assert before["agent/ttfr_seconds"]["mean"] == 1.0
    assert after["agent/context_efficiency"]["difference"] == 0.5


def test_compare_shows_outcomes_of_agents_in_its_tables(
    tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_priced_runs(tmp_path)
    assert main(LOGGED) == 0
    (command,) = re.findall(r"python -m runner (compare .*)", capsys.readouterr().out)
    assert main([*command.split(), "gate=none", "output=out"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = {line[0]: line[1:3] for line in reversed(lines) if line and line[0].startswith("agent/")}
    assert rows["agent/cost"] == ["1.1250", "0.2500"]
    assert rows["agent/tokens"] == ["5,650", "5,650"]
    assert rows["agent/seconds"] == ["90.0000", "57.5000"]
    assert "agent/cost" in (tmp_path / "out" / "comparison.html").read_text()


def test_a_task_without_a_definition_is_named(again: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(again / "tasks" / "suite" / "task-002")
    assert main(SILENT) == 0
    shown = capsys.readouterr()
    assert (
        "1 of 4 tasks are not measured, because they have no definition (tasks=tasks has no folder of this "
        "name): task-002"
    ) in shown.err
    assert "6 with ground truth" in shown.out


def test_the_console_fits_80_columns(
    again: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(SILENT) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_the_documented_format_of_one_s_own_is_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "traces.md").read_text(encoding="utf-8")
    chapter = page.partition("## A custom trace format")[2]
    reader, entry = re.findall(r"```python\n(.*?)```", chapter, re.DOTALL)
    document = re.search(r"```json\n(.*?)```", chapter, re.DOTALL)
    assert document
    mine = ModuleType("mine")
    exec(reader, vars(mine))
    known = {**formats.FORMATS, **eval(f"{{{entry}}}", {"Format": formats.Format, "mine": mine})}
    (tmp_path / "task" / "agent").mkdir(parents=True)
    (tmp_path / "task" / "agent" / "mine.json").write_text(document[1])
    (run,) = find_runs(tmp_path, formats=known)
    assert run.transcript
    trace = formats.read_trace(run.transcript, lambda call: (call.name, call.arguments, call.result), known)
    assert [step.seen for step in trace.steps] == [
        ("Read", {"path": "a.py"}, "import b"),
        ("Grep", {"pattern": "b"}, "b.py:1:b"),
    ]
    assert (trace.source, trace.losses) == ("transcript", {"calls without a tool": 1})
