"""Reads and writes MLflow's SQLite store without MLflow, which takes seconds to load and more to create a database.

`mlflow.sql` has the tables of the pinned MLflow version; `python -m release.tables` writes it. Tests compare it, and
the rows written here, with MLflow's own. A database with other tables is left to MLflow.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import uuid
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from retrievers.files import replace_file
from runner.config.objects import ConfigError
from runner.tracking.logged import LoggedRun, local_path
from runner.tracking.mlflow_internals import RUNNING, Rows, Session, insert_dataset, insert_metrics, insert_runs
from runner.tracking.record import LoggedDataset, Point, RunRecord, now
from runner.tracking.settings import EXPERIMENT_TAGS, Tracking

TABLES = Path(__file__).with_name("mlflow.sql")

_PATIENCE_S = 60  # how long to wait while another program writes to the database


def open_sqlite(tracking: Tracking, file: Path) -> SqliteRuns | None:
    """Return the runs in a SQLite file, creating it if necessary; None if its tables are of another MLflow version.

    Raises `ConfigError` for a deleted experiment, `sqlite3.Error` and `OSError`.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):  # several processes may create the database or the experiment at once
        if not file.exists():
            _create(file)
        runs = SqliteRuns(file)
        return runs if runs.open_experiment(tracking) else None


def open_memory(tracking: Tracking) -> SqliteRuns:
    """Return runs in memory, for `tracking=none`."""
    runs = SqliteRuns(":memory:")
    runs.create_tables()
    runs.open_experiment(tracking)
    return runs


def _create(file: Path) -> None:
    """Create the tables in a temporary file and rename it, so that a killed process leaves no incomplete database."""
    with replace_file(file) as new, closing(sqlite3.connect(new)) as database:
        database.executescript(TABLES.read_text(encoding="utf-8"))
        values = {"location": str(Path("mlruns/0").resolve()), "now": now()}
        database.execute(
            "insert into experiments (experiment_id, name, artifact_location, lifecycle_stage, creation_time, "
            "last_update_time) values (0, 'Default', :location, 'active', :now, :now)",
            values,
        )
        database.commit()


class _SqliteSession:
    """A transaction on a SQLite file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read(self, query: str, named: Mapping[str, Any]) -> Rows:
        return self._connection.execute(query, named).fetchall()

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            columns, values = ", ".join(f'"{name}"' for name in rows[0]), ", ".join(f":{name}" for name in rows[0])
            self._connection.executemany(f"insert into {table} ({columns}) values ({values})", rows)  # noqa: S608 (own names)

    def change(self, statement: str, named: Mapping[str, Any]) -> None:
        self._connection.execute(statement, named)


class SqliteRuns:
    """The runs of an experiment in a SQLite file."""

    def __init__(self, file: Path | str) -> None:
        self.experiment, self.location = "", ""
        self._alone = threading.Lock()
        # One connection for all changes: closing the last one writes the log back, which takes as long as the changes.
        self._connection = sqlite3.connect(file, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._connection.close)

    def create_tables(self) -> None:
        """Create the tables in an empty database."""
        self._connection.executescript(TABLES.read_text(encoding="utf-8"))

    def open_experiment(self, tracking: Tracking) -> bool:
        """Find or create the experiment of the settings and return True; return False if the tables are unknown."""
        try:
            version = self._connection.execute("select version_num from alembic_version").fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return False
            raise
        if version != [(_version(),)]:
            return False
        # Commits take half the time, readers do not wait, and a crash still leaves an intact database.
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = normal")
        query = "select experiment_id, lifecycle_stage, artifact_location from experiments where name = :name"
        with self.transaction() as session:
            experiments = session.read(query, {"name": tracking.experiment})
            if not experiments:
                row: dict[str, Any] = {"name": tracking.experiment, "artifact_location": tracking.artifact_location()}
                row |= {"lifecycle_stage": "active", "creation_time": now(), "last_update_time": now()}
                session.insert("experiments", [row])
                experiments = session.read(query, {"name": tracking.experiment})
                number = experiments[0][0]
                tags = [{"key": k, "value": v, "experiment_id": number} for k, v in EXPERIMENT_TAGS.items()]
                session.insert("experiment_tags", tags)
        ((number, stage, self.location),) = experiments
        if stage == "deleted":
            raise ConfigError(tracking.describe_deleted())
        self.experiment = str(number)
        return True

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Yield a session whose changes are committed together, or not at all if the block raises."""
        with self._alone:
            self._connection.execute("begin immediate")
            try:
                yield _SqliteSession(self._connection)
            except BaseException:
                self._connection.execute("rollback")
                raise
            self._connection.execute("commit")

    def create_run(self, name: str, started: int, tags: Mapping[str, str], user: str) -> LoggedRun:
        """Create a run with the status RUNNING and return it."""
        run_id = uuid.uuid4().hex
        uri = f"{self.location.rstrip('/')}/{run_id}/artifacts"
        with self.transaction() as session:
            record = RunRecord(name, "RUNNING", started, None, tags, {})
            insert_runs(session, self.experiment, user, [(run_id, uri, record)])
        return LoggedRun(run_id, local_path(uri))

    def read_run(self, run_id: str) -> tuple[str, dict[str, str]]:
        """Return the address of a run's artifacts and its tags."""
        with self.transaction() as session:
            ((uri,),) = session.read("select artifact_uri from runs where run_uuid = :run", {"run": run_id})
            return uri, dict(session.read('select "key", value from tags where run_uuid = :run', {"run": run_id}))  # type: ignore[arg-type]  # pairs

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags of a run."""
        with self.transaction() as session:
            for key, value in tags.items():
                self._delete(session, run_id, key)
                session.insert("tags", [{"run_uuid": run_id, "key": key, "value": value}])

    def delete_tag(self, run_id: str, key: str) -> None:
        """Remove a tag of a run."""
        with self.transaction() as session:
            self._delete(session, run_id, key)

    @staticmethod
    def _delete(session: Session, run_id: str, key: str) -> None:
        session.change('delete from tags where run_uuid = :run and "key" = :key', {"run": run_id, "key": key})

    def set_status(self, run_id: str, status: str, ended: int | None = None) -> None:
        """Set the status of a run and, if given, the time of its end (ms since the epoch)."""
        statement = "update runs set status = :status, end_time = coalesce(:ended, end_time) where run_uuid = :run"
        with self.transaction() as session:
            session.change(statement, {"status": status, "ended": ended, "run": run_id})

    def add_metrics(self, run_id: str, metrics: Sequence[Point]) -> None:
        """Add metrics to a run."""
        with self.transaction() as session:
            insert_metrics(session, run_id, metrics, now())

    def add_dataset(self, run_id: str, dataset: LoggedDataset) -> None:
        """Link a run to its dataset."""
        with self.transaction() as session:
            insert_dataset(session, self.experiment, run_id, dataset, {})

    def find_running(self) -> list[tuple[str, str]]:
        """Return the ids of runs that are still running, with the names of their processes, oldest first."""
        with self.transaction() as session:
            return [(run, process) for run, process in session.read(RUNNING, {"experiment": int(self.experiment)})]


@cache
def _version() -> str:
    """Return the Alembic version of the tables."""
    version = re.search(r"""INSERT INTO "?alembic_version"? VALUES\('(\w+)'\)""", TABLES.read_text(encoding="utf-8"))
    assert version is not None  # noqa: S101 (a test reads it)
    return version[1]
