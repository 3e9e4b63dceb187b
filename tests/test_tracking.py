from __future__ import annotations

import math
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient

from runner.config.objects import ConfigError
from runner.result import load
from runner.tracking.record import metric_name
from runner.tracking.settings import Tracking
from runner.tracking.tracker import Tracker
from tests.reports.factory import result as make_result


@pytest.mark.parametrize(
    ("measure", "name"),
    [
        ("nDCG@10", "ndcg_at_10"),
        ("P@5", "precision_at_5"),
        ("R@100", "recall_at_100"),
        ("Success@1", "success_at_1"),
        ("F1@5", "f1_at_5"),
        ("Judged@10", "judged_at_10"),
        ("RR", "mrr"),
        ("RR@10", "mrr_at_10"),
        ("AP", "map"),
        ("AP@100", "map_at_100"),
        ("Rprec", "rprec"),
        ("nDCG(dcg='exp-log2')@10", "ndcg_dcg_exp_log2_at_10"),
    ],
)
def test_measures_have_one_spelling_in_mlflow(measure: str, name: str) -> None:
    assert metric_name(measure) == name


def test_all_of_a_result_is_logged(tracking: Tracking) -> None:
    result = make_result()
    tracker = Tracker(tracking)
    logged = tracker.log_result(result, {"retriever": "bm25", "retriever.k1": "0.9"}, {"report.md": "# report"})
    run_id = logged.id
    client = MlflowClient(tracking.uri)
    run = client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == result.name
    assert run.data.params == {"retriever": "bm25", "retriever.k1": "0.9"}
    for measure, mean in result.means.items():
        if math.isfinite(mean):
            assert run.data.metrics[metric_name(measure)] == pytest.approx(mean)
    for kind, means in result.by_type.items():
        slug = kind.replace("-", "_")
        assert run.data.metrics[f"by_type/{slug}/{metric_name(result.primary)}"] == pytest.approx(means[result.primary])
    assert {"latency/mean_ms", "latency/p95_ms", "time/index_s", "time/search_s"} <= run.data.metrics.keys()
    assert {"dataset_fingerprint", "corpus_fingerprint", "config_hash", "versions"} <= run.data.tags.keys()
    curve = client.get_metric_history(run_id, "curve/ndcg")
    assert {point.step: point.value for point in curve} == {
        int(m.partition("@")[2]): pytest.approx(mean) for m, mean in result.means.items() if m.startswith("nDCG@")
    }
    (dataset,) = run.inputs.dataset_inputs
    assert dataset.dataset.name == result.dataset.name
    artifacts = {item.path for item in client.list_artifacts(run_id)}
    assert artifacts == {
        "config.yaml", "per_query.parquet", "rankings.parquet", "rankings.trec.gz", "report.md", "result.json",
    }  # fmt: skip
    assert logged.folder is not None
    assert load(logged.folder).means == pytest.approx(dict(result.means), nan_ok=True)


def test_a_sweep_is_a_parent_with_its_combinations(tracking: Tracking) -> None:
    tracker = Tracker(tracking)
    tracker.start_sweep("a sweep", {"k1": "1, 2"}, 2)
    child = tracker.log_result(make_result(), {"k1": "1"}, {}).id
    failed = tracker.log_failure("k1=2", {"k1": "2"}, "RuntimeError: no luck", "the traceback").id
    parent = tracker.finish_sweep(make_result(), {"report.md": "x"}, "FAILED").id
    client = MlflowClient(tracking.uri)
    assert client.get_run(child).data.tags["mlflow.parentRunId"] == parent
    assert "rankings.trec.gz" not in {item.path for item in client.list_artifacts(child)}
    assert client.get_run(failed).info.status == "FAILED"
    assert client.get_run(failed).data.tags["error"] == "RuntimeError: no luck"
    assert [item.path for item in client.list_artifacts(failed)] == ["traceback.txt"]
    assert client.get_run(parent).info.status == "FAILED"
    assert client.get_run(parent).data.tags["best"] == make_result().name


def test_a_store_that_cannot_be_opened_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"tracking\.uri=sqlite:///.*cannot be opened") as caught:
        Tracker(Tracking(uri=f"sqlite:///{tmp_path}/file/mlflow.db"))
    assert "\n" not in str(caught.value)


def test_long_parameters_are_cut_and_many_are_logged(tracking: Tracking) -> None:
    parameters = {f"p{i}": "x" * (7000 if i == 0 else 1) for i in range(250)}
    run_id = Tracker(tracking).log_result(make_result(), parameters, {}).id
    logged = MlflowClient(tracking.uri).get_run(run_id).data.params
    assert len(logged) == 250
    assert len(logged["p0"]) == 6000


def test_types_whose_names_are_alike_are_kept_apart(tracking: Tracking) -> None:
    result = make_result(types=("multi item", "multi-item", "один", "два"))
    run_id = Tracker(tracking).log_result(result, {}, {}).id
    logged = MlflowClient(tracking.uri).get_run(run_id).data.metrics
    primary = metric_name(result.primary)
    places = {key.split("/")[1] for key in logged if key.startswith("by_type/") and key.endswith(primary)}
    assert places == {"multi_item", "multi_item_2", "один", "два"}
