"""The five stages of an artifact, by hand on small documents, and what always holds on any."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.events.document import build_document
from runner.features.traces.events.sightings import choose_richer, create_observer
from runner.features.traces.measures.stages import build_artifact, round_numbers
from runner.features.traces.reading import read_run
from runner.features.traces.runs.layout import find_runs
from runner.features.traces.runs.outcomes import RunOutcome, read_outcome
from runner.features.traces.runs.tasks import find_tasks
from runner.features.traces.truth.ground_truth import read_ground_truth
from tests.features.traces.documents import document, event, read, search, write
from tests.strategies.artifacts import OUTCOMES, documents

GOLD = ("src/a.py", "src/b.py", "lib/c.py")


def stage(name: str, *steps: dict[str, Any], gold: tuple[str, ...] = GOLD, **others: Any) -> dict[str, Any]:
    found: dict[str, Any] = build_artifact(document(steps, gold, **others))[name]
    return found


def test_files_are_ranked_by_first_sight_and_measured_as_any_ranking() -> None:
    found = stage(
        "file_level_metrics",
        search("x.py", "src/b.py"),
        read("src/b.py", "src/a.py", elapsed_seconds=9.0),
    )
    assert found["computable"]
    assert found["precision"] == pytest.approx({"1": 0, "3": 2 / 3, "5": 2 / 5, "10": 2 / 10, "100": 2 / 100})
    assert found["recall"] == pytest.approx({"1": 0, "3": 2 / 3, "5": 2 / 3, "10": 2 / 3, "100": 2 / 3})
    assert found["f1"]["10"] == pytest.approx(2 * 0.2 * (2 / 3) / (0.2 + 2 / 3))
    assert found["mrr"] == 0.5
    assert found["map_score"] == pytest.approx((1 / 2 + 2 / 3) / 3)
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    assert found["ndcg"]["3"] == pytest.approx((1 / math.log2(3) + 1 / 2) / ideal)
    assert found["file_recall"] == found["context_efficiency"] == pytest.approx(2 / 3)
    assert (found["n_retrieved"], found["n_ground_truth"], found["n_overlap"]) == (3, 3, 2)


def test_rankings_are_measured_at_the_cutoffs_that_were_set() -> None:
    found = build_artifact(document([search("x.py", "src/b.py")], GOLD), cutoffs=(2, 7))["file_level_metrics"]
    assert found["precision"] == pytest.approx({"2": 1 / 2, "7": 1 / 7})
    assert [*found["ndcg"]] == [*found["f1"]] == ["2", "7"]


def test_a_run_that_only_writes_its_report_has_a_recall_of_0() -> None:
    found = stage("file_level_metrics", write("reports/out.md"), read("reports/out.md"), gold=("reports/out.md",))
    assert (found["file_recall"], found["n_retrieved"], found["first_gt_hit_step"]) == (0, 0, None)


def test_the_time_to_the_first_relevant_file_is_that_of_the_event_that_first_has_one() -> None:
    found = stage(
        "file_level_metrics",
        search("x.py", elapsed_seconds=1.0, cumulative_tokens=10),
        search("lib/c.py", elapsed_seconds=2.5, cumulative_tokens=70),
        read("src/a.py", elapsed_seconds=4.0, cumulative_tokens=90),
    )
    assert (found["first_gt_hit_step"], found["ttfr_seconds"], found["ttfr_tokens"]) == (1, 2.5, 70)


@pytest.mark.parametrize("seen", [[], [read("x.py", elapsed_seconds=1.0)]])
def test_if_no_gold_is_seen_recall_is_0_and_the_time_to_gold_is_undefined(seen: list[dict[str, Any]]) -> None:
    found = stage("file_level_metrics", *seen)
    assert (found["file_recall"], found["mrr"]) == (0, 0)
    assert found["ttfr_seconds"] is found["ttfr_tokens"] is found["first_gt_hit_step"] is None
    assert found["context_efficiency"] == (0 if seen else None)


@pytest.mark.parametrize(
    ("gold", "source", "reason"),
    [((), "merged", "no_ground_truth"), (GOLD, None, "no_trace"), ((), None, "no_ground_truth")],
)
def test_what_cannot_be_computed_says_why_and_has_no_value(gold: tuple[str, ...], source: str, reason: str) -> None:
    found = build_artifact(document([read("a.py")] if source else [], gold, source=source))
    assert found["file_level_metrics"] == {"computable": False, "reason": reason}
    assert found["error_taxonomy"] == {"computable": False, "reason": reason, "labels": {}, "slices": {}}
    probes = found["utilization_probes"]
    assert probes["reason"] == reason
    assert probes["probe_available"] is bool(gold)
    assert all(value is None for name, value in probes.items() if name.startswith("util_"))


def test_a_chunk_counts_as_a_hit_if_its_file_was_seen() -> None:
    found = stage("chunk_level_metrics", search("src/b.py"), chunks=["src/a.py", "src/b.py", "src/b.py", "z.py"])
    assert (found["resolution"], found["validity"]) == ("chunk_level", "file_match_only")
    assert (found["chunk_recall"], found["chunks_hit"], found["chunks_total"]) == (0.5, 2, 4)


def shows(file: str, *ranges: tuple[int, int | None]) -> dict[str, Any]:
    lines = [{"file": file, "line_start": start, "line_end": end} for start, end in ranges]
    return read(file, target_lines=lines)


def test_a_gold_line_counts_as_a_hit_if_a_reader_showed_it() -> None:
    found = stage(
        "chunk_level_metrics",
        shows("src/a.py", (3, 4), (4, 6), (100, 200)),
        shows("x.py", (1, None)),
        search("lib/c.py"),
        shows("src/b.py", (8, None)),
        chunks=["src/a.py", "src/a.py", "src/b.py", "lib/c.py"],  # lines 1 to 9 of each
    )
    assert (found["lines_hit"], found["lines_total"]) == (4 + 2, 27)
    assert found["line_recall"] == pytest.approx(6 / 27)
    assert found["reads_without_lines"] == 0


def test_lines_that_an_agent_read_after_it_wrote_their_file_do_not_count() -> None:
    steps = (
        write("src/a.py"),
        shows("src/a.py", (1, 9)),
        read("src/a.py"),
        shows("src/b.py", (1, 2)),
        write("src/b.py"),
    )
    found = stage("chunk_level_metrics", *steps, chunks=["src/a.py", "src/b.py"])
    assert (found["lines_hit"], found["lines_total"], found["reads_without_lines"]) == (2, 18, 0)


def test_a_read_whose_lines_are_unknown_is_counted() -> None:
    steps = (read("src/a.py"), read("src/a.py"), shows("src/a.py", (1, 3)), read("x.py"))
    found = stage("chunk_level_metrics", *steps, chunks=["src/a.py"])
    assert (found["line_recall"], found["reads_without_lines"]) == (pytest.approx(3 / 9), 2)


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 30), st.integers(0, 30)), min_size=1),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 30), st.none() | st.integers(0, 30))),
)
def test_line_recall_is_that_of_sets_of_lines(
    gold: list[tuple[str, int, int]], read_lines: list[tuple[str, int, int | None]]
) -> None:
    made = document([shows(file, (start, None if n is None else start + n)) for file, start, n in read_lines], ["a"])
    made["ground_truth"]["chunks"] = [
        {"file": file, "line_start": start, "line_end": start + n} for file, start, n in gold
    ]
    wanted = {(file, line) for file, start, n in gold for line in range(start, start + n + 1)}
    seen = {(f, line) for f, start, n in read_lines for line in range(start, 99 if n is None else start + n + 1)}
    found = build_artifact(made)["chunk_level_metrics"]
    assert (found["lines_hit"], found["lines_total"]) == (len(wanted & seen), len(wanted))


def test_chunk_recall_is_undefined_without_chunks() -> None:
    found = stage("chunk_level_metrics", search("src/b.py"))
    assert (found["resolution"], found["validity"], found["chunk_recall"]) == ("file_level_only", "unsupported", None)


def test_utilisation_counts_what_was_opened_and_written_not_what_was_only_listed() -> None:
    found = stage(
        "utilization_probes",
        search("lib/c.py"),
        read("src/a.py"),
        write("src/a.py", "new.py"),
        read("new.py"),
        edits=["src/a.py", "src/b.py", "z.py", "y.py"],
    )
    assert found["probe_available"]
    assert found["util_read_overlap_with_relevant_files"] == pytest.approx(1 / 3)
    assert found["util_write_overlap_with_relevant_files_proxy"] == pytest.approx(1 / 3)
    assert found["util_write_overlap_with_expected_edit_files"] == 0.25
    assert found["util_read_before_write_ratio"] == 0.5
    assert (found["files_read"], found["files_written"], found["files_read_relevant"]) == (2, 2, 1)


def test_a_task_without_writes_still_has_its_reading_measured() -> None:
    found = stage("utilization_probes", read("src/a.py"))
    assert found["util_read_overlap_with_relevant_files"] == pytest.approx(1 / 3)
    assert found["util_write_overlap_with_relevant_files_proxy"] is None
    assert found["util_read_before_write_ratio"] is None
    assert found["util_write_overlap_with_expected_edit_files"] is None
    assert (found["expected_edit_probe_available"], found["expected_edit_probe_reason"]) == (
        False,
        "no_expected_edit_files",
    )


def test_nothing_written_where_edits_are_expected_is_an_overlap_of_0() -> None:
    found = stage("utilization_probes", read("src/a.py"), edits=["src/a.py"])
    assert found["util_write_overlap_with_expected_edit_files"] == 0
    assert found["expected_edit_probe_available"]


def test_a_file_that_is_written_before_it_is_read_was_not_read_before() -> None:
    assert stage("utilization_probes", write("x.py"), read("x.py"))["util_read_before_write_ratio"] == 0


def test_rounding_happens_when_written_and_leaves_no_number_that_json_lacks() -> None:
    found = build_artifact(document([read("src/a.py")], GOLD), RunOutcome(reward=math.nan))
    assert found["file_level_metrics"]["file_recall"] == 1 / 3
    written = round_numbers(found)
    assert written["file_level_metrics"]["file_recall"] == 0.3333
    assert written["outcome"]["reward"] is None


@given(documents(), OUTCOMES)
def test_any_document_has_an_artifact_that_json_holds_and_whose_shares_are_shares(
    made: dict[str, Any], outcome: RunOutcome | None
) -> None:
    found = build_artifact(made, outcome)
    assert json.loads(json.dumps(round_numbers(found), allow_nan=False)) == round_numbers(found)
    metrics = found["file_level_metrics"]
    assert metrics["computable"] is (metrics["reason"] is None)
    shares = [value for name, value in found["utilization_probes"].items() if name.startswith("util_")]
    if metrics["computable"]:
        shares += [metrics[name] for name in ("mrr", "map_score", "file_recall", "context_efficiency")]
        shares += [value for name in ("precision", "recall", "f1", "ndcg") for value in metrics[name].values()]
        counts = found["error_taxonomy"]["labels"]
        assert counts["missed_key_evidence"] == metrics["n_ground_truth"] - metrics["n_overlap"]
        assert counts["irrelevant_retrieval"] == metrics["n_retrieved"] - metrics["n_overlap"]
        assert counts["ambiguity_near_miss"] <= counts["irrelevant_retrieval"]
    assert all(0 <= value <= 1 for value in shares if value is not None)


@given(documents())
def test_events_without_files_change_no_measure(made: dict[str, Any]) -> None:
    if made["coverage"]["trace_source"] is None:
        return
    idle = {"step_index": len(made["events"]), **event("other")}
    more = made | {"events": [*made["events"], idle]}
    assert build_artifact(more)["file_level_metrics"] == build_artifact(made)["file_level_metrics"]


@pytest.mark.parametrize(
    ("trial", "gold", "least"),
    [("000624051b19", 4, 3), ("002a72814c6d", 11, 8), ("0a5898e7708f", 11, 10), ("04fc056c642f", 2, 2)],
)
def test_real_trials_have_the_gold_that_they_are_known_to_have_seen(
    real_traces: Path, trial: str, gold: int, least: int
) -> None:
    (run,) = find_runs(real_traces / "trials" / trial, find_tasks([real_traces]))
    trace = read_run(run.trajectory, run.transcript, create_observer(), choose_richer)
    made = build_document(trace, read_ground_truth(run.tasks), run.provenance, datetime(2026, 1, 1, tzinfo=UTC))
    found = build_artifact(made, read_outcome(run.folder))["file_level_metrics"]
    assert found["n_ground_truth"] == gold
    assert least <= found["n_overlap"] <= gold
    assert found["file_recall"] == found["n_overlap"] / gold
    assert found["first_gt_hit_step"] == made["summary"]["first_ground_truth_hit_step"]
    assert found["n_overlap"] == made["summary"]["ground_truth_files_hit"]
