"""Reads and writes MLflow's SQLite store without MLflow, which takes seconds to load and more to create a database.

`mlflow.sql` has the tables of the MLflow version in requirements.lock; `python -m release.tables` writes it. Tests
compare it, and the rows written here, with MLflow's own. Another version creates its tables itself; a database whose
tables were not tested (`revisions.py`) is left to it.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from retrievers.files import replace_file
from runner.config.objects import ConfigError
from runner.tracking.logged import find_beside, local_path
from runner.tracking.mlflow_internals import create_tables
from runner.tracking.record import now
from runner.tracking.revisions import TESTED, check_revision, find_installed_revision, read_revision
from runner.tracking.settings import EXPERIMENT_TAGS, NOT_STORED, Tracking
from runner.tracking.tables import Rows, Session

TABLES = Path(__file__).with_name("mlflow.sql")

_ELSEWHERE = "choose a place that can be written, or tracking=none"

_PATIENCE_S = 60  # how long to wait while another program writes to the database


def _create(file: Path) -> None:
    """Create the tables in a temporary file and rename it, so that a killed process leaves no incomplete database."""
    if find_installed_revision() != _version():
        with replace_file(file) as new:
            create_tables(f"sqlite:///{new}")
        return
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


class SqliteDatabase:
    """A SQLite file with MLflow's tables; without a file, a database in memory, for `tracking=none`."""

    def __init__(self, tracking: Tracking, file: Path | None) -> None:
        self._tracking, self._file = tracking, file
        self._alone = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def open(self) -> tuple[str, str] | None:
        """Create what is missing; return the id of the experiment and the address of its artifacts.

        Return None if its tables were not tested. Raises `ConfigError` for a deleted experiment,
        `sqlite3.Error` and `OSError`.
        """
        if self._file is None:
            self._connect(":memory:").executescript(TABLES.read_text(encoding="utf-8"))
            return self._open_experiment()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._file.with_suffix(".lock")):  # several processes may create the database or the experiment
            if not self._file.exists():
                _create(self._file)
            if read_revision(self._file) not in TESTED:
                return None
            connection = self._connect(self._file)
            # Commits take half the time, readers do not wait, and a crash still leaves an intact database.
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = normal")
            return self._open_experiment()

    def check(self) -> None:
        """Raise `ConfigError` if nothing can be logged.

        That is, if the database cannot be written or would be migrated, or if its experiment was deleted. Nothing is
        created.
        """
        if self._file is None:
            return
        if not self._file.is_file():
            folder = next(parent for parent in self._file.absolute().parents if parent.exists())
            if not os.access(folder, os.W_OK):
                raise ConfigError(f"tracking.uri={self._tracking.uri}: {folder} cannot be written; {_ELSEWHERE}")
            return
        revision = read_revision(self._file)
        if revision is not None and revision not in TESTED:
            check_revision(self._tracking, revision)
        stages = self.read(
            "select lifecycle_stage from experiments where name = :name", {"name": self._tracking.experiment}
        )
        if stages and stages[0][0] == "deleted":
            raise ConfigError(self._tracking.describe_deleted())
        with closing(sqlite3.connect(self._file, timeout=0, isolation_level=None)) as database:
            try:
                database.execute("begin")
                database.execute("update alembic_version set version_num = version_num")
                database.execute("rollback")
            except sqlite3.OperationalError as error:
                if "readonly" in str(error) or not os.access(self._file, os.W_OK):
                    raise ConfigError(
                        f"tracking.uri={self._tracking.uri}: cannot be written ({error}); {_ELSEWHERE}"
                    ) from error

    def relocate(self) -> str:
        """Record the folders of artifacts beside a database that was moved or copied with them.

        This needs no tested tables. Return a message; "" if nothing was moved or can be written.
        """
        if self._file is None or not self._file.is_file():
            return ""
        folder, places = self._file.parent, {}
        runs_of = "select run_uuid, artifact_uri from runs where experiment_id = :of"
        for number, uri in self.read("select experiment_id, artifact_location from experiments", {}):
            at = local_path(uri or "")
            if uri and at is not None and at.parent != folder and (folder / at.name).is_dir():
                places[number] = at
        runs = [
            (run, number, beside.as_uri())
            for number in places
            for run, uri in self.read(runs_of, {"of": number})
            if (beside := find_beside(self._file, uri)) is not None
        ]
        if not runs:
            return ""
        moved = {number: places[number] for _, number, _ in runs}
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(self._file, timeout=_PATIENCE_S)) as database:
            set_uri = "update runs set artifact_uri = ? where run_uuid = ?"
            database.executemany(set_uri, [(uri, run) for run, _, uri in runs])
            set_place = "update experiments set artifact_location = ? where experiment_id = ?"
            database.executemany(set_place, [((folder / at.name).as_uri(), number) for number, at in moved.items()])
            database.commit()
            before = next(iter(moved.values())).parent
            return f"{folder}: moved or copied from {before}; the artifacts beside the database are used"
        return ""

    def read(self, query: str, named: Mapping[str, Any]) -> Rows:
        """Return the rows of a query, none if there is no database or no table; nothing is created."""
        if self._file is None:
            if self._connection is None:
                raise ConfigError(NOT_STORED)
            with self.transaction() as session:
                return session.read(query, named)
        if not self._file.is_file():
            return []
        with closing(sqlite3.connect(self._file, timeout=_PATIENCE_S)) as database:
            try:
                return database.execute(query, named).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    return []
                raise

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Yield a session whose changes are committed together, or not at all if the block raises."""
        assert self._connection is not None  # noqa: S101 (it is open)
        with self._alone:
            self._connection.execute("begin immediate")
            try:
                yield _SqliteSession(self._connection)
            except BaseException:
                self._connection.execute("rollback")
                raise
            self._connection.execute("commit")

    def _connect(self, file: Path | str) -> sqlite3.Connection:
        # One connection for all changes: closing the last one writes the log back, which takes as long as the changes.
        connection = sqlite3.connect(file, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False)
        weakref.finalize(self, connection.close)
        self._connection = connection
        return connection

    def _open_experiment(self) -> tuple[str, str]:
        name = self._tracking.experiment
        query = "select experiment_id, lifecycle_stage, artifact_location from experiments where name = :name"
        with self.transaction() as session:
            experiments = session.read(query, {"name": name})
            if not experiments:
                row: dict[str, Any] = {"name": name, "artifact_location": self._tracking.artifact_location()}
                row |= {"lifecycle_stage": "active", "creation_time": now(), "last_update_time": now()}
                session.insert("experiments", [row])
                experiments = session.read(query, {"name": name})
                number = experiments[0][0]
                tags = [{"key": k, "value": v, "experiment_id": number} for k, v in EXPERIMENT_TAGS.items()]
                session.insert("experiment_tags", tags)
        ((number, stage, location),) = experiments
        if stage == "deleted":
            raise ConfigError(self._tracking.describe_deleted())
        return str(number), location


@cache
def _version() -> str:
    """Return the revision of the tables in `mlflow.sql`."""
    version = re.search(r"""INSERT INTO "?alembic_version"? VALUES\('(\w+)'\)""", TABLES.read_text(encoding="utf-8"))
    assert version is not None  # noqa: S101 (a test reads it)
    return version[1]
