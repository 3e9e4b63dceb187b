"""Each source of gold files is read in its real shapes; what is damaged is named, and the next source is asked."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.runs.records import LARGEST_BYTES
from runner.features.traces.truth.gold_files import find_paths, parse_files, parse_patch
from runner.features.traces.truth.ground_truth import GoldChunk, GoldFile, GoldSymbol, GroundTruth, read_ground_truth
from tests.strategies.gold import GOLD_JSON

PATCH = """\
diff --git a/src/old name.py b/src/new name.py
similarity index 90%
rename from src/old name.py
rename to src/new name.py
diff --git a/src/app.py b/src/app.py
--- a/src/app.py
+++ b/src/app.py
@@ -1,2 +1,1 @@
--- a/not/a/header.py
-removed
diff --git a/docs/new.md b/docs/new.md
new file mode 100644
--- /dev/null
+++ b/docs/new.md
@@ -0,0 +1 @@
"""
PATCHED = ["src/old name.py", "src/new name.py", "src/app.py", "docs/new.md"]


def task(folder: Path, files: dict[str, object]) -> Path:
    """Write the definition of a task: JSON for what is no text."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def paths(files: Sequence[GoldFile] | None) -> list[str] | None:
    return None if files is None else [file.path for file in files]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (["a.py", "src/b.py"], [GoldFile("a.py"), GoldFile("src/b.py")]),
        ({"files": ["kafka::a.java", "kafka::a.java"]}, [GoldFile("kafka::a.java")]),
        ({"files": [{"repo": "owner/repo--v1", "path": "a.ts"}]}, [GoldFile("a.ts", "owner/repo--v1")]),
        ({"file_references": ["a.py", {"file": "b.py", "repo": None}]}, [GoldFile("a.py"), GoldFile("b.py")]),
        ({"buggy_files": ["a.py"], "buggy_functions": ["f"]}, [GoldFile("a.py")]),
        ({"entries": [{"file": "a.py", "line": 3}, {"file": "a.py"}]}, [GoldFile("a.py")]),
        (
            {"required_files": [{"path": "a.go", "repo": "x", "confidence": 0.9}], "sufficient_files": ["b.go"]},
            [GoldFile("a.go", "x")],
        ),
        (
            {"dead_code": [{"file": "src/a.go", "symbol": "f"}, {"file": "Makefile"}], "live_code": [{"file": "b.go"}]},
            [GoldFile("src/a.go"), GoldFile("Makefile")],
        ),
        (
            {"report": {"drift_points": [{"path": "a.go", "repo": "r"}]}, "not_drift": [{"path": "b.go"}]},
            [GoldFile("a.go", "r")],
        ),
        (
            {"services": [{"name": "x", "calls": [{"file_path": "a.go"}]}], "false_positive_traps": [{"file": "b.go"}]},
            [GoldFile("a.go")],
        ),
        (
            {"leaks": [{"file": "a.go"}], "repos": [{"path": "x/b.v2"}], "sufficient_files": [{"path": "c.go"}]},
            [GoldFile("a.go")],
        ),
        ({"canonical_path": "a.go", "function": "f"}, [GoldFile("a.go")]),
        ({"fix_files": ["a.go"], "producer_changed_files": ["b.go"]}, [GoldFile("a.go")]),
    ],
)
def test_ground_truth_json_is_read_in_each_shape(tmp_path: Path, record: object, expected: list[GoldFile]) -> None:
    truth = read_ground_truth(task(tmp_path, {"tests/ground_truth.json": record}))
    assert list(truth.files) == expected
    assert (truth.source, truth.confidence) == ("tests/ground_truth.json", "high")
    assert truth.expected_edit_files is None
    assert not truth.problems


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (
            {"producer_changed_files": ["a.go"], "consumer_affected_files": {"etcd": ["b.go"]}},
            [GoldFile("a.go"), GoldFile("b.go", "etcd")],
        ),
        ({"root_cause": {"file": "a/b.go", "repo": "r", "summary": "s"}}, [GoldFile("a/b.go", "r")]),
        ({"ground_truth": {"file_with_bug": "a/b.txt", "file_note": "in this file"}}, [GoldFile("a/b.txt")]),
        ({"ground_truth": "The fault is in `src/a.c`, not in b.c.", "context_files": ["x/y.c"]}, [GoldFile("src/a.c")]),
    ],
)
def test_an_answer_whose_fields_only_speak_of_files_is_trusted_less(
    tmp_path: Path, record: object, expected: list[GoldFile]
) -> None:
    truth = read_ground_truth(task(tmp_path, {"ground_truth.json": record}))
    assert list(truth.files) == expected
    assert (truth.source, truth.confidence) == ("ground_truth.json", "medium")


