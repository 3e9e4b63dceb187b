"""Logs to an open tracking store: an evaluation is a run; a sweep is a parent run with its combinations as children.

Runs are found by their tags: `sweep_id`, `report_id` (the identity of the report of a parent run), `combination` (the
identity of a combination) and, while they are running, `process`.
"""

from __future__ import annotations

import getpass
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from runner.processes import holder, is_gone
from runner.records import load_record
from runner.result import Result
from runner.tracking.artifacts import ArtifactFolders
from runner.tracking.client import ClientRuns
from runner.tracking.logged import LoggedRun, State, Sweep, local_path, state_of
from runner.tracking.mlflow_internals import (
    Rows,
    existing_runs,
    insert_links,
    insert_runs,
    sweep_rows,
    upload_artifacts,
)
from runner.tracking.opening import explain_errors
from runner.tracking.record import (
    LONGEST_NAME,
    LONGEST_TAG,
    REUSED,
    DatasetMade,
    Dropped,
    Failed,
    Finished,
    RunRecord,
    axes_of,
    dataset_of,
    link_key,
    metrics_of,
    now,
    sanitize_name,
    write_files,
)
from runner.tracking.settings import OFF, Tracking
from runner.tracking.sqlite import SqliteRuns, open_memory, open_sqlite
from runner.tracking.unlogged import Waiting

Entry = Finished | Failed | Dropped | DatasetMade | Waiting

_RESULT_ID = "result_id"
"""The tag of a run on a server that identifies a result, to find one that was logged before."""


