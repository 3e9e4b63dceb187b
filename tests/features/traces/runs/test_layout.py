"""Runs are found in every layout, each once and in order, with whose they are and where their task is defined."""

from __future__ import annotations

import json
import os
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.config.objects import ConfigError
from runner.features.traces.formats import FORMATS, Format, atif
from runner.features.traces.runs.layout import RunFolder, find_runs
from runner.features.traces.runs.outcomes import read_outcome
from runner.features.traces.runs.provenance import Provenance
from runner.features.traces.runs.tasks import Tasks, find_tasks, strip_decoration
from runner.features.traces.runs.walk import walk_folders
from runner.features.traces.trace import TraceSource
from runner.features.traces.truth.ground_truth import read_ground_truth
from tests.strategies.runs import RUN_NAMES


def run(folder: Path, *names: str, **records: object) -> Path:
    """Write a run: traces by name, records by name without suffix."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}\n")
    for record, content in records.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{record}.json").write_text(json.dumps(content))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def list_runs(path: Path, tasks: Tasks | None = None) -> list[RunFolder]:
    return list(find_runs(path, tasks))


def test_a_run_in_the_staged_layout_is_identified_by_its_path(tmp_path: Path) -> None:
    folder = run(tmp_path / "runs/staging/fix_1/baseline-local/some-task-001", "agent/trajectory.json")
    (only,) = list_runs(tmp_path)
    assert only == RunFolder(
        folder=folder,
        provenance=Provenance("fix_1", "some-task-001", "baseline-local", "unknown"),
        artifact="baseline-local/some-task-001",
        trajectory=folder / "agent" / "trajectory.json",
    )


@pytest.mark.parametrize("below", ["", "runs", "runs/official", "runs/official/run_a", "runs/official/run_a/mcp"])
def test_whose_run_it_is_does_not_depend_on_the_folder_that_is_named(tmp_path: Path, below: str) -> None:
    trial = tmp_path / "runs/official/run_a/mcp/2026-02-23__17-12-32/task-one-00__D9CcXfP"
    run(trial, "agent/claude-code.txt", result={"task_name": "task-one-001", "trial_name": "t__D9CcXfP"})
    (only,) = list_runs(tmp_path / below)
    assert only.provenance == Provenance(
        "run_a", "task-one-001", "mcp", "unknown", batch_timestamp="2026-02-23__17-12-32", trial_name="t__D9CcXfP"
    )


def test_a_result_of_harbor_tells_task_suite_and_model(tmp_path: Path) -> None:
    result = {
        "task_name": "envoy-001",
        "config": {"task": {"path": "/elsewhere/benchmarks/ccb_fix/envoy-001"}},
        "agent_info": {"name": "claude-code", "model_info": {"name": "claude-haiku-4-5"}},
    }
    run(tmp_path / "runs/staging/r/mcp/batch_of_envoy/envoy-001__Zz12345", "agent/trajectory.json", result=result)
    (only,) = list_runs(tmp_path)
    assert only.provenance == Provenance(
        "r", "envoy-001", "mcp", "ccb_fix", trial_name="envoy-001__Zz12345", model="claude-haiku-4-5"
    )


def test_line_breaks_and_invalid_characters_in_names_are_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "official" / "a\nb" / "mcp\t\u2028x" / os.fsdecode(b"t\xff \xf0\x9f\x98\x80")
    (told,) = list_runs(run(folder, "agent/trajectory.json"))
    said = told.provenance
    assert (said.run_id, said.config_name, said.task_name) == ("a\ufffdb", "mcp\ufffd\ufffdx", "t\ufffd \U0001f600")
    assert told.folder == folder


def test_the_shelves_of_a_stage_are_no_runs(tmp_path: Path) -> None:
    run(tmp_path / "runs/official/archive/run_a/mcp/t-1", "trajectory.json")
    assert list_runs(tmp_path)[0].provenance == Provenance("run_a", "t-1", "mcp", "unknown")


def test_the_flat_layout_reads_run_and_configuration_from_records_or_folders(tmp_path: Path) -> None:
    run(
        tmp_path / "batch_1/task-a-001_hybrid",
        "agent_stdout.log",
        results={"task_id": "task-a-001"},
        config={"mode": "hybrid"},
    )
    run(tmp_path / "batch_2/baseline/task-b-001", "trajectory.json")
    assert [
        (each.provenance.run_id, each.provenance.config_name, each.provenance.task_name) for each in list_runs(tmp_path)
    ] == [
        ("batch_1", "hybrid", "task-a-001"),
        ("batch_2", "baseline", "task-b-001"),
    ]


def test_repeats_below_a_task_are_runs_of_their_own(tmp_path: Path) -> None:
    for repeat in (1, 2):
        run(
            tmp_path / f"studies/s5/runs/task-001/cli/rep{repeat}/attempt1",
            "agent_trace.jsonl",
            results={"task_id": "task-001"},
            config={"mode": "cli"},
        )
    assert [(each.provenance, each.artifact) for each in list_runs(tmp_path)] == [
        (Provenance("s5", "task-001", "cli", "unknown", trial_name="rep1-attempt1"), "cli/task-001"),
        (Provenance("s5", "task-001", "cli", "unknown", trial_name="rep2-attempt1"), "cli/task-001--s5"),
    ]


def test_a_single_folder_may_be_a_run_and_have_runs_below(tmp_path: Path) -> None:
    run(tmp_path / "deep/er/and/deeper", "transcript.jsonl")
    run(tmp_path / "deep", "trajectory.json")
    assert [each.folder.name for each in list_runs(tmp_path / "deep")] == ["deep", "deeper"]


def test_each_kind_of_trace_is_taken_from_its_likeliest_place_and_is_not_empty(tmp_path: Path) -> None:
    names = ("agent/trajectory.json", "trajectory.json", "agent_stdout.log", "transcript.txt", "agent_trace.jsonl")
    folder = run(tmp_path / "a", *names)
    (folder / "agent" / "trajectory.json").write_bytes(b"")
    (only,) = list_runs(tmp_path)
    taken = [only.trajectory, only.transcript, only.session]
    assert taken == [folder / "trajectory.json", folder / "transcript.txt", folder / "agent_trace.jsonl"]


@pytest.mark.parametrize("source", ["trajectory", "transcript"])
def test_a_folder_is_searched_for_the_names_of_every_format(tmp_path: Path, source: TraceSource) -> None:
    folder = run(tmp_path / "a", "agent/mine.json", "agent/mine.log.gz")
    mine = Format(source, b"mine", atif.read, names=("mine.json",), sessions=("mine.log",))
    assert not list_runs(tmp_path)[0].session
    (only,) = find_runs(tmp_path, formats={**FORMATS, "Mine": mine})
    assert getattr(only, source) == folder / "agent" / "mine.json"
    assert only.session == folder / "agent" / "mine.log.gz"


def test_an_empty_trace_counts_if_it_is_the_only_one(tmp_path: Path) -> None:
    (tmp_path / "trajectory.json").touch()
    assert list_runs(tmp_path)[0].trajectory == tmp_path / "trajectory.json"


def test_a_packed_trace_is_used_and_a_folder_only_if_nothing_else_is_there(tmp_path: Path) -> None:
    run(tmp_path / "a" / "t1", "agent_stdout.log", "agent_trace.jsonl.gz")
    run(tmp_path / "a" / "t2", "trajectory.json.gz", "agent_trace.jsonl/within", "session.jsonl")
    run(tmp_path / "a" / "t3", "agent_stdout.log", "agent_trace.jsonl/within")
    one, two, three = list_runs(tmp_path)
    assert (one.transcript, one.session) == (one.folder / "agent_stdout.log", one.folder / "agent_trace.jsonl.gz")
    assert (two.trajectory, two.session) == (two.folder / "trajectory.json.gz", two.folder / "session.jsonl")
    assert three.session == three.folder / "agent_trace.jsonl"


def test_the_session_of_an_agent_is_listed_without_its_subagents(tmp_path: Path) -> None:
    sessions = "agent/sessions/projects/-app"
    folder = run(tmp_path / "t", "agent/claude-code.txt", f"{sessions}/b.jsonl", f"{sessions}/agent-a.jsonl")
    assert list_runs(tmp_path)[0].session == folder / sessions / "b.jsonl"


@pytest.mark.parametrize(
    "left", [{"result": {"task_name": "t-1"}}, {"results": {}}, {"task_metrics": []}, {"result": "no object"}]
)
def test_a_run_without_a_trace_is_a_run(tmp_path: Path, left: dict[str, object]) -> None:
    run(tmp_path / "some/cfg/t-1", **left)
    (only,) = list_runs(tmp_path)
    assert (only.trajectory, only.transcript, only.session) == (None, None, None)
    assert only.provenance.task_name == "t-1"


def test_an_empty_folder_at_the_place_of_a_task_is_a_run_and_elsewhere_is_none(tmp_path: Path) -> None:
    for place in ("runs/staging/r/c/t-1", "runs/staging/r/c/2026-02-23__17-12-32", "runs/staging/r", "else/where"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
    assert [each.folder.name for each in list_runs(tmp_path)] == ["t-1"]


def test_batch_results_and_files_derived_from_a_run_are_not_runs(tmp_path: Path) -> None:
    batch = run(tmp_path / "runs/staging/r/c/batch", result={"n_total_trials": 1})
    run(tmp_path / "runs/staging/r/c/lost", result={"n_total_trials": 1})
    trial = run(batch / "t__Abc1234", "agent/trajectory.json")
    run(trial / "verifier", result={"reward": 1.0})
    run(tmp_path / "runs/staging/r/retrieval_events/c")
    assert [each.folder for each in list_runs(tmp_path)] == [trial]


def test_a_run_with_damaged_records_is_listed_and_its_outcome_names_them(tmp_path: Path) -> None:
    folder = run(tmp_path / "c/t-1", "trajectory.json", result=[])
    (folder / "config.json").write_bytes(b"\0")
    assert [each.folder for each in list_runs(tmp_path)] == [folder]
    assert read_outcome(folder)["problems"] == (
        "result.json: expected a JSON object",
        "config.json: binary data instead of text",
    )


def test_circular_links_end_and_a_folder_is_listed_once(tmp_path: Path) -> None:
    folder = run(tmp_path / "a/t-1", "trajectory.json")
    (folder / "up").symlink_to(tmp_path)
    (tmp_path / "b").symlink_to(folder)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    assert [each.folder for each in list_runs(tmp_path)] == [folder]


def test_a_folder_that_cannot_be_listed_does_not_stop_the_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b", "c"):
        run(tmp_path / name, "trajectory.json")
    scandir = os.scandir

    def refusing(folder: Path) -> object:
        if folder.name == "b":
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    assert [each.folder.name for each in list_runs(tmp_path)] == ["a", "c"]
    assert "b: cannot be listed and is skipped (Permission denied)" in caplog.text


def test_a_deep_tree_is_walked_to_its_end(tmp_path: Path) -> None:
    deep = run(tmp_path.joinpath(*["d"] * 200), "trajectory.json")
    assert list_runs(tmp_path)[0].folder == deep


def test_a_path_that_is_not_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"path=.*none: no such folder"):
        list_runs(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"path=.*file: expected a folder of runs, found a file"):
        list_runs(tmp_path / "file")


def test_runs_of_one_task_and_configuration_never_share_an_artifact(tmp_path: Path) -> None:
    for number in range(5):
        run(
            tmp_path / f"d{number}" / "run_a" / "x",
            "trajectory.json",
            results={"task_id": "Task/One" if number else "task/one"},
            config={"mode": "../etc"},
        )
    artifacts = [each.artifact for each in list_runs(tmp_path)]
    assert artifacts[:3] == ["__etc/task_one", "__etc/Task_One--run_a", "__etc/Task_One--run_a--x"]
    assert len({artifact.casefold() for artifact in artifacts}) == 5


def test_artifact_names_fit_in_a_file_name_and_stay_unique_for_long_names(tmp_path: Path) -> None:
    task, batch, trial = ("é" * 90 + end for end in "abc")
    for number in range(4):
        run(tmp_path / f"d{number}" / batch / trial, "trajectory.json", results={"task_id": task}, config={"mode": "m"})
    artifacts = [each.artifact for each in list_runs(tmp_path)]
    assert len(set(artifacts)) == 4
    assert max(len(Path(artifact).name.encode()) for artifact in artifacts) < 230


@given(names=st.lists(st.tuples(RUN_NAMES, RUN_NAMES), min_size=1, max_size=4))
def test_an_artifact_is_a_safe_relative_path_and_no_other_runs(
    names: Sequence[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("runs")
    for number, (config, task) in enumerate(names):
        run(root / str(number), "trajectory.json", results={"task_id": task}, config={"mode": config})
    artifacts = [each.artifact for each in list_runs(root)]
    assert len({artifact.casefold() for artifact in artifacts}) == len(names)
    for artifact in artifacts:
        parts = Path(artifact).parts
        assert len(parts) == 2
        assert ".." not in parts
        assert all(len(part.encode()) < 240 and part.isprintable() for part in parts)


@given(
    contents=st.dictionaries(
        st.sampled_from(["result", "results", "task_metrics", "config", "signals", "metadata"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=20),
            lambda below: (
                st.lists(below, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["task_name", "task_id", "config", "task", "path", "mode", "model", "agent_info"]),
                    below,
                    max_size=4,
                )
            ),
        ),
    )
)
def test_any_json_in_any_record_leaves_a_run_with_a_name(
    contents: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("runs")
    run(root / "r" / "t", "trajectory.json", **contents)
    (only,) = list_runs(root)
    told = asdict(only.provenance)
    assert all(isinstance(told[name], str) and told[name] for name in ("run_id", "task_name", "config_name"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sdlc_test_envoy-code-review-001_Z8m4il", "envoy-code-review-001"),
        ("mcp_ccx-migration-114_0b2c8f22", "ccx-migration-114"),
        ("sgonly_django-csrf-session-audit-001", "django-csrf-session-audit-001"),
        ("ansible-abc-imports-fix-001__D9CcXfP", "ansible-abc-imports-fix-001"),
        ("instance_nodebb__nodebb-eb49a64974ca-vnan", "instance_nodebb__nodebb-eb49a64974ca-vnan"),
        (
            "c_api_graphql_expert_079_cross_file_refactoring_expert_01",
            "c_api_graphql_expert_079_cross_file_refactoring_expert_01",
        ),
        ("api_upgrade_01", "api_upgrade_01"),
        ("my_task-with-search", "my_task-with-search"),
    ],
)
def test_what_a_run_adds_to_a_tasks_name_is_taken_off(name: str, expected: str) -> None:
    assert strip_decoration(name) == expected


def test_a_task_matches_any_spelling_of_its_name(tmp_path: Path) -> None:
    for name in ("suite/instance_a-b-c1", "suite/core", "suite/api_upgrade_01", "suite/dep-001", "suite/dep-001-more"):
        run(tmp_path / name, "tests/ground_truth.json")
    tasks = find_tasks([tmp_path])
    assert {
        name: [path.name for path in tasks.find(name)] for name in ("instance_a__b-c1", "X_api_upgrade_01_hybrid")
    } == {
        "instance_a__b-c1": ["instance_a-b-c1"],
        "X_api_upgrade_01_hybrid": ["api_upgrade_01"],
    }
    assert [path.name for path in tasks.find("mcp_DEP-001-more_0b2c8f22")] == ["dep-001-more"]
    assert [path.name for path in tasks.find("Core")] == ["core"]
    assert not tasks.find("dep-0012")
    assert not tasks.find("rewrite_core_loop")
    assert not tasks.find("_" * 100_000)


def test_a_task_matches_the_id_in_its_manifest(tmp_path: Path) -> None:
    manifests = {
        "inv-002": '[task]\nid = "inv-watch-delete"\n',
        "inv-003": '[metadata]\ntask_id = "inv_vxlan"\n',
        "inv-004": 'id = "inv-002"\n',
        "inv-005": "[task\n",
    }
    for name, content in manifests.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "task.toml").write_text(content)
    tasks = find_tasks([tmp_path])
    assert tasks.find("mcp_inv-watch-delete_Ab12Cd") == (tmp_path / "inv-002",)
    assert tasks.find("inv-vxlan") == (tmp_path / "inv-003",)
    assert tasks.find("inv-002") == (tmp_path / "inv-002",)  # a folder's own name comes first
    assert tasks.find("inv-005") == (tmp_path / "inv-005",)


def test_real_tasks_match_their_ids(real_traces: Path) -> None:
    tasks = find_tasks([real_traces / "tasks"])
    manifests = sorted((real_traces / "tasks").rglob("task.toml"))
    ids = {file.parent: tomllib.loads(file.read_text()).get("task", {}).get("id") for file in manifests}
    named = {folder: name for folder, name in ids.items() if name}
    assert (len(manifests), len(named)) == (29, 19)
    assert sum(folder.name != name for folder, name in named.items()) == 14
    assert all(folder in tasks.find(name) for folder, name in named.items())


def test_a_task_that_several_suites_have_is_that_of_the_runs_suite(tmp_path: Path) -> None:
    for suite in ("fix", "test"):
        run(tmp_path / "tasks" / suite / "t-1", "task.toml")
    run(tmp_path / "runs/x/c/t-1", "trajectory.json", task_metrics={"benchmark": "test", "task_id": "t-1"})
    (only,) = list_runs(tmp_path / "runs", find_tasks([tmp_path / "tasks"]))
    assert only.tasks == [tmp_path / "tasks/test/t-1"]
    assert only.provenance.benchmark == "test"


def test_a_walk_is_in_order_and_passes_over_hidden_folders(tmp_path: Path) -> None:
    for name in ("b/z", "b/a", "a", ".git/x", "node_modules/y"):
        (tmp_path / name).mkdir(parents=True)
    assert [str(place.path.relative_to(tmp_path)) for place in walk_folders(tmp_path)] == [".", "a", "b", "b/a", "b/z"]


TRIALS = {
    "000624051b19": ("envoy-code-review-001", "claude-code", 4),
    "002a72814c6d": ("ccx-migration-114", "openhands", 11),
    "00394cf1398f": ("ccx-migration-026", "claude-code", 164),
    "0061770ad596": ("ccx-dep-trace-266", "claude-code", 0),
    "008ec30ffd07": ("terraform-plan-pipeline-qa-001", "claude-code", 0),
    "00b4ce1936bf": ("django-csrf-session-audit-001", "claude-code", 0),
    "00d5a78071e9": ("cilium-project-orient-001", "openhands", 0),
    "0156d72a05e2": ("ccx-domain-155", "claude-code", 0),
    "0190c4720f06": ("ccx-dep-trace-116", "openhands", 0),
    "03230b56f191": ("ccx-vuln-remed-126", "openhands", 0),
    "04fc056c642f": ("aspnetcore-code-review-001", "openhands", 2),
    "054761e8e3d8": ("ccx-incident-149", "openhands", 10),
    "068ef6fe2e31": ("flink-pricing-window-feat-001", "openhands", 0),
    "0a5898e7708f": ("ccx-compliance-190", "claude-code", 11),
    "1e725679752e": ("ccx-domain-160", "openhands", 0),
    "208a5885ab4c": ("ccx-migration-107", "cursor-cli", 0),
    "2448941ec16d": ("argocd-arch-orient-001", "claude-code", 0),
    "31af7e052567": ("ccx-crossorg-295", "cursor-cli", 0),
    "618b26fe2482": ("instance_nodebb-nodebb-eb49a64974ca844bca061744fb3383f5d13b02ad-vnan", "claude-code", 14),
    "95afa05196ef": ("ccx-incident-037", "cursor-cli", 16),
    "ada41220d7c3": ("servo-css-container-query-feat-001", "cursor-cli", 0),
    "d8a721d20251": ("ccx-compliance-292", "cursor-cli", 0),
    "f52127211e00": ("ccx-vuln-remed-135", "cursor-cli", 0),
}
"""Trial: its task, its configuration, how many gold files the task has."""


@pytest.mark.parametrize("below", ["", "trials"])
def test_real_trials_are_listed_with_their_tasks_and_gold_files(real_traces: Path, below: str) -> None:
    runs = [
        each
        for each in list_runs(real_traces / below, find_tasks([real_traces]))
        if each.folder.parent.name == "trials"
    ]
    assert {
        each.folder.name: (
            each.provenance.task_name,
            each.provenance.config_name,
            len(read_ground_truth(each.tasks).files),
        )
        for each in runs
    } == TRIALS
    assert {each.provenance.run_id for each in runs} == TRIALS.keys()
    assert all(each.trajectory and not each.transcript for each in runs)


RUNS = {
    "mcp_batch_v2/cal-drift-flask-config-001_hybrid": ("mcp_batch_v2", "cal-drift-flask-config-001", "hybrid"),
    "mcp_batch_v2/dep-traversal-001_hybrid": ("mcp_batch_v2", "dep-traversal-001", "hybrid"),
    "mcp_batch_v3/cal-drift-flask-config-001_hybrid": ("mcp_batch_v3", "cal-drift-flask-config-001", "hybrid"),
    "mcp_batch_v3/dep-traversal-001_hybrid": ("mcp_batch_v3", "dep-traversal-001", "hybrid"),
    "mcp_batch_v6/api-contract_hybrid": ("mcp_batch_v6", "api-contract-grpc-metadata-001", "hybrid"),
    "mcp_batch_v6/dep-traversal_hybrid": ("mcp_batch_v6", "dep-traversal-001", "hybrid"),
    "smoke_hybrid_v4": ("smoke_hybrid_v4", "cal-drift-flask-config-001", "hybrid"),
    "smoke_mcp_v2": ("smoke_mcp_v2", "cal-drift-flask-config-001", "mcp_only"),
    **{
        f"studies/rryas-headline-v5/runs/dep-graph-tri-tokio-hyper-tonic-001/{mode}/rep1/attempt1": (
            "rryas-headline-v5",
            "dep-graph-tri-tokio-hyper-tonic-001",
            mode,
        )
        for mode in ("baseline", "cli", "mcp_only")
    },
}


def test_real_runs_are_listed_with_both_their_traces(real_traces: Path) -> None:
    runs = list_runs(real_traces / "runs", find_tasks([real_traces / "tasks"]))
    assert {
        str(each.folder.relative_to(real_traces / "runs")): (
            each.provenance.run_id,
            each.provenance.task_name,
            each.provenance.config_name,
        )
        for each in runs
    } == RUNS
    assert all(each.transcript and each.session for each in runs)
    assert max(Counter(each.artifact for each in runs).values()) == 1
