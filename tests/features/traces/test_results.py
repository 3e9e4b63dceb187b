"""What agents did as results: saved, loaded and compared as those of retrievers are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.comparison.comparability import NotComparable, check_comparable
from runner.comparison.compare import TableStatistics, compare_results
from runner.comparison.gate import Gate, check_gate
from runner.comparison.report.sections import comparison_markdown
from runner.evaluation.records import load_record, save_record
from runner.evaluation.result import ResultError
from runner.features.traces.measures.stages import build_artifact
from runner.features.traces.results import result_of
from runner.metrics.settings import MetricSettings
from runner.tracking.record import metrics_of
from tests.features.traces.documents import document, done

SETTINGS = MetricSettings(k_values=(1, 5, 10), depth=100)


def untraced(task: str, **said: Any) -> dict[str, Any]:
    return build_artifact(document([], ["a.py"], source=None, task_name=task, **said))


def test_tasks_are_queries_and_measures_are_those_of_the_stages() -> None:
    artifacts = [
        done("t", "x.py", "a.py", benchmark="fix", reward=1.0, seconds=60),
        done("u", "b.py", "a.py", "y.py", benchmark="test", reward=0.0),
    ]
    result = result_of("mcp", artifacts, SETTINGS)
    assert list(result.queries.ids) == ["t", "u"]
    assert list(result.queries.types) == ["fix", "test"]
    for i, each in enumerate(artifacts):
        metrics = each["file_level_metrics"]
        assert result.of("RR")[i] == metrics["mrr"]
        assert result.of("AP@100")[i] == pytest.approx(metrics["map_score"])
        for k in ("1", "5", "10"):
            for name, key in (("P", "precision"), ("R", "recall"), ("F1", "f1"), ("nDCG", "ndcg")):
                assert result.of(f"{name}@{k}")[i] == pytest.approx(metrics[key][k])
    assert result.by_type["fix"]["RR"] == 0.5
    assert result.hits is not None
    assert result.hits.ids(0) == ["x.py", "a.py"]
    assert result.diagnostics["agent/reward"] == 0.5
    assert result.diagnostics["agent/file_recall"] == 0.75
    assert ("agent/n_retrieved", 2.5, 0) in metrics_of(result)
    assert list(result.timings.each_ms) == [60000.0, None]
    assert list(result.queries.statuses) == ["partial", "pass"]


def test_a_task_without_ground_truth_is_no_query_and_one_without_a_trace_is_one_that_failed() -> None:
    result = result_of("mcp", [done("t", "a.py"), done("u", "a.py", gold=()), untraced("v")], SETTINGS)
    assert list(result.queries.ids) == ["t", "v"]
    assert result.diagnostics["agent/no_ground_truth"] == 1
    assert result.failures == {"v": "no_trace: no trajectory and no transcript"}
    assert math.isnan(result.of("RR")[1])
    assert result.means["RR"] == 1
    assert result.queries.statuses[1] == "error"


def test_a_configuration_without_any_ground_truth_is_refused_in_one_line() -> None:
    with pytest.raises(
        ResultError, match=r"^mcp: none of the 1 tasks has ground truth, which is needed to score rankings$"
    ):
        result_of("mcp", [done("t", "a.py", gold=())], SETTINGS)


def test_a_configuration_whose_traces_are_all_missing_has_a_result_without_means() -> None:
    result = result_of("mcp", [untraced("t"), untraced("u")], SETTINGS)
    assert set(result.failures) == {"t", "u"}
    assert math.isnan(result.means["RR"])
    assert all(math.isfinite(value) for _, value, _ in metrics_of(result))


def test_a_result_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    result = result_of("mcp", [done("t", "x.py", "a.py", seconds=3), untraced("u")], SETTINGS)
    save_record(result, tmp_path)
    again = load_record(tmp_path)
    np.testing.assert_array_equal(again.scores, result.scores)
    assert again.hits is not None
    assert again.hits.ids(0) == ["x.py", "a.py"]
    assert dict(again.diagnostics) == dict(result.diagnostics)


def test_two_agents_on_the_same_tasks_compare_and_pass_a_gate_as_two_retrievers_do() -> None:
    tasks = [f"t{i}" for i in range(8)]
    mcp = result_of("mcp", [done(task, "a.py", "b.py") for task in tasks], SETTINGS)
    baseline = result_of("baseline", [done(task, "x.py", "y.py", "a.py") for task in reversed(tasks)], SETTINGS)
    assert check_comparable(baseline, mcp).startswith("Measured on the same dataset")
    compared = compare_results([mcp, baseline], TableStatistics())
    versus = compared.table["RR"][1]
    assert versus.mean == pytest.approx(1 / 3)
    assert versus.difference == pytest.approx(-2 / 3)
    (check,) = check_gate(Gate(drops={"mrr": 0.1}), compared)
    assert check.violated
    assert "| RR |" in comparison_markdown(compared)


def test_agents_on_other_tasks_or_with_other_gold_do_not_compare() -> None:
    one = result_of("one", [done("t", "a.py")], SETTINGS)
    for other in (done("u", "a.py"), done("t", "a.py", gold=["a.py"])):
        with pytest.raises(NotComparable):
            check_comparable(one, result_of("other", [other], SETTINGS))


def test_the_same_file_name_in_two_tasks_is_gold_where_it_is_gold() -> None:
    result = result_of("mcp", [done("t", "a.py", gold=["a.py"]), done("u", "a.py", gold=["z.py"])], SETTINGS)
    assert result.of("P@1").tolist() == [1, 0]


def test_files_beyond_the_depth_are_not_measured() -> None:
    files = [f"x{i}.py" for i in range(20)]
    result = result_of("mcp", [done("t", *files, "a.py", gold=["a.py"])], MetricSettings(k_values=(1, 10), depth=20))
    assert result.of("RR").tolist() == [0]