@pytest.mark.parametrize(
    "record",
    [
        {"live_code": [{"file": "src/b.go"}]},
        {"not_affected": {"services": [{"path": "src/b.go"}]}},
        {"checks": [{"path": "$.findings"}, {"path": "/workspace/kafka"}, {"path": "src"}]},
        {"output_file": "/workspace/out/b.json", "deliverables": [{"path": "out/c.json"}]},
        {"sufficient_files": ["src/b.go"]},
    ],
)
def test_what_is_to_be_left_alone_or_written_and_folders_are_not_gold(tmp_path: Path, record: object) -> None:
    truth = read_ground_truth(task(tmp_path, {"tests/ground_truth.json": record, "instruction.md": "See `src/a.go`."}))
    assert (paths(truth.files), truth.confidence) == (["src/a.go"], "low")


def test_files_of_which_any_one_is_enough_are_required_only_on_request(tmp_path: Path) -> None:
    record = {"required_files": ["a.go", "b.go"], "sufficient_files": ["b.go", {"path": "c.go", "repo": "x"}]}
    folder = task(tmp_path, {"ground_truth.json": record})
    assert paths(read_ground_truth(folder).files) == ["a.go", "b.go"]
    assert paths(read_ground_truth(folder, sufficient=True).files) == ["a.go", "b.go", "c.go"]


def test_what_a_task_asks_to_write_is_not_gold_where_prose_names_it(tmp_path: Path) -> None:
    instruction = "Read `src/a.c`. Write your findings to `/workspace/reports/out.json`."
    files = {"instruction.md": instruction, "tests/test.sh": "cat reports/out.json\n"}
    truth = read_ground_truth(task(tmp_path, dict(files)))
    assert (paths(truth.files), truth.source) == (["src/a.c"], "instruction.md")
    (tmp_path / "instruction.md").write_text("Write your findings to `reports/out.json`.")
    assert not read_ground_truth(tmp_path).files


def test_defects_may_be_a_field_and_not_the_name_of_a_repository(tmp_path: Path) -> None:
    defects = {"defects": [{"file": "src/a.py", "line_start": 3, "line_end": 5}]}
    truth = read_ground_truth(task(tmp_path, {"tests/expected_defects.json": defects}))
    assert list(truth.files) == [GoldFile("src/a.py")]
    assert list(truth.chunks) == [GoldChunk("src/a.py", 3, 5)]


CHAIN: Sequence[tuple[str, object, str]] = [
    ("tests/ground_truth.json", {"files": ["src/1.py"]}, "high"),
    ("tests/ground_truth_agent.json", {"files": ["src/2.py"]}, "high"),
    ("tests/oracle_answer.json", {"files": [], "chain": [{"path": "src/3.py", "symbol": "f"}]}, "high"),
    ("tests/expected_defects.json", [{"file": "src/4.py", "line_start": 1}], "high"),
    ("tests/expected_changes.json", {"expected_files": ["src/5.py"]}, "high"),
    ("tests/reference_fix.patch", "--- a/src/6.py\n+++ b/src/6.py\n", "high"),
    ("tests/expected.diff", "--- src/7.py\n+++ src/7.py\n", "high"),
    ("tests/expected.patch", "diff --git a/src/8.py b/src/8.py\n", "high"),
    ("solution/solve.sh", "git apply <<E\ndiff --git a/src/9.py b/src/9.py\nE\n", "medium"),
    ("tests/test.sh", "pytest $REPO/src/10.py\n", "medium"),
    ("instruction.md", "See `src/11.py`.\n", "low"),
]


def test_the_surest_source_is_taken_and_what_is_left_out_leaves_it_to_the_next(tmp_path: Path) -> None:
    task(tmp_path, {name: content for name, content, _ in CHAIN})
    for number, (name, _, confidence) in enumerate(CHAIN, start=1):
        truth = read_ground_truth(tmp_path)
        assert (paths(truth.files), truth.source, truth.confidence) == ([f"src/{number}.py"], name, confidence)
        (tmp_path / name).unlink()
    assert read_ground_truth(tmp_path) == GroundTruth()


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b"{}", b"3", b'{"files": null}', b"a\0b", b"\xff\xfe", b'{"files": [[[[[[["a.py"]]]]]]]}']
)
def test_a_source_that_yields_nothing_is_named_and_falls_through(tmp_path: Path, content: bytes) -> None:
    task(tmp_path, {"instruction.md": "src/a.py"})
    (tmp_path / "ground_truth.json").write_bytes(content)
    truth = read_ground_truth(tmp_path)
    assert (paths(truth.files), truth.confidence) == (["src/a.py"], "low")
    assert truth.problems[0].startswith("ground_truth.json: ")


