"""Stores runs through MLflow's client: on a server, or in a database whose tables were not tested."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrievers.files import replace_texts
from runner.config.values import without_secrets
from runner.system.processes import holder
from runner.tracking.logged import LoggedRun, ParentRun, Run, find_artifacts, local_path
from runner.tracking.mlflow_internals import open_artifacts
from runner.tracking.opening import open_client
from runner.tracking.places import NOWHERE, check_place, is_own_place
from runner.tracking.record import REUSED, LoggedDataset, Point, RunRecord, TagChanges, link_key, now
from runner.tracking.revisions import TESTED
from runner.tracking.settings import Tracking
from runner.tracking.sqlite import SqliteDatabase

if TYPE_CHECKING:
    from mlflow.entities import Run as MlflowRun
    from mlflow.entities import RunInfo
    from mlflow.tracking import MlflowClient

_LARGEST_BATCH, _MOST_PARAMETERS = 1000, 100  # MLflow's limits for one call

_PARENT = "mlflow.parentRunId"

_RESULT_ID = "result_id"
"""The tag of a run that identifies a result, to find one that was logged before."""


class ClientStore:
    """The runs of an experiment behind MLflow's client, which stores a run and its artifacts in several calls."""

    keeps_runs, is_direct = True, False

    def __init__(self, tracking: Tracking) -> None:
        self._tracking = tracking
        address = without_secrets(tracking.uri).rstrip("/") if tracking.uri.startswith("http") else ""
        self.page = address if tracking.is_server() else None
        self._file = file = tracking.sqlite_file()
        self.folder = Path("mlruns").resolve() if file is None else file.parent

    def check(self) -> None:
        """Do nothing: what is wrong with a store is known once it is opened, which happens before the work."""

    def relocate(self) -> str:
        """Record where the artifacts are if a SQLite file was moved or copied with them.

        Return a message about it, about tables that were not tested, or about a place that a server ignores.
        """
        if not self._tracking.is_server():
            moved = SqliteDatabase(self._tracking, self._file).relocate()
            slower = (
                f"tracking.uri={without_secrets(self._tracking.uri)}: logged through MLflow's client, which is slower: "
                f"the tables of MLflow {version('mlflow-skinny')} were not tested, unlike those of "
                f"{', '.join(TESTED.values())}"
            )
            return f"{moved}; {slower}" if moved else slower
        if not self._tracking.names_artifacts:
            return ""
        return f"tracking.artifacts={self._tracking.artifacts}: only allows this place, as the server chooses its own"

    def open(self) -> None:
        """Connect and create the experiment if necessary; raises `ConfigError`."""
        _ = self._connection

    @property
    def experiment(self) -> str:
        """Return the id of the experiment."""
        return self._connection[1]

    def log(self, runs: Sequence[tuple[str, RunRecord]]) -> Iterator[LoggedRun]:
        """Log runs with their artifacts, one after the other; the id of its result is a tag of a run."""
        for result, record in runs:
            tags = {"process": holder(), **record.tags} | ({_RESULT_ID: result} if result else {})
            with tempfile.TemporaryDirectory() as folder:
                record.write(Path(folder))
                yield self._log(record, tags, folder)

    def _log(self, record: RunRecord, tags: Mapping[str, str], artifacts: str) -> LoggedRun:
        run = self.create_run(record.name, record.started, tags)
        try:
            self._fill(run.id, record.metrics, record.parameters, record.dataset, record.ended or now())
            self._open_artifacts(run.id).log_artifacts(artifacts)
            self.update_run(run.id, {}, record.status, record.ended or now())
        except Exception:
            with suppress(Exception):  # the first error is raised, not this one
                self.update_run(run.id, {}, "KILLED", now())
            raise
        return run

    def find_logged(self, results: Sequence[str]) -> dict[str, LoggedRun]:
        """Return the runs of results that are already logged."""
        wanted = f"tags.{_RESULT_ID} = '{{}}' and attributes.status = 'FINISHED'"
        logged = ((result, self._search(wanted.format(result))) for result in results)
        return {result: self._locate(runs[0].info) for result, runs in logged if runs}

    def create_run(self, name: str, started: int, tags: Mapping[str, str]) -> LoggedRun:
        """Create a run with the status RUNNING and return it."""
        run = self._client.create_run(self.experiment, start_time=started, tags=dict(tags), run_name=name).info
        return self._locate(run)

    def update_run(self, run_id: str, tags: TagChanges, status: str | None = None, ended: int | None = None) -> None:
        """Set tags of a run, or remove those that are None, and set its status and the time of its end if given."""
        for key, value in tags.items():
            if value is not None:
                self._client.set_tag(run_id, key, value)
            elif key in self._client.get_run(run_id).data.tags:
                self._client.delete_tag(run_id, key)
        if ended is not None:
            self._client.set_terminated(run_id, status, ended)
        elif status is not None:
            self._client.update_run(run_id, status)

    def add_metrics(self, run_id: str, metrics: Sequence[Point], dataset: LoggedDataset) -> None:
        """Add metrics to a run, and link it to their dataset."""
        self._fill(run_id, metrics, {}, dataset, now())

    def link(self, parent: str, sweep_id: str, runs: Collection[str]) -> None:
        """Tag combinations of a sweep as also reported by one of its parent runs."""
        for run in self._search(f"tags.sweep_id = '{sweep_id}'"):
            tags = run.data.tags
            if run.info.run_id in runs and tags.get(_PARENT) != parent and link_key(parent) not in tags:
                self.update_run(run.info.run_id, {link_key(parent): REUSED})

    def find_running(self) -> list[tuple[str, str]]:
        """Return the ids of runs that are still running, with the names of their processes."""
        runs = self._search("attributes.status = 'RUNNING' and tags.process LIKE '%'")
        return [(run.info.run_id, run.data.tags["process"]) for run in runs]

    def read_sweep(self, sweep_id: str, parent: str = "") -> tuple[list[ParentRun], dict[str, LoggedRun]]:
        """Return the parent runs of a sweep, and the finished combinations of all of them or of one."""
        parents, finished = [], {}
        for run in self._search(f"tags.sweep_id = '{sweep_id}'"):
            info, tags = run.info, run.data.tags
            logged = self._locate(info)
            if tags.get("kind") == "sweep":
                parents.append(ParentRun(logged, info.status, tags.get("process", ""), tags.get("report_id", "")))
            if "combination" in tags and info.status == "FINISHED" and parent in ("", tags.get(_PARENT)):
                finished[tags["combination"]] = logged
        return parents, finished

    def find_runs(self, beginning: str) -> list[Run]:
        """Return the runs of the experiment whose ids start with these hexadecimal digits."""
        return [self._describe(run) for run in self._search(f"attributes.run_id LIKE '{beginning}%'")]

    def list_combinations(self, parent: str, status: str) -> list[Run]:
        """Return the combinations with a status that a parent run computed or reports."""
        tags = (f"tags.`{_PARENT}` = '{parent}'", f"tags.`{link_key(parent)}` = '{REUSED}'")
        runs = [run for tag in tags for run in self._search(f"{tag} and attributes.status = '{status}'")]
        return [self._describe(run) for run in sorted(runs, key=lambda run: run.info.start_time)]

    def list_runs(self, ended: bool) -> list[Run]:
        """Return the evaluations and sweeps, latest first; with `ended`, only those that have ended."""
        rest = " and attributes.end_time > 0" if ended else ""
        runs = [run for kind in ("evaluation", "sweep") for run in self._search(f"tags.kind = '{kind}'{rest}")]
        runs.sort(key=lambda run: (run.info.end_time if ended else 0, run.info.start_time), reverse=True)
        return [self._describe(run) for run in runs if _PARENT not in run.data.tags]

    def list_kind(self, kind: str) -> list[Run]:
        """Return the finished runs with a tag `kind`, oldest first."""
        return [self._describe(run) for run in self._search(f"tags.kind = '{kind}' and attributes.status = 'FINISHED'")]

    def add_files(self, run_id: str, files: Mapping[str, str]) -> None:
        """Add texts to the artifacts of a run."""
        with tempfile.TemporaryDirectory() as folder:
            replace_texts(Path(folder), files)
            self._open_artifacts(run_id).log_artifacts(folder)

    def list_files(self, run_id: str) -> set[str]:
        """Return the names of the artifacts at the top of a run's folder."""
        return {artifact.path for artifact in self._open_artifacts(run_id).list_artifacts()}

    def fetch_file(self, run_id: str, name: str, folder: Path) -> None:
        """Copy an artifact of a run into a folder."""
        self._open_artifacts(run_id).download_artifacts(name, str(folder))

    def find_orphans(self) -> list[Path]:
        """Return no folders, as a server keeps the artifacts."""
        return []

    @property
    def _client(self) -> MlflowClient:
        return self._connection[0]

    @cached_property
    def _connection(self) -> tuple[MlflowClient, str]:
        return open_client(self._tracking)

    def _search(self, wanted: str) -> list[MlflowRun]:
        """Return the runs that match an MLflow filter, oldest first."""
        runs: list[MlflowRun] = []
        token: str | None = ""
        while token is not None:
            page = self._client.search_runs(
                [self.experiment], wanted, order_by=["attributes.start_time ASC"], page_token=token or None
            )
            runs += page
            token = page.token or None
        return runs

    def _fill(
        self,
        run_id: str,
        metrics: Sequence[Point],
        parameters: Mapping[str, str],
        dataset: LoggedDataset | None,
        moment: int,
    ) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param

        if dataset is not None:
            name, digest, source, profile, split = dataset
            described = Dataset(name, digest, source_type="local", source=source, schema=None, profile=profile)
            self._client.log_inputs(run_id, [DatasetInput(described, [InputTag("mlflow.data.context", split)])])
        params = [Param(key, value) for key, value in parameters.items()]
        points = [Metric(name, value, moment, step) for name, value, step in metrics]
        first = _LARGEST_BATCH - min(len(params), _MOST_PARAMETERS)
        self._client.log_batch(run_id, points[:first], params[:_MOST_PARAMETERS])
        for begin in range(_MOST_PARAMETERS, len(params), _MOST_PARAMETERS):
            self._client.log_batch(run_id, params=params[begin : begin + _MOST_PARAMETERS])
        for begin in range(first, len(points), _LARGEST_BATCH):
            self._client.log_batch(run_id, points[begin : begin + _LARGEST_BATCH])

    def _describe(self, run: MlflowRun) -> Run:
        info, tags = run.info, run.data.tags
        kind, best, best_run, parent = (tags.get(key, "") for key in ("kind", "best", "best_run", _PARENT))
        uri = find_artifacts(self._file, info.artifact_uri)
        place = uri if is_own_place(self._tracking, uri) else NOWHERE
        return Run(info.run_id, info.run_name, info.status, kind, best, best_run, parent, place)

    def _locate(self, info: RunInfo) -> LoggedRun:
        """Return a run with the folder of its artifacts, if it is on this machine and a place of the user."""
        uri = find_artifacts(self._file, info.artifact_uri)
        return LoggedRun(info.run_id, local_path(uri) if is_own_place(self._tracking, uri) else None)

    def _open_artifacts(self, run_id: str) -> Any:  # noqa: ANN401 (MLflow has no types)
        """Return MLflow's repository of the artifacts of a run; raises `ConfigError` for a place of others."""
        uri = find_artifacts(self._file, self._client.get_run(run_id).info.artifact_uri)
        return open_artifacts(check_place(self._tracking, run_id, uri), self._tracking.uri)
