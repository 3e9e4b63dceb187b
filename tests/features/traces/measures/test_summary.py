"""Summaries of a run: statistics are the oracle for means, and the order of tasks has no say."""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.features.traces.measures.figures import FigureNames
from runner.features.traces.measures.records import Artifact
from runner.features.traces.measures.stages import build_artifact, round_numbers
from runner.features.traces.measures.summary import summarise_runs, summarise_values
from tests.features.traces.documents import document, done, event, read
from tests.strategies.artifacts import ARTIFACTS
from tests.strategies.settings import at_most

NAMES = FigureNames()


def summary(artifacts: Iterable[Artifact], names: FigureNames) -> dict[str, Any]:
    return summarise_runs(artifacts, names).to_json()


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_mean_deviation_and_median_are_those_of_the_standard_library(values: list[float]) -> None:
    found = summarise_values(values)
    assert found["mean"] == pytest.approx(statistics.mean(values), abs=1e-6)
    assert found["std"] == pytest.approx(statistics.stdev(values), abs=1e-5)
    assert found["median"] == pytest.approx(statistics.median(values), abs=1e-6)
    assert found["n"] == len(values)


def test_one_value_has_no_deviation_and_none_has_no_mean() -> None:
    assert summarise_values([2.0]) == {"mean": 2.0, "std": None, "median": 2.0, "n": 1}
    assert summarise_values([]) == {"mean": None, "std": None, "median": None, "n": 0}


def test_means_cover_computable_tasks_and_others_are_counted_by_reason() -> None:
    untraced = build_artifact(document([], ["a.py"], source=None))
    found = summary([done("t", "a.py"), done("u", "x.py"), done("v", "a.py", gold=()), untraced], NAMES)
    assert found["file_level_aggregates"]["mrr"]["mean"] == 0.5
    assert found["file_level_aggregates"]["mrr"]["n"] == found["computable_tasks"] == 2
    assert found["not_computable"] == {"no_ground_truth": 1, "no_trace": 1}
    assert (found["total_event_files"], found["skipped_no_ground_truth"], found["degraded_tasks"]) == (4, 1, 1)
    assert found["file_level_aggregates"]["_totals"] == {
        "n_tasks": 2,
        "mean_retrieved": 1,
        "mean_ground_truth": 2,
        "mean_overlap": 0.5,
    }


def test_a_task_that_was_tried_five_times_counts_once_with_its_mean() -> None:
    tries = [done("t", *files, run_id=f"run {n}") for n, files in enumerate([("a.py",), *[("x.py",)] * 4])]
    found = summary([*tries, done("u", "a.py")], NAMES)
    recall = found["file_level_aggregates"]["file_recall"]
    assert recall["mean"] == pytest.approx((0.5 / 5 + 0.5) / 2)  # each has two gold files
    assert (recall["n"], recall["traces"]) == (2, 6)
    assert (found["computable_tasks"], found["distinct_tasks"]) == (6, 2)
    assert found["file_level_aggregates"]["_totals"]["n_tasks"] == 2


def graded(task: str, confidence: str, *seen: str) -> dict[str, Any]:
    made = document([read(*seen)], ["a.py", "b.py"], task_name=task)
    made["coverage"]["ground_truth_confidence"] = confidence
    return build_artifact(made)


def test_means_without_the_gold_of_low_confidence_stand_beside_those_with_it() -> None:
    found = summary([graded("t", "high", "a.py"), graded("u", "low", "a.py", "b.py")], NAMES)
    assert found["ground_truth_confidences"] == {"high": 1, "low": 1}
    assert found["file_level_aggregates"]["file_recall"]["mean"] == 0.75
    for fold in (found, found["by_configuration"]["baseline"], found["by_suite"]["suite"]):
        assert fold["without_low_confidence"]["file_level_aggregates"]["file_recall"]["mean"] == 0.5
    assert "without_low_confidence" not in summary([graded("t", "medium", "a.py")], NAMES)


def test_a_mean_over_no_tasks_is_undefined_rather_than_0() -> None:
    for artifacts in ([], [done("t", "a.py", gold=())]):
        found = summary(artifacts, NAMES)
        assert found["file_level_aggregates"]["mrr"] == {
            **{"mean": None, "std": None, "median": None},
            **{"n": 0, "traces": 0},
        }
        assert found["error_taxonomy_aggregates"]["missed_key_evidence"]["mean"] is None


def test_configurations_suites_and_slices_have_means_of_their_own() -> None:
    found = summary(
        [
            done("t", "a.py", benchmark="fix", config_name="baseline"),
            done("u", "x.py", benchmark="test", config_name="mcp"),
            done("v", *(f"x{i}.py" for i in range(9)), benchmark="test", config_name="mcp"),
            done("w", "a.py", gold=(), benchmark="docs", config_name="mcp"),
        ],
        NAMES,
    )
    means = {name: part["file_level_aggregates"]["mrr"]["mean"] for name, part in found["by_suite"].items()}
    assert means == {"docs": None, "fix": 1.0, "test": 0.0}
    assert {name: part["computable_tasks"] for name, part in found["by_configuration"].items()} == {
        "baseline": 1,
        "mcp": 2,
    }
    assert {name: part["computable_tasks"] for name, part in found["by_slice"]["candidate_set_size"].items()} == {
        "medium": 1,
        "small": 2,
    }
    assert found["error_taxonomy_aggregates"]["slice_distributions"] == {
        "candidate_set_size": {"medium": 1, "small": 2},
        "evidence_type": {"local": 3},
        "dominant_retrieval_category": {"file_read": 3},
    }


def test_a_probe_that_a_task_has_not_enters_no_mean() -> None:
    writes = build_artifact(document([event("file_write", "a.py")], ["a.py"], edits=["a.py"]))
    found = summary([writes, done("u", "a.py")], NAMES)["utilization_aggregates"]
    assert found["util_write_overlap_with_expected_edit_files"]["n"] == 1
    assert found["util_read_overlap_with_relevant_files"]["n"] == 2
    assert (found["n_tasks_with_probes"], found["n_tasks_with_expected_edit_probe"]) == (2, 1)


@settings(max_examples=at_most(20))
@given(st.lists(ARTIFACTS, max_size=7), st.randoms(use_true_random=False))
def test_another_order_of_tasks_gives_the_same_bytes(artifacts: list[dict[str, Any]], chance: random.Random) -> None:
    shuffled = chance.sample(artifacts, len(artifacts))
    assert json.dumps(summary(shuffled, NAMES), allow_nan=False) == json.dumps(summary(artifacts, NAMES))


@settings(max_examples=at_most(20))
@given(st.lists(ARTIFACTS, max_size=7))
def test_the_parts_of_a_summary_add_up(artifacts: list[dict[str, Any]]) -> None:
    found = round_numbers(summary(artifacts, NAMES))
    assert found["computable_tasks"] + sum(found["not_computable"].values()) == len(artifacts)
    for parts in (found["by_configuration"], found["by_suite"]):
        assert sum(part["total_event_files"] for part in parts.values()) == len(artifacts)
    for parts in found["by_slice"].values():
        assert sum(part["total_event_files"] for part in parts.values()) == found["computable_tasks"]


def test_what_a_run_cost_is_in_its_summary() -> None:
    found = summary([done("t", reward=1.0, cost=2.0), done("u", reward=0.0)], NAMES)["outcome_aggregates"]
    assert (found["reward"]["mean"], found["reward"]["n"]) == (0.5, 2)
    assert (found["cost"]["mean"], found["cost"]["n"], found["seconds"]["n"]) == (2.0, 1, 0)
