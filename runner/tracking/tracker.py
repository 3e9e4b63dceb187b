"""An open store of runs: a single evaluation is one run; a sweep is a parent run with its combinations as children.

A run is found again by its tags: `sweep_id`, `report_id` (what a parent run reports) and `combination` (what decides a
result), `process` while it is under way.
"""

from __future__ import annotations

import getpass
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from runner.records import load_record
from runner.result import Result
from runner.store.lock import holder, is_gone
from runner.tracking.artifacts import ArtifactFolders
from runner.tracking.logged import LoggedRun, State, Sweep, local_path, state_of
from runner.tracking.mlflow_internals import (
    Rows,
    existing_runs,
    insert_links,
    insert_runs,
    read_store,
    store_of,
    sweep_rows,
    upload_artifacts,
)
from runner.tracking.opening import open_store
from runner.tracking.record import (
    LONGEST_NAME,
    LONGEST_TAG,
    REUSED,
    DatasetMade,
    Failed,
    Finished,
    Point,
    RunRecord,
    axes_of,
    dataset_of,
    link_key,
    metrics_of,
    now,
    sanitize_name,
    write_files,
)
from runner.tracking.settings import Tracking
from runner.tracking.unlogged import Waiting

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Run
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

Entry = Finished | Failed | DatasetMade | Waiting

_RESULT_ID = "result_id"
"""The tag of a run on a server by which a result is found that was logged before."""

_LARGEST_BATCH, _MOST_PARAMETERS = 1000, 100  # of one call, MLflow's own limits