def test_a_file_that_is_too_large_is_named_not_read(tmp_path: Path) -> None:
    (tmp_path / "ground_truth.json").touch()
    os.truncate(tmp_path / "ground_truth.json", LARGEST_BYTES + 1)
    truth = read_ground_truth(tmp_path)
    assert not truth.files
    assert "more than" in truth.problems[0]


def test_a_folder_or_a_pipe_by_the_name_of_a_source_is_none(tmp_path: Path) -> None:
    (tmp_path / "ground_truth.json").mkdir()
    os.mkfifo(tmp_path / "instruction.md")
    assert read_ground_truth(tmp_path) == GroundTruth()


def test_paths_that_climb_or_are_no_paths_are_left_out_and_counted(tmp_path: Path) -> None:
    wrong = ["../../etc/passwd", "a/../b.py", "https://x.org/a.py", "", "a\nb.py", "x" * 2000, 3, None, {"path": 1}]
    truth = read_ground_truth(task(tmp_path, {"ground_truth.json": {"files": ["/workspace/a.py", *wrong]}}))
    assert paths(truth.files) == ["/workspace/a.py"]
    assert truth.problems == (f"ground_truth.json: {len(wrong)} entries contain no usable path",)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"tests/reference_fix.patch": PATCH}, PATCHED),
        ({"solution/solve.sh": f"git apply << 'E'\n{PATCH}E\n"}, PATCHED),
        ({"tests/expected_changes.json": {"expected_file": "c.py"}}, ["c.py"]),
        ({"tests/ground_truth_agent.json": {"files": ["a.py"], "expected_edit_files": ["b.py"]}}, ["b.py"]),
        ({"tests/expected_defects.json": [{"file": "a.py", "line_start": 1}]}, None),
        ({"tests/test.sh": "cat src/a.py"}, None),
        ({"instruction.md": "src/a.py"}, None),
    ],
)
def test_files_to_edit_come_from_surely_known_changes_only(
    tmp_path: Path, files: dict[str, object], expected: list[str] | None
) -> None:
    assert paths(read_ground_truth(task(tmp_path, files)).expected_edit_files) == expected


def test_a_patch_gives_the_files_to_edit_even_if_another_source_gives_gold(tmp_path: Path) -> None:
    files: dict[str, object] = {"tests/ground_truth.json": ["a.py"], "tests/expected.diff": PATCH}
    truth = read_ground_truth(task(tmp_path, files))
    assert paths(truth.files) == ["a.py"]
    assert paths(truth.expected_edit_files) == PATCHED


def test_symbols_and_chunks_are_taken_where_they_are_whole(tmp_path: Path) -> None:
    defects = [
        {"file": "a.c", "line_start": 5, "line_end": 7, "defect_type": "injection"},
        {"file": "a.c", "line_start": 9},
        {"file": "a.c", "line_start": 0, "line_end": 2},
        {"file": "a.c", "line_start": 3, "line_end": 2},
        {"file": "a.c"},
        {"line_start": 1, "line_end": 2},
    ]
    symbols = [{"repo": "r", "path": "a.c", "symbol": "f"}, {"path": "a.c"}, {"symbol": "g"}, "h"]
    oracle = {"artifacts": {"oracle": {"required_symbols": symbols}}}
    truth = read_ground_truth(task(tmp_path, {"tests/expected_defects.json": defects, "tests/task_spec.json": oracle}))
    assert truth.chunks == (GoldChunk("a.c", 5, 7, "injection"), GoldChunk("a.c", 9, 9))
    assert truth.symbols == (GoldSymbol("a.c", "f", "r"),)


def test_spans_of_a_ground_truth_are_gold_files_and_line_ranges(tmp_path: Path) -> None:
    spans = [
        {"path": "src/a.py", "lines": [3, 5]},
        {"path": "b.py", "lines": [7, 7], "grade": 2},
        {"path": "c.py", "lines": [2]},
    ]
    truth = read_ground_truth(task(tmp_path, {"tests/ground_truth.json": {"spans": spans}}))
    assert paths(truth.files) == ["src/a.py", "b.py", "c.py"]
    assert truth.chunks == (GoldChunk("src/a.py", 3, 5), GoldChunk("b.py", 7, 7))