class Tracker:
    """An open tracking store; raises `ConfigError` if it cannot be opened."""

    def __init__(self, tracking: Tracking) -> None:
        self.tracking = tracking
        self.uri = tracking.absolute_uri()
        self._runs, self._server = _open(tracking)
        self.experiment = self._runs.experiment
        self._parents: dict[str, LoggedRun] = {}
        if self._server is None:
            self._artifact_folders.clear(self._existing)

    def log(self, entries: Sequence[Entry], sweep: Sweep | None = None, again: bool = False) -> list[LoggedRun]:
        """Log finished evaluations, as combinations of a sweep if one is given, and new datasets.

        In a database, they become visible together and complete; on a server, one after the other. If an earlier
        attempt may have succeeded (`again`), runs that are already logged are left out. The file of a waiting result is
        removed once the result is logged; a file that cannot be read is skipped.
        """
        parent = None if sweep is None else self.start_sweep(sweep)
        if again and sweep is not None:
            done = {combination for combination, *_ in self._rows(sweep.id, parent)[1]}
            entries = [e for e in entries if isinstance(e, Waiting) or e.tags.get("combination") not in done]
        if self._server is not None:
            return [
                _upload(self._server, _of_sweep(entry.record, sweep, parent), waiting, again)
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
            for _, uri, record in rows:  # artifacts first, so that every logged run has them
                if not self.tracking.is_off:
                    with _artifacts(uri) as folder:
                        record.write(folder)
            with self._runs.transaction() as session:
                insert_runs(session, self.experiment, _user(), rows)
        for _, waiting in read:
            if waiting:
                waiting.remove()
        return before + [LoggedRun(run_id, local_path(uri)) for run_id, uri, _ in rows]

    def state(self, sweep_id: str, report: str = "") -> State:
        """Return the state of a sweep, with the parent run of one of its reports."""
        return state_of(*self._rows(sweep_id), report)

    def link(self, sweep: Sweep, runs: Collection[str]) -> None:
        """Tag combinations of another command as also reported by the parent run of this sweep."""
        parent = self.start_sweep(sweep).id
        if self._server is None:
            with self._runs.transaction() as session:
                insert_links(session, parent, runs)
            return
        for run in self._server.search(f"tags.sweep_id = '{sweep.id}'"):
            tags = run.data.tags
            if run.info.run_id in runs and tags.get("mlflow.parentRunId") != parent and link_key(parent) not in tags:
                self._server.set_tags(run.info.run_id, {link_key(parent): REUSED})

    def _rows(self, sweep_id: str, parent: LoggedRun | None = None) -> tuple[Rows, Rows]:
        """Return the rows of a sweep, as `sweep_rows` does; with `parent`, only the combinations of that parent run."""
        if self._server is None:
            with self._runs.transaction() as session:
                return sweep_rows(session.read, self.tracking.experiment, sweep_id, parent.id if parent else "")
        runs = [(run.info, run.data.tags) for run in self._server.search(f"tags.sweep_id = '{sweep_id}'")]
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
        """Return the record of a run on a server, with or without its rankings; raises `ResultError`."""
        with tempfile.TemporaryDirectory() as folder:
            assert self._server is not None  # noqa: S101 (without a server, callers read the folder)
            wanted = {"result.json", "per_query.parquet", "grades.parquet"} | (
                {"rankings.parquet"} if rankings else set()
            )
            for name in wanted & self._server.list_files(run.id):
                self._server.download(run.id, name, Path(folder))
            return load_record(Path(folder), rankings)

    def has_file(self, run: LoggedRun, name: str) -> bool:
        """Return whether a run has an artifact at the top of its folder."""
        if run.folder is not None:
            return (run.folder / name).is_file()
        assert isinstance(self._runs, ClientRuns)  # noqa: S101 (MLflow lists remote artifacts)
        return name in self._runs.list_files(run.id)

    def add_files(self, run: LoggedRun, files: Mapping[str, str]) -> None:
        """Add texts to the artifacts of a finished run."""
        self._keep(run.id, files)

    def reject(self, run: LoggedRun, why: str) -> None:
        """Mark a finished run as failed, with the reason."""
        self._runs.set_tags(run.id, {"error": why[:LONGEST_TAG]})
        self._runs.set_status(run.id, "FAILED", now())

    def recover(self) -> int:
        """Mark the runs of dead processes of this machine as KILLED, and return their number."""
        left = [run for run, process in self._runs.find_running() if is_gone(process.partition(" ")[0])]
        for run in left:
            self._runs.set_tags(run, {"error": "the process ended without finishing the run"})
            self._runs.set_status(run, "KILLED", now())
        return len(left)

    def start_sweep(self, sweep: Sweep) -> LoggedRun:
        """Open the parent run of a sweep, or create one, and return it; repeated calls return the same run."""
        if sweep.process in self._parents:
            return self._parents[sweep.process]
        tags = {"kind": "sweep", "sweep_id": sweep.id, "report_id": sweep.report, "process": sweep.process}
        tags |= {"combinations": str(sweep.combinations)} | axes_of(sweep.axes)
        tags = {sanitize_name(key): value[:LONGEST_TAG] for key, value in tags.items()}
        made = [parent for parent in self._rows(sweep.id)[0] if parent[3] == sweep.process]  # before a crash
        if sweep.run is not None:
            parent = sweep.run
            self._runs.set_tags(parent.id, tags)
            if "error" in self._runs.read_run(parent.id)[1]:  # the error of an earlier execution, which is resumed now
                self._runs.delete_tag(parent.id, "error")
            self._runs.set_status(parent.id, "RUNNING")
        elif made:
            parent = LoggedRun(made[-1][0], local_path(made[-1][1]))
        else:
            own = {"mlflow.user": _user(), "mlflow.source.name": "retrieval-runner"}
            parent = self._runs.create_run(sweep.name[:LONGEST_NAME], now(), {**own, **tags}, _user())
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
        """Close a sweep with its reports and tags; the parent run has the metrics of the best combination."""
        parent = self.start_sweep(sweep)
        if best is not None:
            self._runs.add_metrics(parent.id, metrics_of(best))
            self._runs.add_dataset(parent.id, dataset_of(best))
            self._runs.set_tags(parent.id, {"best": best.name})
        self._runs.set_tags(parent.id, {sanitize_name(key): value[:LONGEST_TAG] for key, value in (tags or {}).items()})
        self._keep(parent.id, reports)
        self._runs.set_status(parent.id, status, now())
        del self._parents[sweep.process]
        return parent

    def _keep(self, run_id: str, files: Mapping[str, str]) -> None:
        """Add texts to the artifacts of a run, through the server if there is one."""
        if self._server is None:
            with _artifacts(self._runs.read_run(run_id)[0]) as folder:
                write_files(folder, files)
            return
        with tempfile.TemporaryDirectory() as temporary:
            write_files(Path(temporary), files)
            self._server.upload(run_id, Path(temporary))

    def _artifact_uri(self, run_id: str) -> str:
        return f"{self._runs.location.rstrip('/')}/{run_id}/artifacts"

    def _existing(self, ids: Sequence[str]) -> set[str]:
        with self._runs.transaction() as session:
            return existing_runs(session, ids)

    @cached_property
    def _artifact_folders(self) -> ArtifactFolders:
        return ArtifactFolders(local_path(self._runs.location), self.uri)


def _open(tracking: Tracking) -> tuple[SqliteRuns | ClientRuns, ClientRuns | None]:
    """Return the runs of a tracking store, and the same object again if it is a server, else None.

    Raises `ConfigError`.
    """
    if tracking.is_off:
        return open_memory(tracking), None
    if (file := tracking.sqlite_file()) is not None:
        with explain_errors(tracking, "cannot be opened"):
            if (own := open_sqlite(tracking, file)) is not None:
                return own, None
    runs = ClientRuns(tracking)
    return runs, runs if tracking.is_server() else None


def _upload(server: ClientRuns, record: RunRecord, waiting: Waiting | None, again: bool) -> LoggedRun:
    """Log a finished run to a server, unless an earlier process has logged it."""
    tags = {"process": holder(), **record.tags}
    if waiting:
        tags[_RESULT_ID] = waiting.run_id
        if again or waiting.attempted:  # an earlier process may have been killed before it removed the file
            logged = server.search(f"tags.{_RESULT_ID} = '{waiting.run_id}' and attributes.status = 'FINISHED'")
            if logged:
                waiting.remove()
                return LoggedRun(str(logged[0].info.run_id), None)
    with tempfile.TemporaryDirectory() as folder:
        record.write(Path(folder))
        run = server.log(record, tags, _user(), Path(folder))
    if waiting:
        waiting.remove()
    return run


def _read(entries: Sequence[Entry]) -> list[tuple[Finished | Failed | Dropped | DatasetMade, Waiting | None]]:
    """Return the content of entries, each with its `Waiting` file or None; entries that cannot be read are left out."""
    read = [(entry.read() if isinstance(entry, Waiting) else entry, entry) for entry in entries]
    return [(content, entry if isinstance(entry, Waiting) else None) for content, entry in read if content is not None]


def _without(entries: Sequence[Entry], is_logged: Callable[[Entry], bool]) -> list[Entry]:
    """Return the entries that are not logged yet, and remove the files of the others."""
    for entry in entries:
        if isinstance(entry, Waiting) and is_logged(entry):
            entry.remove()
    return [entry for entry in entries if not is_logged(entry)]


def _of_sweep(record: RunRecord, sweep: Sweep | None, parent: LoggedRun | None) -> RunRecord:
    # Without MLFLOW_SOURCE_TYPE, the UI shows only the name.
    tags = {"mlflow.user": _user(), "mlflow.source.name": "retrieval-runner"}
    if sweep is not None and parent is not None:
        tags |= {"mlflow.parentRunId": parent.id, "sweep_id": sweep.id}
    return replace(record, tags={**tags, **record.tags})


@contextmanager
def _artifacts(uri: str) -> Iterator[Path]:
    """Yield a folder whose files become the artifacts of a run: if possible, the run's own folder on this machine."""
    folder = local_path(uri)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)
        if uri.startswith(f"{OFF}:"):
            return
        upload_artifacts(uri, temporary)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container, the user may have no name
        return "unknown"