class Tracker:
    """An open store of runs; raises `ConfigError` where it cannot be opened."""

    def __init__(self, tracking: Tracking) -> None:
        self.tracking = tracking
        self.uri = tracking.absolute_uri()
        self._client, self.experiment = open_store(tracking, self.uri)
        self._parents: dict[str, LoggedRun] = {}
        if not self.tracking.is_server():
            self._artifact_folders.clear(self._existing)

    def log(self, entries: Sequence[Entry], sweep: Sweep | None = None, again: bool = False) -> list[LoggedRun]:
        """Log evaluations that are over, as combinations of a sweep if there is one, and datasets that were made.

        In a database they become visible together, whole; on a server one after the other. Where nobody knows what
        became of an earlier try (`again`), those that are finished are left out. A result that waits in a file is
        removed once it is logged, and left out where it cannot be read.
        """
        parent = None if sweep is None else self.start_sweep(sweep)
        if again and sweep is not None:
            done = {combination for combination, *_ in self._rows(sweep.id, parent)[1]}
            entries = [e for e in entries if isinstance(e, Waiting) or e.tags.get("combination") not in done]
        if self.tracking.is_server():
            return [
                self._through_client(_of_sweep(entry.record, sweep, parent), waiting, again)
                for entry, waiting in _read(entries)
            ]
        doubtful = [entry.run_id for entry in entries if isinstance(entry, Waiting) and (again or entry.attempted)]
        logged = self._existing(doubtful)
        before = [LoggedRun(run_id, local_path(self._artifact_uri(run_id))) for run_id in logged]
        entries = _without(entries, lambda entry: isinstance(entry, Waiting) and entry.run_id in logged)
        read = _read(entries)
        ids = [waiting.run_id if waiting else uuid.uuid4().hex for _, waiting in read]
        rows = [
            (run_id, self._artifact_uri(run_id), _of_sweep(entry.record, sweep, parent))
            for run_id, (entry, _) in zip(ids, read, strict=True)
        ]
        with self._artifact_folders.announce(ids, self._existing):
            for _, uri, record in rows:  # artifacts first: a run that is there has them
                with _artifacts(uri) as folder:
                    record.write(folder)
            insert_runs(self._store, self.experiment, _user(), rows)
        for _, waiting in read:
            if waiting:
                waiting.remove()
        return before + [LoggedRun(run_id, local_path(uri)) for run_id, uri, _ in rows]

    def state(self, sweep_id: str, report: str = "") -> State:
        """Return how far a sweep is, and the parent run of one of its reports."""
        return state_of(*self._rows(sweep_id), report)

    def link(self, sweep: Sweep, runs: Collection[str]) -> None:
        """Tag combinations that another command computed as reported by this sweep's parent run as well."""
        parent = self.start_sweep(sweep).id
        if not self.tracking.is_server():
            insert_links(self._store, parent, runs)
            return
        for run in self._search(f"tags.sweep_id = '{sweep.id}'"):
            tags = run.data.tags
            if run.info.run_id in runs and tags.get("mlflow.parentRunId") != parent and link_key(parent) not in tags:
                self._client.set_tag(run.info.run_id, link_key(parent), REUSED)

    def _rows(self, sweep_id: str, parent: LoggedRun | None = None) -> tuple[Rows, Rows]:
        """Return what is known of a sweep, as `sweep_rows` does; with a parent, only what is part of that."""
        if not self.tracking.is_server():
            return sweep_rows(read_store(self._store), self.tracking.experiment, sweep_id, parent.id if parent else "")
        runs = [(run.info, run.data.tags) for run in self._search(f"tags.sweep_id = '{sweep_id}'")]
        parents = [
            (info.run_id, info.artifact_uri, info.status, tags.get("process"), tags.get("report_id"))
            for info, tags in runs
            if tags.get("kind") == "sweep"
        ]
        done = [
            (tags["combination"], info.run_id, info.artifact_uri)
            for info, tags in runs
            if "combination" in tags and info.status == "FINISHED"
            if parent is None or tags.get("mlflow.parentRunId") == parent.id
        ]
        return parents, done

    def result(self, run: LoggedRun, rankings: bool = False) -> Result:
        """Return the record of a run that a server keeps, with its rankings or without; raises `ResultError`."""
        with tempfile.TemporaryDirectory() as folder:
            wanted = {"result.json", "per_query.parquet", "grades.parquet"} | (
                {"rankings.parquet"} if rankings else set()
            )
            for name in wanted.intersection(artifact.path for artifact in self._client.list_artifacts(run.id)):
                self._client.download_artifacts(run.id, name, folder)
            return load_record(Path(folder), rankings)

    def has_file(self, run: LoggedRun, name: str) -> bool:
        """Tell whether a run has an artifact at the top of its folder."""
        return any(artifact.path == name for artifact in self._client.list_artifacts(run.id))

    def add_files(self, run: LoggedRun, files: Mapping[str, str]) -> None:
        """Add texts to the artifacts of a run that is over."""
        self._keep(self._client.get_run(run.id), partial(write_files, files=files))

    def reject(self, run: LoggedRun, why: str) -> None:
        """Mark a finished run as failed whose record is gone."""
        self._client.set_tag(run.id, "error", why[:LONGEST_TAG])
        self._client.set_terminated(run.id, "FAILED")

    def recover(self) -> int:
        """Mark as KILLED the runs whose process of this machine is gone; return how many they were."""
        left = [
            run
            for run in self._search("attributes.status = 'RUNNING' and tags.process LIKE '%'")
            if is_gone(run.data.tags["process"].partition(" ")[0])
        ]
        for run in left:
            self._client.set_tag(run.info.run_id, "error", "its process was gone before it ended")
            self._client.set_terminated(run.info.run_id, "KILLED")
        return len(left)

    def start_sweep(self, sweep: Sweep) -> LoggedRun:
        """Return the parent run of a sweep, open: the one that it has, or a new one; however often it is asked for."""
        if sweep.process in self._parents:
            return self._parents[sweep.process]
        tags = {"kind": "sweep", "sweep_id": sweep.id, "report_id": sweep.report, "process": sweep.process}
        tags |= {"combinations": str(sweep.combinations)} | axes_of(sweep.axes)
        tags = {sanitize_name(key): value[:LONGEST_TAG] for key, value in tags.items()}
        made = [parent for parent in self._rows(sweep.id)[0] if parent[3] == sweep.process]  # before this process died
        if sweep.run is not None:
            parent = sweep.run
            for key, value in tags.items():
                self._client.set_tag(parent.id, key, value)
            if "error" in self._client.get_run(parent.id).data.tags:  # of an earlier time, which goes on now
                self._client.delete_tag(parent.id, "error")
            self._client.update_run(parent.id, status="RUNNING")
        elif made:
            parent = LoggedRun(made[-1][0], local_path(made[-1][1]))
        else:
            created = self._create(sweep.name, now(), tags).info
            parent = LoggedRun(created.run_id, local_path(created.artifact_uri))
        self._parents[sweep.process] = parent
        return parent

    def finish_sweep(
        self,
        sweep: Sweep,
        best: Result | None,
        reports: Mapping[str, str],
        status: str,
        tags: Mapping[str, str] | None = None,
    ) -> LoggedRun:
        """Close a sweep with its reports and tags; its measures are those of its best combination."""
        parent = self.start_sweep(sweep)
        run = self._client.get_run(parent.id)
        if best is not None:
            self._fill(run, metrics_of(best), {})
            self._client.log_inputs(run.info.run_id, [_dataset_input(dataset_of(best))])
            self._client.set_tag(run.info.run_id, "best", best.name)
        for key, value in (tags or {}).items():
            self._client.set_tag(run.info.run_id, sanitize_name(key), value[:LONGEST_TAG])
        self._keep(run, partial(write_files, files=reports))
        self._client.set_terminated(run.info.run_id, status)
        del self._parents[sweep.process]
        return parent

    def _through_client(self, record: RunRecord, waiting: Waiting | None = None, again: bool = False) -> LoggedRun:
        tags = {"process": holder(), **record.tags}
        if waiting:
            tags[_RESULT_ID] = waiting.run_id
            if again or waiting.attempted:  # its process may have been killed before it removed the file
                logged = self._search(f"tags.{_RESULT_ID} = '{waiting.run_id}' and attributes.status = 'FINISHED'")
                if logged:
                    waiting.remove()
                    return LoggedRun(str(logged[0].info.run_id), None)
        run = self._create(record.name, record.started, tags)
        try:
            if record.dataset:
                self._client.log_inputs(run.info.run_id, [_dataset_input(record.dataset)])
            self._fill(run, record.metrics, record.parameters, record.ended)
            self._keep(run, record.write)
            self._client.set_terminated(run.info.run_id, record.status, record.ended)
        except Exception:
            with suppress(Exception):  # it is told what went wrong first
                self._client.set_terminated(run.info.run_id, "KILLED")
            raise
        if waiting:
            waiting.remove()
        return LoggedRun(str(run.info.run_id), None)

    def _keep(self, run: Run, write: Callable[[Path], None]) -> None:
        """Have a run's artifacts written, and kept by the server if there is one."""
        if not self.tracking.is_server():
            with _artifacts(run.info.artifact_uri) as folder:
                write(folder)
            return
        with tempfile.TemporaryDirectory() as temporary:
            write(Path(temporary))
            self._client.log_artifacts(run.info.run_id, temporary)

    def _create(self, name: str, started: int, tags: Mapping[str, str]) -> Run:
        own = {"mlflow.user": _user(), "mlflow.source.name": "retrieval-runner"}
        name = name[:LONGEST_NAME]
        return self._client.create_run(self.experiment, start_time=started, tags={**own, **tags}, run_name=name)

    def _fill(
        self, run: Run, metrics: Sequence[Point], parameters: Mapping[str, str], moment: int | None = None
    ) -> None:
        from mlflow.entities import Metric, Param

        run_id, moment = run.info.run_id, moment or now()
        params = [Param(key, value) for key, value in parameters.items()]
        points = [Metric(name, value, moment, step) for name, value, step in metrics]
        first = _LARGEST_BATCH - min(len(params), _MOST_PARAMETERS)
        self._client.log_batch(run_id, points[:first], params[:_MOST_PARAMETERS])
        for begin in range(_MOST_PARAMETERS, len(params), _MOST_PARAMETERS):
            self._client.log_batch(run_id, params=params[begin : begin + _MOST_PARAMETERS])
        for begin in range(first, len(points), _LARGEST_BATCH):
            self._client.log_batch(run_id, points[begin : begin + _LARGEST_BATCH])

    def _search(self, wanted: str) -> list[Run]:
        """Return the runs that a filter of MLflow's finds, the oldest first."""
        runs: list[Run] = []
        token: str | None = ""
        while token is not None:
            page = self._client.search_runs(
                [self.experiment], wanted, order_by=["attributes.start_time ASC"], page_token=token or None
            )
            runs += page
            token = page.token or None
        return runs

    @property
    def _store(self) -> SqlAlchemyStore:
        return store_of(self._client)

    def _artifact_uri(self, run_id: str) -> str:
        return f"{self._location.rstrip('/')}/{run_id}/artifacts"

    def _existing(self, ids: Sequence[str]) -> set[str]:
        return existing_runs(self._store, ids)

    @cached_property
    def _artifact_folders(self) -> ArtifactFolders:
        return ArtifactFolders(local_path(self._location), self.uri)

    @cached_property
    def _location(self) -> str:
        return str(self._client.get_experiment(self.experiment).artifact_location)


