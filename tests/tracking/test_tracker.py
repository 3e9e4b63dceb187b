from __future__ import annotations

import math
import shlex
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from contextlib import closing
from dataclasses import astuple
from itertools import permutations, product
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from mlflow.tracking import MlflowClient

from release.tables import dump_tables, sort_definitions
from runner.config.objects import ConfigError
from runner.evaluation.records import load_record
from runner.system.processes import holder
from runner.tracking import background
from runner.tracking.background import BackgroundTracker
from runner.tracking.client import ClientStore
from runner.tracking.fetching import Runs
from runner.tracking.record import USER, Finished, metric_name
from runner.tracking.revisions import find_installed_revision, read_revision
from runner.tracking.settings import Tracking
from runner.tracking.sqlite import TABLES, SqliteDatabase, _version
from runner.tracking.store import RunStore, choose_store
from runner.tracking.tracker import Tracker
from tests.pages.factory import result as make_result


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
    (logged,) = tracker.log([Finished(result, {"retriever": "bm25", "retriever.k1": "0.9"}, {"report.md": "# report"})])
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
    assert {
        "latency/mean_ms",
        "latency/median_ms",
        "latency/p95_ms",
        "time/index_s",
        "time/search_s",
    } <= run.data.metrics.keys()
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
    assert load_record(logged.folder).means == pytest.approx(dict(result.means), nan_ok=True)


def test_a_store_that_cannot_be_opened_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"tracking\.uri=sqlite:///.*cannot be opened") as caught:
        Tracker(Tracking(uri=f"sqlite:///{tmp_path}/file/mlflow.db"))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_a_database_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("garbage\n")
    tracking = Tracking(uri=f"sqlite:///{tmp_path}/mlflow.db")
    with pytest.raises(ConfigError, match=r"cannot be read \(file is not a database\)"):
        BackgroundTracker(tracking)
    with pytest.raises(ConfigError, match=r"cannot be opened .*file is not a database"):
        Tracker(tracking)


def test_a_half_created_database_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracking = Tracking(uri=f"sqlite:///{tmp_path}/mlflow.db", artifacts=str(tmp_path / "artifacts"))

    halfway = tmp_path / "halfway.sql"
    halfway.write_text("CREATE TABLE runs (run_uuid TEXT); CREATE TABLE runs (run_uuid TEXT);")
    with monkeypatch.context() as patch, pytest.raises(ConfigError, match="table runs already exists"):
        patch.setattr("runner.tracking.sqlite.find_installed_revision", _version)
        patch.setattr("runner.tracking.sqlite.TABLES", halfway)
        Tracker(tracking)
    assert not (tmp_path / "mlflow.db").exists()
    Tracker(tracking).log([Finished(make_result(), {})])
    assert [file.name for file in tmp_path.glob("*.new*")] == []


def test_long_parameters_are_cut_and_many_are_logged(tracking: Tracking) -> None:
    parameters = {f"p{i}": "x" * (7000 if i == 0 else 1) for i in range(250)}
    ((run_id, _),) = map(astuple, Tracker(tracking).log([Finished(make_result(), parameters)]))
    logged = MlflowClient(tracking.uri).get_run(run_id).data.params
    assert len(logged) == 250
    assert len(logged["p0"]) == 6000


def test_types_with_similar_names_have_separate_metrics(tracking: Tracking) -> None:
    result = make_result(types=("multi item", "multi-item", "один", "два"))
    ((run_id, _),) = map(astuple, Tracker(tracking).log([Finished(result, {})]))
    logged = MlflowClient(tracking.uri).get_run(run_id).data.metrics
    primary = metric_name(result.primary)
    places = {key.split("/")[1] for key in logged if key.startswith("by_type/") and key.endswith(primary)}
    assert places == {"multi_item", "multi_item_2", "один", "два"}


def rows(tracking: Tracking, run_id: str) -> dict[str, list[dict[str, object]]]:
    """Return the rows of a run in every table, without ids and moments."""
    with closing(sqlite3.connect(tracking.uri.removeprefix("sqlite:///"))) as database:
        links = {i for (i,) in database.execute("select input_uuid from inputs where destination_id = ?", (run_id,))}
        changing = {"timestamp", "start_time", "end_time", "artifact_uri", "input_uuid"}
        by_table: dict[str, list[dict[str, object]]] = {}
        for (table,) in database.execute("select name from sqlite_master where type = 'table'").fetchall():
            selected = database.execute(f"select * from {table}")
            columns = [column[0] for column in selected.description]
            every = [dict(zip(columns, row, strict=True)) for row in selected]
            own = [row for row in every if run_id in row.values() or row.get("input_uuid") in links]
            shown = [{k: "" if k in changing or v == run_id else v for k, v in row.items()} for row in own]
            by_table[table] = sorted(shown, key=repr)
    return by_table


def _open_both(tracking: Tracking) -> tuple[RunStore, RunStore]:
    """Return the store of a database, and one that writes to the same database through MLflow's client."""
    ours = choose_store(tracking)
    ours.open()
    return ours, ClientStore(tracking)


def test_a_run_in_the_database_has_the_rows_that_mlflows_client_makes(tracking: Tracking) -> None:
    """Every table, every column, but for ids and moments: what a new MLflow changes is seen here."""
    record = Finished(make_result(), {"k1": "1", "long": "x" * 7000}, tags={"process": holder(), USER: "u"}).record
    ours, theirs = (run.id for store in _open_both(tracking) for run in store.log([("", record)]))
    assert rows(tracking, ours) == rows(tracking, theirs)
    assert {table for table, found in rows(tracking, ours).items() if found} == {
        "runs", "tags", "params", "metrics", "latest_metrics", "inputs", "input_tags",
    }  # fmt: skip
    artifacts = {MlflowClient(tracking.uri).get_run(run).info.artifact_uri.replace(run, "") for run in (ours, theirs)}
    assert len(artifacts) == 1


