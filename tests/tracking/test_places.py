"""Artifacts are read and written only on the tracking server itself, or in the place that the user's settings name."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from runner.config.objects import ConfigError
from runner.tracking.fetching import Runs
from runner.tracking.places import is_own_place
from runner.tracking.record import Finished
from runner.tracking.settings import Tracking
from runner.tracking.tracker import Tracker
from tests.pages.factory import result

SERVER = "http://127.0.0.1:5000"
RUN = "4f" * 16


@pytest.mark.parametrize(
    ("tracking", "uri", "own"),
    [
        (Tracking(SERVER), f"mlflow-artifacts:/1/{RUN}/artifacts", True),
        (Tracking(SERVER), f"mlflow-artifacts://127.0.0.1:5000/1/{RUN}", False),
        (Tracking(SERVER), "mlflow-artifacts://evil.example:80/1", False),
        (Tracking(SERVER), "file:///etc", False),
        (Tracking(SERVER), "/etc", False),
        (Tracking(SERVER), "C:/Users", False),
        (Tracking(SERVER), "http://evil.example/a", False),
        (Tracking(SERVER), "s3://evil/a", False),
        (Tracking(SERVER, artifacts="s3://team/runs"), f"s3://team/runs/1/{RUN}/artifacts", True),
        (Tracking(SERVER, artifacts="s3://team/runs/"), "s3://team/runs/../other", False),
        (Tracking(SERVER, artifacts="s3://team/runs"), "s3://team/runs/%2e%2e/other", False),
        (Tracking(SERVER, artifacts="s3://team/runs"), "s3://team/runs2/1", False),
        (Tracking(SERVER, artifacts="/srv/mlruns"), f"file:///srv/mlruns/1/{RUN}", True),
        (Tracking(SERVER, artifacts="/srv/mlruns"), "file:///srv/mlruns/../../etc", False),
        (Tracking("databricks"), "dbfs:/databricks/mlflow-tracking/1", True),
        (Tracking("databricks"), "mlflow-artifacts://evil.example/1", False),
        (Tracking("sqlite:///a.db"), "file:///elsewhere/1", True),
        (Tracking("sqlite:///a.db"), "http://evil.example/1", False),
        (Tracking("sqlite:///a.db", artifacts="s3://team/runs"), "s3://team/runs/1", True),
    ],
)
def test_a_place_is_on_the_server_or_in_the_settings(tracking: Tracking, uri: str, own: bool) -> None:
    assert is_own_place(tracking, uri) is own


def _fail(*_: object, **__: object) -> Any:
    raise AssertionError("a place of a stranger was opened")


@pytest.mark.parametrize("uri", ["file:///etc", "http://evil.example/1", "mlflow-artifacts://evil.example:80/1"])
def test_no_place_that_a_server_names_is_opened(
    uri: str, tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.tracking.client import ClientStore

    (logged,) = Tracker(tracking).log([Finished(result(), {})])
    with closing(sqlite3.connect(tracking.uri.removeprefix("sqlite:///"))) as database, database:
        database.execute("update runs set artifact_uri = ?", (uri,))
    client, experiment = MlflowClient(tracking.uri), "1"
    experiment = client.get_run(logged.id).info.experiment_id
    monkeypatch.setattr("runner.tracking.client.open_client", lambda tracking: (client, experiment))
    monkeypatch.setattr("runner.tracking.client.open_artifacts", _fail)
    monkeypatch.setattr("runner.tracking.fetching.choose_store", lambda tracking: ClientStore(tracking))
    runs = Runs(Tracking(SERVER))
    (run,) = runs.list_ended()
    assert run.folder is None
    place = rf"http://127\.0\.0\.1:5000: run {run.id[:8]} names a place for its artifacts that is neither the server's "
    for read in (runs.record, runs.list_files, lambda run: runs.read_file(run, "report.html")):
        with pytest.raises(ConfigError, match=place):
            read(run)
    with pytest.raises(ConfigError, match=r"set tracking\.artifacts="):
        ClientStore(Tracking(SERVER)).add_files(run.id, {"report.html": "<p>mine</p>"})