def _read(entries: Sequence[Entry]) -> list[tuple[Finished | Failed | DatasetMade, Waiting | None]]:
    """Return what is to be logged, each with the file that it waits in, without what cannot be read."""
    read = [(entry.read() if isinstance(entry, Waiting) else entry, entry) for entry in entries]
    return [(content, entry if isinstance(entry, Waiting) else None) for content, entry in read if content is not None]


def _without(entries: Sequence[Entry], is_logged: Callable[[Entry], bool]) -> list[Entry]:
    """Return the entries that are not logged yet, and forget the others."""
    for entry in entries:
        if isinstance(entry, Waiting) and is_logged(entry):
            entry.remove()
    return [entry for entry in entries if not is_logged(entry)]


def _of_sweep(record: RunRecord, sweep: Sweep | None, parent: LoggedRun | None) -> RunRecord:
    # No MLFLOW_SOURCE_TYPE: the UI then shows the name alone.
    tags = {"mlflow.user": _user(), "mlflow.source.name": "retrieval-runner"}
    if sweep is not None and parent is not None:
        tags |= {"mlflow.parentRunId": parent.id, "sweep_id": sweep.id}
    return replace(record, tags={**tags, **record.tags})


@contextmanager
def _artifacts(uri: str) -> Iterator[Path]:
    """Give a folder whose files become a run's artifacts: the run's own where that is on this machine."""
    folder = local_path(uri)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)
        upload_artifacts(uri, temporary)


def _dataset_input(dataset: tuple[str, str, str, str, str]) -> DatasetInput:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    name, digest, source, profile, split = dataset
    described = Dataset(name, digest, source_type="local", source=source, schema=None, profile=profile)
    return DatasetInput(described, [InputTag("mlflow.data.context", split)])


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown"