def test_a_parent_run_has_the_rows_that_mlflows_client_makes(tracking: Tracking) -> None:
    """Begun, filled, ended, and begun again with other metrics: a later step stays, an earlier one is replaced."""
    record, ids = Finished(make_result(), {}).record, []
    assert record.dataset is not None
    for store in _open_both(tracking):
        run = store.create_run("a sweep", 1000, {"kind": "sweep", "process": "p 1", "error": "x", USER: "u"})
        assert run.folder is not None
        assert store.find_running() == [(run.id, "p 1")]
        for metrics in (record.metrics, [("a", 1.0, 5), ("b", 1.0, 1)], [("a", 2.0, 3), ("b", 2.0, 1)]):
            store.add_metrics(run.id, metrics, record.dataset)
        store.update_run(run.id, {"best": "x", "kind": "sweep again", "error": None}, "FAILED", 2000)
        assert store.find_running() == []
        store.update_run(run.id, {"no such tag": None}, "RUNNING")
        store.update_run(run.id, {}, "FINISHED", 3000)
        ids.append(run.id)
    ours, theirs = (rows(tracking, run) for run in ids)
    assert ours == theirs
    assert {row["key"]: row["value"] for row in ours["latest_metrics"] if row["key"] in ("a", "b")} == {"a": 1, "b": 2}


def test_the_revision_is_that_of_the_installed_mlflow() -> None:
    from mlflow.store.db.utils import _get_latest_schema_revision

    assert find_installed_revision() == _get_latest_schema_revision()


def test_tables_of_another_version_are_created_by_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.tracking.sqlite._version", lambda: "another")
    tracking = Tracking(uri=f"sqlite:///{tmp_path}/mlflow.db", experiment="mine")
    assert SqliteDatabase(tracking, tracking.sqlite_file()).open() is not None
    assert read_revision(tmp_path / "mlflow.db") == find_installed_revision()
    assert MlflowClient(tracking.uri).get_experiment_by_name("mine") is not None


@pytest.mark.slow
@pytest.mark.skipif(find_installed_revision() != _version(), reason="mlflow.sql has the tables of another MLflow")
def test_a_new_database_is_the_one_that_mlflow_makes() -> None:
    assert dump_tables() == TABLES.read_text(encoding="utf-8")


def test_tables_are_dumped_in_one_order() -> None:
    """Alembic copies constraints and indexes from sets, whose order differs between processes."""
    key, lines = "\tCONSTRAINT runs_pk PRIMARY KEY (a)", ("\tCHECK (a > 0)", "\tCONSTRAINT b CHECK (b IN (0, 1))")

    def dump(constraints: Sequence[str], indexes: Sequence[str]) -> str:
        table = ", \n".join(("CREATE TABLE runs (\n\ta INTEGER", *constraints)) + "\n);\n"
        return table + "".join(f"CREATE INDEX {name} ON runs (a);\n" for name in indexes)

    orders = product(permutations((key, *lines)), permutations("xyz"))
    assert {sort_definitions(dump(*order)) for order in orders} == {dump((key, *lines), "xyz")}


def test_a_database_of_another_mlflow_is_left_to_it(tracking: Tracking, migrated: Path) -> None:
    file = tracking.sqlite_file()
    assert file is not None
    with closing(sqlite3.connect(file)) as database:
        database.execute("update alembic_version set version_num = 'another'")
        database.commit()
    assert SqliteDatabase(tracking, file).open() is None
    with pytest.raises(
        ConfigError, match=r"another MLflow \(revision another\), which the installed one does not know"
    ):
        Tracker(tracking)


def test_a_printed_command_names_where_runs_are_unless_that_is_the_default() -> None:
    assert Tracking().overrides() == []
    elsewhere = Tracking(uri="sqlite:////a b/it's.db", experiment="12", background=False)
    parser = OverridesParser.create()
    words = [word for override in elsewhere.overrides() for word in shlex.split(override)]
    parsed = {o.key_or_group: o.value() for o in parser.parse_overrides(words)}
    assert parsed == {"tracking.uri": "sqlite:////a b/it's.db", "tracking.experiment": "12"}
    assert "hush" not in Tracking(uri="http://me:hush@host:5000").overrides()[0]


def test_a_database_that_is_none_is_one_line(tracking: Tracking) -> None:
    Path(tracking.uri.removeprefix("sqlite:///")).write_text("no database" * 1000)
    with pytest.raises(ConfigError, match=r"tracking\.uri=.*cannot be read \(file is not a database\)"):
        Runs(tracking).like("abc")


class _ByHand(Executor):
    """Calls that end when the test says so."""

    def __init__(self) -> None:
        self.calls: Queue[Future[None]] = Queue()

    def submit(self, call: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls.put(future)
        return future


def test_what_waits_to_be_logged_is_bounded_by_its_size(tracking: Tracking, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work goes on while MLflow loads, as long as there is room; then it waits until there is."""
    entry = Finished(make_result(), {})
    monkeypatch.setattr(background, "MOST_WAITING_BYTES", 3 * entry.bytes)
    tracker, logging = BackgroundTracker(tracking), _ByHand()
    tracker._executor = logging
    for _ in range(4):  # one on its way, three that wait
        tracker.log(entry)
    worker = threading.Thread(target=tracker.log, args=[entry])
    worker.start()
    worker.join(0.2)
    assert worker.is_alive()
    logging.calls.get(timeout=10).set_result(None)
    worker.join(10)
    assert not worker.is_alive()
    logging.calls.get(timeout=10).set_result(None)
    tracker.flush()
    assert logging.calls.empty()