def test_of_several_folders_the_surest_source_counts(tmp_path: Path) -> None:
    first = task(tmp_path / "first", {"instruction.md": "src/a.py"})
    second = task(tmp_path / "second", {"ground_truth.json": ["b.py"]})
    assert paths(read_ground_truth([first, second]).files) == ["b.py"]
    assert read_ground_truth([]) == GroundTruth()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PATCH, PATCHED),
        ('diff --git "a/caf\\303\\251.py" "b/caf\\303\\251.py"\n', ["café.py"]),
        ("--- old/a.py\t2024-01-01\n+++ new/a.py\t2024-01-02\n", ["old/a.py", "new/a.py"]),
        ("--- a/gone.py\r\n+++ /dev/null\r\n", ["gone.py"]),
        ("diff --git a/x b/x b/x b/x\n", ["x b/x"]),
        ("-- a/x.py\n++ b/x.py\n", []),
    ],
)
def test_a_patch_names_the_files_that_it_touches(text: str, expected: list[str]) -> None:
    assert paths(parse_patch(text).files) == expected


@pytest.mark.parametrize(
    ("prose", "expected"),
    [
        ("in `pkg/a/b.go:12`, (lib/c.py), 'src/d-e.test.ts'.", ["pkg/a/b.go", "lib/c.py", "src/d-e.test.ts"]),
        ("/workspace/src/a.c and /app/x/b.c", ["src/a.c", "x/b.c"]),
        ("cat ${ROOT}/src/a.c $HOME/src/b.c", ["src/a.c", "src/b.c"]),
        ("https://example.org/a/b.html, github.com/o/r/a.go", []),
        ("/usr/lib/x.so /tmp/out/x.json ~/a/b.py ../a/b.py /workspace/answer.json", []),
        ("pkg/kubelet/pleg/ and and/or 1.5/2.5 path/to/file.py node_modules/a/b.js", []),
    ],
)
def test_prose_names_files_by_paths_in_a_checkout(prose: str, expected: list[str]) -> None:
    assert find_paths(prose) == expected


SOURCES = [name for name, *_ in CHAIN] + ["tests/task_spec.json"]


