"""Accesses an experiment through MLflow's client: on a server, or in a database that is not written directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from runner.tracking.logged import LoggedRun, local_path
from runner.tracking.mlflow_internals import Session, store_transaction
from runner.tracking.opening import open_client
from runner.tracking.record import LoggedDataset, Point, RunRecord, now
from runner.tracking.settings import Tracking

if TYPE_CHECKING:
    from mlflow.entities import Run

_LARGEST_BATCH, _MOST_PARAMETERS = 1000, 100  # MLflow's limits for one call


class ClientRuns:
    """The runs of an experiment, through MLflow's client; raises `ConfigError` if the store cannot be opened."""

    def __init__(self, tracking: Tracking) -> None:
        self._client, self.experiment = open_client(tracking, tracking.absolute_uri())

    @cached_property
    def location(self) -> str:
        """Return the address of the experiment's artifacts."""
        return str(self._client.get_experiment(self.experiment).artifact_location)

    def transaction(self) -> AbstractContextManager[Session]:
        """Return a context that yields a session and commits its changes together; servers do not support it."""
        return store_transaction(self._client)

    def create_run(self, name: str, started: int, tags: Mapping[str, str], user: str) -> LoggedRun:
        """Create a run with the status RUNNING and return it."""
        tags = {**tags, "mlflow.user": user}
        run = self._client.create_run(self.experiment, start_time=started, tags=tags, run_name=name).info
        return LoggedRun(run.run_id, local_path(run.artifact_uri))

    def read_run(self, run_id: str) -> tuple[str, dict[str, str]]:
        """Return the address of a run's artifacts and its tags."""
        run = self._client.get_run(run_id)
        return run.info.artifact_uri, dict(run.data.tags)

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags of a run."""
        for key, value in tags.items():
            self._client.set_tag(run_id, key, value)

    def delete_tag(self, run_id: str, key: str) -> None:
        """Remove a tag of a run."""
        self._client.delete_tag(run_id, key)

    def set_status(self, run_id: str, status: str, ended: int | None = None) -> None:
        """Set the status of a run and, if given, the time of its end (ms since the epoch)."""
        if ended is None:
            self._client.update_run(run_id, status=status)
        else:
            self._client.set_terminated(run_id, status, ended)

    def add_metrics(self, run_id: str, metrics: Sequence[Point]) -> None:
        """Add metrics to a run."""
        self._fill(run_id, metrics, {}, now())

    def add_dataset(self, run_id: str, dataset: LoggedDataset) -> None:
        """Link a run to its dataset."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        name, digest, source, profile, split = dataset
        described = Dataset(name, digest, source_type="local", source=source, schema=None, profile=profile)
        self._client.log_inputs(run_id, [DatasetInput(described, [InputTag("mlflow.data.context", split)])])

    def find_running(self) -> list[tuple[str, str]]:
        """Return the ids of runs that are still running, with the names of their processes, oldest first."""
        runs = self.search("attributes.status = 'RUNNING' and tags.process LIKE '%'")
        return [(run.info.run_id, run.data.tags["process"]) for run in runs]

    def search(self, wanted: str) -> list[Run]:
        """Return the runs that match an MLflow filter, oldest first."""
        runs: list[Run] = []
        token: str | None = ""
        while token is not None:
            page = self._client.search_runs(
                [self.experiment], wanted, order_by=["attributes.start_time ASC"], page_token=token or None
            )
            runs += page
            token = page.token or None
        return runs

    def log(self, record: RunRecord, tags: Mapping[str, str], user: str, folder: Path) -> LoggedRun:
        """Log a finished run with the artifacts in a folder, in several calls."""
        run = self.create_run(record.name, record.started, tags, user)
        try:
            if record.dataset:
                self.add_dataset(run.id, record.dataset)
            self._fill(run.id, record.metrics, record.parameters, record.ended or now())
            self.upload(run.id, folder)
            self.set_status(run.id, record.status, record.ended or now())
        except Exception:
            with suppress(Exception):  # the first error is raised, not this one
                self.set_status(run.id, "KILLED", now())
            raise
        return LoggedRun(run.id, None)

    def upload(self, run_id: str, folder: Path) -> None:
        """Add the files in a folder to a run's artifacts."""
        self._client.log_artifacts(run_id, str(folder))

    def list_files(self, run_id: str) -> set[str]:
        """Return the names of the artifacts at the top of a run's folder."""
        return {artifact.path for artifact in self._client.list_artifacts(run_id)}

    def download(self, run_id: str, name: str, folder: Path) -> None:
        """Copy an artifact of a run into a folder."""
        self._client.download_artifacts(run_id, name, str(folder))

    def _fill(self, run_id: str, metrics: Sequence[Point], parameters: Mapping[str, str], moment: int) -> None:
        from mlflow.entities import Metric, Param

        params = [Param(key, value) for key, value in parameters.items()]
        points = [Metric(name, value, moment, step) for name, value, step in metrics]
        first = _LARGEST_BATCH - min(len(params), _MOST_PARAMETERS)
        self._client.log_batch(run_id, points[:first], params[:_MOST_PARAMETERS])
        for begin in range(_MOST_PARAMETERS, len(params), _MOST_PARAMETERS):
            self._client.log_batch(run_id, params=params[begin : begin + _MOST_PARAMETERS])
        for begin in range(first, len(points), _LARGEST_BATCH):
            self._client.log_batch(run_id, points[begin : begin + _LARGEST_BATCH])
