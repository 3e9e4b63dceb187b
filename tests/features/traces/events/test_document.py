from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.config.objects import ConfigError
from runner.features.traces.events.document import build_document, iter_json, load_document
from runner.features.traces.events.records import SCHEMA_VERSION, EventDocument, check_document, json_schema
from runner.features.traces.events.sightings import Sighting, choose_richer, create_observer
from runner.features.traces.reading import read_run
from runner.features.traces.runs.provenance import Provenance
from runner.features.traces.trace import Step, ToolCall, Trace
from runner.features.traces.truth.ground_truth import GoldChunk, GoldFile, GoldSymbol, GroundTruth, read_ground_truth
from tests.strategies.gold import GROUND_TRUTHS
from tests.strategies.traces import TOOL_CALLS

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RUN = Provenance("run", "task", "baseline", "suite")
NOTHING = GroundTruth()


def trace(*calls: ToolCall, cwds: Sequence[str] = (), **others: Any) -> Trace[Sighting]:
    observe = create_observer()
    steps = [Step(index, f"id{index}", observe(call)) for index, call in enumerate(calls)]
    return Trace(source="trajectory", steps=steps, cwds=cwds, **others)


def call(name: str, result: str | None = None, **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments, result)


def document(*calls: ToolCall, gold: Sequence[str] = (), **others: Any) -> EventDocument:
    truth = GroundTruth(files=[GoldFile(path) for path in gold])
    return build_document(trace(*calls, **others), truth, RUN, WHEN)


def files(found: EventDocument) -> list[list[str]]:
    return [event["target_files"] for event in found["events"]]


def test_a_document_has_the_steps_with_their_files_and_what_of_them_is_gold() -> None:
    found = document(
        call("Grep", "src/b.py:1:x\nsrc/a.py:1:x", pattern="x"),
        call("Read", "1\tx", file_path="/workspace/src/A.py"),
        call("TodoWrite"),
        gold=["src/a.py", "src/c.py"],
    )
    assert files(found) == [["src/b.py", "src/a.py"], ["src/A.py"], []]
    assert [event["matched_ground_truth_files"] for event in found["events"]] == [["src/a.py"], ["src/a.py"], []]
    assert found["events"][1]["original_paths"] == ["/workspace/src/A.py"]
    assert "original_paths" not in found["events"][0]
    assert found["events"][0]["arguments"] == {"query": "x"}
    assert found["summary"] == {
        "total_events": 3,
        "mcp_events": 0,
        "local_events": 3,
        "unique_files_accessed": 2,
        "ground_truth_files_hit": 1,
        "ground_truth_files_total": 2,
        "first_ground_truth_hit_step": 0,
        "events_by_category": {"code_search": 1, "file_read": 1, "other": 1},
    }


def test_what_the_agent_wrote_itself_does_not_count_as_gold_that_was_hit() -> None:
    found = document(
        call("Write", "ok", file_path="out/report.md"),
        call("Read", "1\tx", file_path="out/report.md"),
        call("Read", "1\tx", file_path="src/a.py"),
        gold=["out/report.md", "src/a.py"],
    )
    assert found["ground_truth"]["matches"] == {"out/report.md": "out/report.md", "src/a.py": "src/a.py"}
    assert (found["summary"]["ground_truth_files_hit"], found["summary"]["first_ground_truth_hit_step"]) == (1, 2)


def test_the_same_file_has_one_name_however_it_was_seen() -> None:
    found = document(
        call("Bash", "x", command="cat /workspace/kafka--07/core/A.java"),
        call("read_file", repo="github.com/x/kafka--07", path="core/A.java"),
        call("Read", file_path="/home/me/k/core/A.java"),
        gold=["kafka::core/A.java"],
        cwds=["/home/me/k"],
    )
    assert files(found) == [["core/A.java"]] * 3
    assert found["events"][0]["inferred"] == "shell"
    assert found["ground_truth"]["files"] == ["kafka::core/A.java"]
    assert found["summary"]["ground_truth_files_hit"] == 1


def test_files_of_several_repositories_are_named_with_theirs() -> None:
    reads = [call("read_file", repo=f"github.com/x/{name}--v1", path="README.md") for name in ("kafka", "flink")]
    found = document(*reads, gold=["flink::README.md"])
    assert files(found) == [["kafka::README.md"], ["flink::README.md"]]
    assert [event["hits_ground_truth"] for event in found["events"]] == [False, True]


