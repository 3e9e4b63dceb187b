from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import socket
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from filelock import FileLock
from google.protobuf.json_format import ParseDict
from mlflow.tracking import MlflowClient
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from runner.__main__ import main
from runner.config.objects import ConfigError
from runner.datasets.base import DatasetError
from runner.datasets.traffic.telemetry import Telemetry
from runner.evaluation.records import load_record
from runner.evaluation.result import Result
from runner.tracking.background import BackgroundTracker
from runner.tracking.logged import Sweep
from runner.tracking.record import Finished
from runner.tracking.settings import Tracking
from runner.tracking.tracker import Tracker
from tests.datasets.otlp import batch, retrieval, span
from tests.pages.factory import result as make_result
from tests.tracking.conftest import PASSWORD

pytestmark = pytest.mark.usefixtures("starting")  # the MLflow server starts while the first tests run

SWEEP = ("-m", "retriever=bm25", "retriever.k1=0.6,0.9")
SWEPT = Sweep("abc", "a sweep", {"k1": "1, 2"}, 2)
STAMP = re.compile(r"eval_\d{8}_\d{6}")


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which has a store of runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path


@pytest.fixture(scope="module")
def expected(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what a sweep leaves in a SQLite store that is written to in place."""
    folder = tmp_path_factory.mktemp("expected")
    uri = f"sqlite:///{shutil.copy(migrated, folder)}"
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        assert main([*SWEEP, "tracking.background=false", f"tracking.uri={uri}"]) == 0
    return _held(uri)


def _held(uri: str) -> dict[str, Any]:
    """Return what a store holds by the names of its runs, but for times and identities."""
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("retrieval")
    assert experiment is not None
    runs = {run.info.run_id: run for run in client.search_runs([experiment.experiment_id])}
    held = {}
    for identity, run in runs.items():
        parent = run.data.tags.get("mlflow.parentRunId")
        held[run.info.run_name] = {
            "status": run.info.status,
            "parent": runs[parent].info.run_name if parent else None,
            "parameters": run.data.params,
            "metrics": {k: v for k, v in run.data.metrics.items() if not k.startswith(("time/", "latency/"))},
            "curve": [(point.step, point.value) for point in client.get_metric_history(identity, "curve/ndcg")],
            "tags": {
                k: v
                for k, v in run.data.tags.items()
                if k not in ("mlflow.parentRunId", "process", "best_run", "result_id")
            },
            "datasets": [each.dataset.digest for each in run.inputs.dataset_inputs],
            "artifacts": {STAMP.sub("eval", item.path) for item in client.list_artifacts(identity)},
        }
    return held


def _fetched(uri: str, name: str, folder: Path) -> Result:
    """Return the result that is among the artifacts of a run."""
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("retrieval")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id], f"attributes.run_name = '{name}'")
    folder.mkdir()
    return load_record(Path(client.download_artifacts(run.info.run_id, "", str(folder))))


def test_postgresql_holds_the_same_runs_and_never_reveals_the_password(
    postgresql: str, here: Path, expected: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SWEEP, f"tracking.uri={postgresql}", "tracking.background=false"]) == 0
    said, held = "".join(capsys.readouterr()), _held(postgresql)
    assert held == expected
    assert len(list((here / "mlruns" / "artifacts").glob("[!.]*"))) == len(expected)
    result = _fetched(postgresql, "k1=0.9", here / "fetched")
    assert result.means["nDCG@10"] == expected["k1=0.9"]["metrics"]["ndcg_at_10"]
    assert result.config["tracking"]["uri"].startswith("postgresql://mlflow:***@127.0.0.1")
    written = b"".join(path.read_bytes() for path in here.rglob("*") if path.is_file())  # the artifacts, too
    for password in (PASSWORD, quote(PASSWORD)):
        assert password not in said + repr(held)
        assert password.encode() not in written


@pytest.mark.usefixtures("here")
def test_a_wrong_password_is_one_line_without_it(postgresql: str, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = postgresql.replace(quote(PASSWORD), "gu3ss")
    assert main([*SWEEP, f"tracking.uri={wrong}", "tracking.background=false"]) == 2
    said = _one_line(capsys)
    assert "password authentication failed" in said
    assert "gu3ss" not in said


def _one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line that was said: there is no other, so no work was done before it."""
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    return err


@pytest.mark.parametrize(
    ("uri", "reason", "background"),
    [
        ("http://127.0.0.1:1", "Connection refused", True),
        ("http://127.0.0.1:1", "Connection refused", False),
        ("postgresql://mlflow:s3cret@127.0.0.1:1/mlflow", "Connection refused", False),
        ("postgresql://mlflow:s3cret@127.0.0.1:port/mlflow", "invalid address", False),
        ("postgresql+pg8000://mlflow:s3cret@127.0.0.1/mlflow", "install the driver of this database", False),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_store_that_is_out_of_reach_is_one_line_before_any_work(
    uri: str, reason: str, background: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SWEEP, f"tracking.uri={uri}", f"tracking.background={background}"]) == 2
    said = _one_line(capsys)
    assert said.startswith(f"error: tracking.uri={uri.replace('s3cret', '***')}: cannot be opened (")
    assert reason in said


@pytest.mark.usefixtures("here")
def test_the_user_says_how_long_to_wait_for_a_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert main([*SWEEP, f"tracking.uri={uri}", "tracking.background=false"]) == 2
    assert "timed out" in _one_line(capsys)
    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "1"
    assert "MLFLOW_HTTP_REQUEST_MAX_RETRIES" not in os.environ


def test_a_server_holds_the_same_and_keeps_the_artifacts_itself(
    server: str, here: Path, expected: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*SWEEP, f"tracking.uri={server}", "tracking.background=false"]) == 0
    out = capfd.readouterr().out
    assert "report: report.html among the artifacts of run" in out
    assert "View run" not in out  # which MLflow would say of every run
    assert _held(server) == expected
    assert not (here / "mlruns" / "artifacts").exists()
    result = _fetched(server, "k1=0.6", here / "fetched")
    assert result.means["nDCG@10"] == expected["k1=0.6"]["metrics"]["ndcg_at_10"]
    capfd.readouterr()
    assert main(["table", "sweeps=latest", "output=paper", f"tracking.uri={server}"]) == 0
    assert capfd.readouterr().err.startswith("written: "), "no bar of MLflow for what it downloads"


def test_a_process_of_its_own_leaves_the_same_as_writing_in_place(here: Path, expected: dict[str, Any]) -> None:
    assert main([*SWEEP]) == 0
    assert _held(f"sqlite:///{here}/mlruns/mlflow.db") == expected
    assert set(expected) == {"sweep over k1", "k1=0.6", "k1=0.9"}


def test_a_process_that_cannot_open_its_store_says_why_to_all_who_wait(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    tracking = Tracking(uri=f"sqlite:///{tmp_path}/file/mlflow.db")
    with BackgroundTracker(tracking) as tracker:
        tracker.start_sweep(SWEPT)
        with pytest.raises(ConfigError, match="cannot be opened"):
            tracker.finish_sweep(None, {}, "FAILED")
        with pytest.raises(ConfigError, match="cannot be opened"):
            tracker.log(Finished(make_result(), {}))


def test_when_the_process_that_logs_is_killed_another_takes_its_place(tracking: Tracking) -> None:
    with BackgroundTracker(tracking) as tracker:
        tracker.start_sweep(SWEPT)
        tracker.log(Finished(make_result(), {}, tags={"combination": "1"}))
        tracker.flush()
        (process,) = multiprocessing.active_children()
        process.kill()
        tracker.log(Finished(make_result(), {}, tags={"combination": "2"}))
        tracker.finish_sweep(None, {}, "FINISHED")
        assert tracker.trouble is None
    assert Tracker(tracking).state(SWEPT.id).finished.keys() == {"1", "2"}
    with closing(sqlite3.connect(tracking.uri.removeprefix("sqlite:///"))) as database:
        assert database.execute("select status from runs").fetchall() == [("FINISHED",)] * 3


def test_an_interrupt_waits_for_no_closed_store_and_returns_the_rest(tracking: Tracking) -> None:
    entry = Finished(make_result(), {}, tags={"combination": "1"})
    lock = FileLock(tracking.uri.removeprefix("sqlite:///").replace(".db", ".lock"))
    with lock, pytest.raises(KeyboardInterrupt), BackgroundTracker(tracking) as tracker:
        tracker.start_sweep(SWEPT)
        tracker.log(entry)
        raise KeyboardInterrupt
    assert tracker.left
    assert tracker.take_unlogged() == [entry]
    assert not multiprocessing.active_children()


def test_an_interrupt_leaves_a_store_that_is_open_with_all_that_was_done(
    tracking: Tracking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.tracking.background.LEAVING_S", 60)  # a busy machine takes longer than a user waits
    with pytest.raises(KeyboardInterrupt), BackgroundTracker(tracking) as tracker:
        tracker.start_sweep(SWEPT)
        tracker.recover()
        tracker.log(Finished(make_result(), {}, tags={"combination": "1"}))
        raise KeyboardInterrupt
    assert not tracker.left
    assert Tracker(tracking).state(SWEPT.id).finished.keys() == {"1"}


def test_a_process_that_is_killed_again_and_again_is_one_line(tracking: Tracking) -> None:
    with pytest.raises(ConfigError, match=r"tracking\.background=false"), BackgroundTracker(tracking) as tracker:
        for _ in range(9):
            tracker.start()
            (process,) = multiprocessing.active_children()
            process.kill()
            tracker.recover()


def test_what_could_not_be_logged_is_handed_back_and_tried_again_later(tracking: Tracking) -> None:
    moment = 0.0
    entries = [Finished(make_result(), {}, tags={"combination": str(i)}) for i in range(4)]
    file = tracking.uri.removeprefix("sqlite:///")
    with BackgroundTracker(replace(tracking, background=False), clock=lambda: moment) as tracker:
        tracker.start_sweep(SWEPT)
        tracker.log(entries[0])
        with closing(sqlite3.connect(file, isolation_level=None)) as database:
            database.execute("ALTER TABLE metrics RENAME TO gone")
            tracker.log(entries[1])
            assert "cannot be written" in str(tracker.trouble)
            database.execute("ALTER TABLE gone RENAME TO metrics")
        tracker.log(entries[2])
        assert tracker.take_unlogged() == entries[1:3]
        moment += 60
        tracker.log(entries[3])
        assert tracker.trouble is None
        assert tracker.take_unlogged() == []
    assert Tracker(tracking).state(SWEPT.id).finished.keys() == {"0", "3"}


def test_the_traces_of_a_server_are_traffic(server: str, here: Path) -> None:
    experiment = MlflowClient(server).create_experiment("traces of a server")
    ids = {"traceId": "AAAAAAAAAAAAAAAAAAAACQ==", "spanId": "AAAAAAAAAAk=", "parentSpanId": ""}
    request = ParseDict(batch(span(9, retrieval("ferry", "d1")) | ids), ExportTraceServiceRequest())
    headers = {"Content-Type": "application/x-protobuf", "x-mlflow-experiment-id": experiment}
    body = request.SerializeToString()
    httpx.post(f"{server}/v1/traces", content=body, headers=headers, timeout=60).raise_for_status()
    traffic = Telemetry(path=server, unjudged_queries="keep").read_traffic()
    assert [(search.query, traffic.list_hits(search)) for search in traffic.searches] == [("ferry", [("d1", 1.0)])]


def test_a_server_of_traces_that_does_not_answer_is_named_in_one_line(here: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(DatasetError, match=rf"^{address}: traces cannot be read \([^\n]+\)$"):
        Telemetry(path=address).read_traffic()
