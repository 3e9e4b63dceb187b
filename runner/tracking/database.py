"""Stores runs in a database with MLflow's tables: in SQLite without loading MLflow, in others through it."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrievers.files import replace_texts
from runner.tracking import tables
from runner.tracking.artifacts import ArtifactFolders
from runner.tracking.logged import LoggedRun, ParentRun, Run, find_artifacts, local_path
from runner.tracking.mlflow_internals import open_artifacts, store_transaction
from runner.tracking.opening import explain_errors, open_client, read_rows
from runner.tracking.places import check_place
from runner.tracking.record import LoggedDataset, Point, RunRecord, TagChanges, link_key, now
from runner.tracking.settings import Tracking
from runner.tracking.sqlite import SqliteDatabase
from runner.tracking.tables import Rows, Session

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient


class MlflowDatabase:
    """A database that MLflow connects to and creates its tables in."""

    def __init__(self, tracking: Tracking) -> None:
        self._tracking = tracking

    def open(self) -> tuple[str, str]:
        """Return the id of the experiment and the address of its artifacts; raises `ConfigError`."""
        client, experiment = self._connection
        return experiment, str(client.get_experiment(experiment).artifact_location)

    def read(self, query: str, named: Mapping[str, Any]) -> Rows:
        """Return the rows that a query selects, none without tables; a database that is not open is not changed."""
        if "_connection" in self.__dict__:
            with self.transaction() as session:
                return session.read(query, named)
        return read_rows(self._tracking, query, named)

    def transaction(self) -> AbstractContextManager[Session]:
        """Return a context that yields a session and commits its changes together."""
        return store_transaction(self._connection[0])

    @cached_property
    def _connection(self) -> tuple[MlflowClient, str]:
        return open_client(self._tracking)


class DatabaseStore:
    """The runs of an experiment in a database; all changes of a method are one transaction."""

    page: str | None = None

    def __init__(self, tracking: Tracking, database: SqliteDatabase | MlflowDatabase) -> None:
        self._tracking = tracking
        self._database = database
        self._file = file = tracking.sqlite_file()
        self.keeps_runs, self.is_direct = not tracking.is_off, file is not None
        self.folder = Path("mlruns").resolve() if file is None else file.parent
        self.experiment, self._location = "", tracking.artifact_location() or ""

    def open(self) -> None:
        """Create what is missing, and remove the artifacts of runs that dead processes did not log."""
        with explain_errors(self._tracking, "cannot be opened"):
            opened = self._database.open()
            if opened is None:
                self._database = MlflowDatabase(self._tracking)
                opened = self._database.open()
        self.experiment, self._location = opened
        if self._tracking.names_artifacts:
            self._location = self._tracking.artifact_location() or ""
        self._artifact_folders.clear(self._find_existing)

    def check(self) -> None:
        """Raise `ConfigError` if runs cannot be logged to a SQLite file; other databases are only known once opened."""
        if isinstance(self._database, SqliteDatabase):
            self._database.check()

    def relocate(self) -> str:
        """Record where the artifacts are if the database was moved or copied with them; return a message about it."""
        return self._database.relocate() if isinstance(self._database, SqliteDatabase) else ""

    def log(self, runs: Sequence[tuple[str, RunRecord]]) -> Iterator[LoggedRun]:
        """Log runs with their artifacts, all or none; the id of its result is the id of a run."""
        ids = [run_id or uuid.uuid4().hex for run_id, _ in runs]
        rows = [(run_id, self._artifact_uri(run_id), record) for run_id, (_, record) in zip(ids, runs, strict=True)]
        with self._artifact_folders.announce(ids, self._find_existing):
            for _, uri, record in rows:  # artifacts first, so that every logged run has them
                self._write_artifacts(uri, record.write)
            with self._database.transaction() as session:
                tables.insert_runs(session, self.experiment, rows)
        yield from (LoggedRun(run_id, local_path(uri)) for run_id, uri, _ in rows)

    def find_logged(self, results: Sequence[str]) -> dict[str, LoggedRun]:
        """Return the runs of results that are already logged."""
        existing = self._find_existing(results)
        return {run: LoggedRun(run, local_path(self._read_uri(run))) for run in results if run in existing}

    def create_run(self, name: str, started: int, tags: Mapping[str, str]) -> LoggedRun:
        """Create a run with the status RUNNING and return it."""
        run_id, record = uuid.uuid4().hex, RunRecord(name, "RUNNING", started, None, tags, {})
        uri = self._artifact_uri(run_id)
        with self._database.transaction() as session:
            tables.insert_runs(session, self.experiment, [(run_id, uri, record)])
        return LoggedRun(run_id, local_path(uri))

    def update_run(self, run_id: str, tags: TagChanges, status: str | None = None, ended: int | None = None) -> None:
        """Set tags of a run, or remove those that are None, and set its status and the time of its end if given."""
        with self._database.transaction() as session:
            tables.update_tags(session, run_id, tags)
            tables.update_status(session, run_id, status, ended)

    def add_metrics(self, run_id: str, metrics: Sequence[Point], dataset: LoggedDataset) -> None:
        """Add metrics to a run, and link it to their dataset."""
        with self._database.transaction() as session:
            tables.insert_metrics(session, run_id, metrics, now())
            tables.insert_dataset(session, self.experiment, run_id, dataset, {})

    def link(self, parent: str, sweep_id: str, runs: Collection[str]) -> None:
        """Tag combinations of a sweep as also reported by one of its parent runs."""
        with self._database.transaction() as session:
            tables.insert_links(session, parent, runs)

    def find_running(self) -> list[tuple[str, str]]:
        """Return the ids of runs that are still running, with the names of their processes."""
        rows = self._database.read(tables.RUNNING, {"experiment": int(self.experiment)})
        return [(run, process) for run, process in rows]

    def read_sweep(self, sweep_id: str, parent: str = "") -> tuple[list[ParentRun], dict[str, LoggedRun]]:
        """Return the parent runs of a sweep, and the finished combinations of all of them or of one."""
        named = {"experiment": self._tracking.experiment, "sweep": sweep_id}
        parents = self._database.read(tables.PARENTS, named)
        finished = self._database.read(tables.FINISHED, {**named, "parent": parent})
        return (
            [
                ParentRun(LoggedRun(run, local_path(find_artifacts(self._file, uri))), *others)
                for run, uri, *others in parents
            ],
            {
                combination: LoggedRun(run, local_path(find_artifacts(self._file, uri)))
                for combination, run, uri in finished
            },
        )

    def find_runs(self, beginning: str) -> list[Run]:
        """Return the runs of all experiments whose ids start with these hexadecimal digits."""
        return self._search(tables.RUNS_LIKE, {"pattern": f"{beginning}%"})

    def list_combinations(self, parent: str, status: str) -> list[Run]:
        """Return the combinations with a status that a parent run computed or reports."""
        return self._search(tables.RUNS_OF_SWEEP, {"parent": parent, "link": link_key(parent), "status": status})

    def list_runs(self, ended: bool) -> list[Run]:
        """Return the evaluations and sweeps, latest first; with `ended`, only those that have ended."""
        return self._search(
            tables.ENDED_RUNS if ended else tables.STARTED_RUNS,
            {"experiment": self._tracking.experiment},
        )

    def list_kind(self, kind: str) -> list[Run]:
        """Return the finished runs with a tag `kind`, oldest first."""
        return self._search(tables.RUNS_OF_KIND, {"experiment": self._tracking.experiment, "kind": kind})

    def add_files(self, run_id: str, files: Mapping[str, str]) -> None:
        """Add texts to the artifacts of a run."""
        self._write_artifacts(self._read_uri(run_id), partial(replace_texts, texts=files))

    def list_files(self, run_id: str) -> set[str]:
        """Return the names of the artifacts at the top of a run's folder, which is not on this machine."""
        return (
            {file.path for file in open_artifacts(self._check_uri(run_id)).list_artifacts()}
            if self.keeps_runs
            else set()
        )

    def fetch_file(self, run_id: str, name: str, folder: Path) -> None:
        """Copy an artifact of a run into a folder."""
        open_artifacts(self._check_uri(run_id)).download_artifacts(name, str(folder))

    def find_orphans(self) -> list[Path]:
        """Return the artifact folders on this machine of runs that dead processes did not log."""
        return self._artifact_folders.orphans(self._find_existing if self.is_direct else lambda ids: ())

    def _search(self, query: str, named: Mapping[str, str]) -> list[Run]:
        runs = [Run(*row) for row in self._database.read(query, named)]
        return [replace(run, artifacts=find_artifacts(self._file, run.artifacts)) for run in runs]

    def _find_existing(self, ids: Sequence[str]) -> set[str]:
        return {run for (run,) in self._database.read(*tables.select_existing(ids))} if ids else set()

    def _artifact_uri(self, run_id: str) -> str:
        return f"{self._location.rstrip('/')}/{run_id}/artifacts"

    def _read_uri(self, run_id: str) -> str:
        """Return the address of the artifacts of a run."""
        ((uri,),) = self._database.read(tables.ARTIFACTS_OF, {"run": run_id})
        return find_artifacts(self._file, str(uri))

    def _check_uri(self, run_id: str) -> str:
        """Return the address of the artifacts of a run; raises `ConfigError` for a place of others."""
        return check_place(self._tracking, run_id, self._read_uri(run_id))

    def _write_artifacts(self, uri: str, write: Callable[[Path], object]) -> None:
        """Write files to a run's folder if it is on this machine, else to a folder that is copied there."""
        folder = local_path(uri)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            write(folder)
        elif self.keeps_runs:
            with tempfile.TemporaryDirectory() as temporary:
                write(Path(temporary))
                open_artifacts(uri).log_artifacts(temporary)

    @property
    def _artifact_folders(self) -> ArtifactFolders:
        return ArtifactFolders(local_path(self._location), self._tracking.absolute_uri())