def test_a_command_that_reads_and_writes_is_two_events_of_a_step() -> None:
    found = document(call("Bash", "", command="cat a.py"), call("Bash", "x", command="cat a.py | tee b.py"))
    assert [(event["step_index"], event["tool_category"]) for event in found["events"]] == [
        (0, "file_read"),
        (1, "file_read"),
        (1, "file_write"),
    ]


def test_what_was_lost_is_said_and_so_is_that_nothing_is_there() -> None:
    lost = build_document(trace(call("Read"), losses={"cut results": 3, "calls without a name": 1}), NOTHING, RUN, WHEN)
    assert lost["coverage"]["degraded_reason"] == "cut results (3); calls without a name (1)"
    empty = build_document(Trace(source=None, losses={"a file is missing": 1}), NOTHING, RUN, WHEN)["coverage"]
    assert empty["degraded_reason"] == "no usable trace; a file is missing (1)"
    assert (empty["trace_source"], empty["has_trajectory"], empty["has_transcript"]) == (None, False, False)
    assert document()["coverage"]["degraded_reason"] == "no tool calls"
    assert document(call("Read"))["coverage"]["degraded_reason"] is None


def test_all_of_the_ground_truth_is_there_under_the_names_of_its_files() -> None:
    truth = GroundTruth(
        files=[GoldFile("kafka::core/A.java")],
        symbols=[GoldSymbol("core/A.java", "A")],
        chunks=[GoldChunk("core/A.java", 3, 5), GoldChunk("kafka::core/A.java", 7, 7)],
        expected_edit_files=[GoldFile("core/A.java")],
        source="expected_changes.json",
        confidence="high",
        problems=["solve.sh: no patch"],
    )
    found = build_document(trace(), truth, RUN, WHEN)
    assert found["ground_truth"] == {
        "files": ["kafka::core/A.java"],
        "matches": {},
        "symbols": [{"file": "core/A.java", "symbol": "A", "repo": None}],
        "chunks": [
            {"file": "kafka::core/A.java", "line_start": start, "line_end": end, "annotation": None}
            for start, end in ((3, 5), (7, 7))
        ],
        "expected_edit_files": ["kafka::core/A.java"],
    }
    assert found["coverage"]["has_chunk_ground_truth"]
    assert found["coverage"]["ground_truth_problems"] == ["solve.sh: no patch"]
    assert "expected_edit_files" not in document()["ground_truth"]


def test_times_and_tokens_that_are_no_numbers_are_left_out() -> None:
    sighting = create_observer()(call("Read"))
    steps = [
        Step(0, "a", sighting, elapsed_s=float("nan"), tokens=-1),
        Step(1, "b", sighting, True, 1.23456, 7, 1_767_225_601.25),
    ]
    found = build_document(Trace(source="transcript", steps=steps), NOTHING, RUN, WHEN)["events"]
    assert [(event["elapsed_seconds"], event["cumulative_tokens"]) for event in found] == [(None, None), (1.235, 7)]
    assert [event["is_subagent"] for event in found] == [False, True]
    assert [event["timestamp"] for event in found] == [None, "2026-01-01T00:00:01.250+00:00"]


def test_a_document_is_read_again_as_it_was_written(tmp_path: Path) -> None:
    written = document(call("Read", file_path="a.py"), gold=["a.py"])
    file = tmp_path / "task.retrieval_events.json"
    file.write_text(json.dumps(written))
    assert load_document(file) == written
    assert written["schema_version"] == SCHEMA_VERSION


