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
from runner.tracking.packing import pack_result, unpack_result
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


def test_a_task_without_gold_is_left_out_and_one_without_a_trace_is_a_failure() -> None:
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
    assert again.outcomes["agent/seconds"].tolist()[:1] == [3]
    for read in (again, unpack_result(pack_result(result))[0]):
        assert list(read.outcomes) == list(result.outcomes)
        for name, values in result.outcomes.items():
            np.testing.assert_array_equal(read.outcomes[name], values)


def test_two_agents_on_the_same_tasks_compare_and_pass_a_gate_as_two_retrievers_do() -> None:
    tasks = [f"t{i}" for i in range(8)]
    mcp = result_of("mcp", [done(task, "a.py", "b.py") for task in tasks], SETTINGS)
    baseline = result_of("baseline", [done(task, "x.py", "y.py", "a.py") for task in reversed(tasks)], SETTINGS)
    assert check_comparable(baseline, mcp).startswith("Measured on the same dataset")
    compared = compare_results([mcp, baseline], TableStatistics())
    versus = compared.table["RR"][1]
    assert versus.mean == pytest.approx(1 / 3)
    assert versus.difference.mean == pytest.approx(-2 / 3)
    (check,) = check_gate(Gate(drops={"mrr": 0.1}), compared)
    assert check.verdict == "fail"
    assert "| RR |" in comparison_markdown(compared)


def test_agents_are_compared_on_the_tasks_that_they_share_with_the_same_gold() -> None:
    one = result_of("one", [done(task, "x.py", "a.py", seconds=9, cost=0.5) for task in "stuv"], SETTINGS)
    others = [done(task, "a.py", seconds=3, cost=0.25) for task in "tuw"] + [done("v", "a.py", gold=["a.py"])]
    compared = compare_results([one, result_of("other", others, SETTINGS)], TableStatistics())
    assert list(compared.queries.ids) == ["t", "u"]
    assert "without s, v, w, because not all results have them with the same gold" in compared.notes
    first, versus = compared.table["agent/cost"]
    assert (first.mean, versus.mean, versus.difference.mean) == (0.5, 0.25, -0.25)
    assert compared.table["agent/seconds"][1].difference.mean == -6
    assert compared.table["RR"][1].difference.mean == 0.5
    assert compared.headline[-2:] == ["agent/cost", "agent/seconds"]
    back = compare_results([result_of("other", others, SETTINGS), one], TableStatistics())
    assert back.table["agent/cost"][1].difference.mean == 0.25


def test_agents_without_a_common_task_with_the_same_gold_do_not_compare() -> None:
    one = result_of("one", [done("t", "a.py")], SETTINGS)
    for other in (done("u", "a.py"), done("t", "a.py", gold=["a.py"])):
        pair = [one, result_of("other", [other], SETTINGS)]
        with pytest.raises(NotComparable, match="one and other have no query in common with the same gold"):
            compare_results(pair, TableStatistics())


def test_another_model_is_noted_with_the_number_of_tasks() -> None:
    one, other = (
        result_of(name, [done("t", "a.py", model="m"), done("u", "a.py", model=model)], SETTINGS)
        for name, model in (("one", "m"), ("other", "n"))
    )
    assert [dict(of) for of in other.queries.fields] == [{"model": "m"}, {"model": "n"}]
    (note,) = (note for note in compare_results([one, other], TableStatistics()).notes if "model" in note)
    assert note == "model of other and one is not the same for 1 of 2 queries, which may explain a difference"


def test_the_same_file_name_in_two_tasks_is_gold_where_it_is_gold() -> None:
    result = result_of("mcp", [done("t", "a.py", gold=["a.py"]), done("u", "a.py", gold=["z.py"])], SETTINGS)
    assert result.of("P@1").tolist() == [1, 0]


def test_files_beyond_the_depth_are_not_measured() -> None:
    files = [f"x{i}.py" for i in range(20)]
    result = result_of("mcp", [done("t", *files, "a.py", gold=["a.py"])], MetricSettings(k_values=(1, 10), depth=20))
    assert result.of("RR").tolist() == [0]