@given(contents=st.dictionaries(st.sampled_from(SOURCES), GOLD_JSON, max_size=4))
def test_any_json_in_any_file_gives_usable_ground_truth(
    contents: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    truth = read_ground_truth(task(tmp_path_factory.mktemp("task"), contents))
    assert (truth.source is None) == (not truth.files)
    assert all(file.path and ".." not in file.path.split("/") for file in truth.files)
    assert all(1 <= chunk.start <= chunk.end for chunk in truth.chunks)
    assert len(set(truth.files)) == len(truth.files)


@given(content=st.binary(max_size=60), name=st.sampled_from(SOURCES))
def test_any_bytes_in_any_file_are_read_or_named(
    content: bytes, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = task(tmp_path_factory.mktemp("task"), {name: ""})
    (folder / name).write_bytes(content)
    assert all(problem.startswith(name) for problem in read_ground_truth(folder).problems)


@given(st.text("ab/.- \n\"'`:$~{}\\", max_size=200))
def test_what_prose_names_is_in_it_and_is_a_path(prose: str) -> None:
    assert all(path in prose for path in find_paths(prose) if "$" not in prose)
    assert all("/" in path for path in find_paths(prose))


@given(GOLD_JSON)
def test_what_an_entry_names_is_the_same_however_often_it_is_named(value: object) -> None:
    assert parse_files([value, value]).files == parse_files([value]).files


GOLD: Sequence[tuple[str, int, str | None]] = [
    ("ccx-compliance-052", 62, "high"),
    ("ccx-compliance-190", 11, "high"),
    ("ccx-incident-037", 16, "high"),
    ("ccx-incident-149", 10, "high"),
    ("ccx-migration-026", 164, "high"),
    ("ccx-migration-114", 11, "high"),
    ("ccx-migration-294", 6, "high"),
    ("linux-acpi-backlight-fault-001", 1, "high"),
    ("linux-hda-intel-suspend-fault-001", 1, "high"),
    ("linux-nfs-inode-revalidate-fault-001", 1, "high"),
    ("qutebrowser-adblock-cache-regression-prove-001", 1, "high"),
    ("aspnetcore-code-review-001", 2, "high"),
    ("envoy-code-review-001", 4, "high"),
    ("api_upgrade_01", 2, "high"),
    ("bug_localization_01", 1, "high"),
    ("cross_file_reasoning_01", 2, "high"),
    ("refactor_rename_01", 1, "high"),
    ("simple_test_01", 0, None),
    ("api-contract-001", 11, "medium"),
    ("api-contract-002", 5, "medium"),
    ("api-contract-003", 14, "medium"),
    ("api-contract-004", 8, "medium"),
    ("api-contract-005", 13, "medium"),
    ("api-contract-006", 15, "medium"),
    ("api-contract-007", 3, "high"),
    ("api-contract-008", 3, "medium"),
    ("api-contract-dual-envoy-istio-001", 4, "high"),
    ("api-contract-dual-fastapi-001", 4, "high"),
    ("api-contract-dual-hyper-reqwest-001", 4, "high"),
    ("api-contract-dual-jackson-spring-001", 3, "high"),
    ("api-contract-dual-sqlalchemy-alembic-001", 4, "high"),
    ("api-contract-tri-envoy-001", 6, "high"),
    ("api-contract-tri-protobuf-001", 6, "high"),
    ("ccx-dep-trace-106", 5, "high"),
    ("dep-graph-dual-cryptography-paramiko-001", 4, "high"),
    ("dep-graph-dual-junit-mockito-001", 3, "high"),
    ("dep-graph-dual-spring-hibernate-001", 3, "high"),
    ("dep-graph-dual-tokio-hyper-001", 4, "high"),
    ("dep-graph-tri-boto3-urllib3-requests-001", 5, "high"),
    ("dep-graph-tri-prometheus-alertmanager-grafana-001", 4, "high"),
    ("dep-graph-tri-tokio-hyper-tonic-001", 5, "high"),
    *((f"dep-traversal-{number:03}", 0, None) for number in range(1, 13)),
    ("dep-traversal-tri-boto3-001", 5, "high"),
    ("dep-traversal-tri-jackson-001", 5, "high"),
    ("dep-traversal-tri-openssl-001", 5, "high"),
    ("ansible-galaxy-tar-regression-prove-001", 3, "high"),
    ("ccx-incident-032", 6, "high"),
    ("event-replay-click-ci-001", 1, "medium"),
    ("incident-investigation-001", 2, "high"),
    ("incident-investigation-002", 2, "high"),
    ("incident-investigation-003", 2, "high"),
    ("incident-investigation-004", 1, "high"),
    ("incident-investigation-dual-cockroach-001", 6, "high"),
    ("incident-investigation-dual-cortex-001", 6, "high"),
    ("incident-investigation-dual-flux-001", 6, "high"),
    ("incident-investigation-dual-istio-001", 4, "high"),
    ("incident-investigation-dual-kafka-001", 4, "high"),
    ("incident-investigation-dual-loki-001", 6, "high"),
    ("incident-investigation-dual-nats-001", 6, "high"),
    ("incident-investigation-dual-nerdctl-001", 6, "high"),
    ("incident-investigation-dual-nomad-001", 6, "high"),
    ("incident-investigation-dual-prometheus-001", 4, "high"),
    ("incident-investigation-dual-tempo-001", 6, "high"),
    ("incident-investigation-dual-tikv-001", 6, "high"),
    ("incident-investigation-dual-vault-001", 6, "high"),
    ("incident-investigation-quad-containerd-001", 1, "medium"),
    ("incident-investigation-tri-containerd-001", 5, "high"),
    ("c_api_graphql_expert_079_architectural_understanding_expert_01", 5, "medium"),
    ("c_api_graphql_expert_079_cross_file_refactoring_expert_01", 14, "medium"),
    ("c_api_microservice_expert_080_architectural_understanding_expert_01", 5, "low"),
    ("c_api_microservice_expert_080_cross_file_refactoring_expert_01", 3, "medium"),
    ("c_blockchain_nft_expert_071_bug_investigation_expert_01", 4, "medium"),
    ("csharp_data_warehouse_expert_012_bug_investigation_expert_01", 1, "medium"),
    ("instance_ansible-ansible-0ea40e09", 3, "medium"),
    ("instance_element-hq-element-web-18c03daa", 1, "medium"),
    ("instance_flipt-io-flipt-518ec324", 2, "medium"),
    ("instance_future-architect-vuls-1832b4ee", 9, "medium"),
    ("instance_gravitational-teleport-3ff75e29", 1, "medium"),
    ("instance_internetarchive-openlibrary-757fcf46", 4, "medium"),
    ("instance_navidrome-navidrome-56303cde", 1, "medium"),
    ("instance_nodebb-nodebb-70b4a0e2", 4, "medium"),
    ("instance_nodebb-nodebb-eb49a649", 14, "medium"),
    ("instance_nodebb-nodebb-f2082d7d", 6, "medium"),
    ("instance_protonmail-webclients-f080ffc3", 15, "medium"),
    ("instance_qutebrowser-qutebrowser-52708364", 4, "medium"),
    ("instance_tutao-tutanota-d1aa0ece", 6, "medium"),
]
"""How many gold files a real task has with those of which any one is enough, counted by reading its definition, and
how far they are to be trusted."""

REQUIRED = {
    "api-contract-dual-envoy-istio-001": 2,
    "api-contract-dual-fastapi-001": 2,
    "api-contract-dual-hyper-reqwest-001": 2,
    "api-contract-dual-jackson-spring-001": 2,
    "api-contract-dual-sqlalchemy-alembic-001": 2,
    "api-contract-tri-envoy-001": 3,
    "api-contract-tri-protobuf-001": 3,
    "dep-graph-dual-cryptography-paramiko-001": 2,
    "dep-graph-dual-junit-mockito-001": 2,
    "dep-graph-dual-spring-hibernate-001": 2,
    "dep-graph-dual-tokio-hyper-001": 2,
    "dep-graph-tri-boto3-urllib3-requests-001": 3,
    "dep-graph-tri-prometheus-alertmanager-grafana-001": 3,
    "dep-graph-tri-tokio-hyper-tonic-001": 3,
    "dep-traversal-tri-boto3-001": 3,
    "dep-traversal-tri-jackson-001": 3,
    "dep-traversal-tri-openssl-001": 3,
    "ansible-galaxy-tar-regression-prove-001": 2,
    "ccx-incident-032": 5,
    "incident-investigation-dual-cockroach-001": 4,
    "incident-investigation-dual-cortex-001": 4,
    "incident-investigation-dual-flux-001": 3,
    "incident-investigation-dual-istio-001": 2,
    "incident-investigation-dual-kafka-001": 2,
    "incident-investigation-dual-loki-001": 4,
    "incident-investigation-dual-nats-001": 4,
    "incident-investigation-dual-nerdctl-001": 4,
    "incident-investigation-dual-nomad-001": 4,
    "incident-investigation-dual-prometheus-001": 2,
    "incident-investigation-dual-tempo-001": 4,
    "incident-investigation-dual-tikv-001": 4,
    "incident-investigation-dual-vault-001": 4,
    "incident-investigation-tri-containerd-001": 3,
}
"""How many of them are required, where that is not all."""


@pytest.mark.parametrize("sufficient", [True, False])
def test_real_tasks_have_the_gold_files_that_were_counted_by_hand(real_traces: Path, sufficient: bool) -> None:
    folders = [path for part in ("ground_truth", "tasks") for path in (real_traces / part).rglob("*") if path.is_dir()]
    counted = {}
    for name, *_ in GOLD:
        is_cut_short = name.startswith("instance_")
        truth = read_ground_truth(
            [path for path in folders if path.name == name or (is_cut_short and path.name.startswith(name))], sufficient
        )
        counted[name] = (len(truth.files), truth.confidence)
    required = {} if sufficient else REQUIRED
    assert counted == {name: (required.get(name, count), confidence) for name, count, confidence in GOLD}


def test_the_files_to_edit_of_real_patches_are_their_gold_files(real_traces: Path) -> None:
    for folder in (real_traces / "tasks" / "swebench_pro").iterdir():
        truth = read_ground_truth(folder)
        assert truth.source == "solution/solve.sh"
        assert truth.expected_edit_files == truth.files


def test_real_symbols_and_chunks_are_read(real_traces: Path) -> None:
    suites = real_traces / "ground_truth"
    oracle = read_ground_truth(suites / "csb_org_migration" / "ccx-migration-294")
    assert len(oracle.symbols) == 27
    defects = read_ground_truth(suites / "csb_sdlc_test" / "envoy-code-review-001")
    assert [(chunk.start, chunk.end) for chunk in defects.chunks] == [
        (155, 157),
        (42, 45),
        (505, 511),
        (1293, 1301),
        (462, 465),
        (600, 607),
    ]
    located = read_ground_truth(real_traces / "tasks" / "10figure" / "bug_localization_01")
    assert [(chunk.start, chunk.end) for chunk in located.chunks] == [(200, 250)]