def test_a_newer_minor_version_is_read_and_version_2_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    later = {**document(), "schema_version": "1.7", "more": 1}
    file.write_text(json.dumps(later))
    assert load_document(file) == later
    file.write_text(json.dumps({**later, "schema_version": "2.0"}))
    with pytest.raises(ConfigError, match=r"task.json: schema_version is '2.0', but this program reads 1.x") as error:
        load_document(file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read as a document .*; delete it, and run the command that wrote it again"),
        ("[]", "schema_version is None"),
        (
            '{"schema_version": "1.1"}',
            "generated_at: Field required; delete it, and run the command that wrote it again",
        ),
        ('{"schema_version": 1.1}', "schema_version is 1.1"),
    ],
)
def test_an_invalid_document_is_refused(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "task.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match=message):
        load_document(file)


def test_a_document_that_is_wrong_is_named_by_its_place() -> None:
    wrong = document(call("Read", file_path="a.py"))
    wrong["events"][0]["tool_category"] = "reading"
    with pytest.raises(ConfigError, match="events: events/0/tool_category"):
        check_document(wrong)
    wrong = document()
    wrong["more"] = 1
    with pytest.raises(ConfigError, match="more"):
        check_document(wrong)
    check_document(wrong, extended=True)


def test_documents_of_version_1_0_are_valid() -> None:
    old = {**document(call("Read", file_path="/app/a.py"), gold=["a.py"]), "schema_version": "1.0"}
    del old["events"][0]["original_paths"], old["coverage"]["ground_truth_problems"]
    check_document(old)


def test_the_generated_schema_has_every_field_and_requirement_of_the_published_one(real_traces: Path) -> None:
    published = json.loads((real_traces / "schemas" / "retrieval_events_schema.json").read_text())
    own = json.loads(json.dumps(json_schema()))
    names = {
        "provenance": "ProvenanceRecord", "coverage": "CoverageRecord", "ground_truth": "TruthRecord",
        "ground_truth_symbol": "SymbolRecord", "ground_truth_chunk": "ChunkRecord", "retrieval_event": "EventRecord",
        "event_summary": "EventSummary",
    }  # fmt: skip
    pairs = [(published, own), *((published["$defs"][name], own["$defs"][record]) for name, record in names.items())]
    for theirs, ours in pairs:
        assert {*theirs["properties"]} <= {*ours["properties"]}
        assert {*theirs.get("required", ())} == {*ours.get("required", ())}
        assert ours["additionalProperties"] is False


@given(
    st.lists(TOOL_CALLS, max_size=6), GROUND_TRUTHS, st.dictionaries(st.text(max_size=9), st.integers(1, 9), max_size=2)
)
def test_any_trace_gives_the_same_valid_document_twice(
    calls: list[ToolCall], truth: GroundTruth, losses: dict[str, int]
) -> None:
    first = build_document(trace(*calls, losses=losses), truth, RUN, WHEN)
    assert json.dumps(first) == json.dumps(build_document(trace(*calls, losses=losses), truth, RUN, WHEN))
    truth = first["ground_truth"]
    gold_of = {name: file for name, file in truth["matches"].items() if file in truth["files"]}
    for event in first["events"]:
        gold = list(dict.fromkeys(gold_of[name] for name in event["target_files"] if name in gold_of))
        assert event["matched_ground_truth_files"] == gold
        assert event["hits_ground_truth"] == bool(gold)


@pytest.mark.parametrize(
    ("trial", "task", "gold", "by_arguments", "seen"),
    [
        (
            "000624051b19",
            "csb_sdlc_test/envoy-code-review-001",
            4,
            3,
            4,
        ),  # of the fourth, arguments only say that it is written
        ("002a72814c6d", "csb_org_migration/ccx-migration-114", 11, 2, 10),
        ("0a5898e7708f", "csb_org_compliance/ccx-compliance-190", 11, 10, 11),
        ("04fc056c642f", "csb_sdlc_test/aspnetcore-code-review-001", 2, 2, 2),
    ],
)
def test_the_gold_of_real_trials_is_seen(
    real_traces: Path, trial: str, task: str, gold: int, by_arguments: int, seen: int
) -> None:
    """`by_arguments` counts what arguments alone name, without results and shell commands."""
    file = real_traces / "trials" / trial / "trajectory.json"
    truth = read_ground_truth(real_traces / "ground_truth" / task)
    observe = create_observer(shell=False)

    def without_result(call: ToolCall) -> Sighting:
        return observe(ToolCall(call.name, call.arguments, None))

    bare = build_document(read_run(file, None, without_result, choose_richer), truth, RUN, WHEN)["summary"]
    full = build_document(read_run(file, None, create_observer(), choose_richer), truth, RUN, WHEN)["summary"]
    assert bare["ground_truth_files_total"] == gold
    assert bare["ground_truth_files_hit"] == by_arguments
    assert full["ground_truth_files_hit"] == seen


@pytest.mark.parametrize(
    "calls", [[], [call("Read", "x", file_path="a\nb.py")], [call("Read"), call("Grep", 'é.py:1:"')]]
)
def test_a_document_that_is_written_event_by_event_is_the_same(calls: Sequence[ToolCall]) -> None:
    whole = build_document(trace(*calls), NOTHING, RUN, WHEN)
    assert b"".join(iter_json(whole)) == orjson.dumps(whole, option=orjson.OPT_INDENT_2)
