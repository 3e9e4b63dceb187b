"""Opens a tracking store, with time limits, SQLite settings, and errors in one line."""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from retrievers.excerpts import shorten_text
from runner.config.objects import ConfigError
from runner.config.values import public
from runner.tracking.mlflow_internals import SQL_LOGGER, create_engine
from runner.tracking.revisions import REVISION, check_revision
from runner.tracking.settings import EXPERIMENT_TAGS, NOT_STORED, Tracking
from runner.tracking.sqlite import SqliteDatabase
from runner.tracking.tables import Rows

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient
    from sqlalchemy import Connection

_PATIENCE_MS = 60_000  # how long to wait while another program writes to the database
_OPENING = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20", "PGCONNECT_TIMEOUT": "20"}
"""Time limits for a store that may not exist."""

WRITING = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3", "MLFLOW_HTTP_REQUEST_TIMEOUT": "60"}
"""Time limits for an open store, shorter than MLflow's: results that cannot be logged wait on disk."""


def open_client(tracking: Tracking) -> tuple[MlflowClient, str]:
    """Return a client of a tracking store and the id of the experiment; raises `ConfigError`."""
    uri = tracking.absolute_uri()
    set_up_mlflow()
    if tracking.is_off:
        raise ConfigError(NOT_STORED)
    with explain_errors(tracking, "cannot be opened"):
        if (file := tracking.sqlite_file()) is not None:
            SqliteDatabase(tracking, file).open()  # creates the database if it does not exist
            _write_ahead()
            with FileLock(file.with_suffix(".lock")):  # several processes may create the experiment at once
                _check_tables(tracking)
                return _client(tracking, uri)
        with patience(_OPENING):
            if not tracking.is_server():
                _check_tables(tracking)
            return _client(tracking, uri)


def set_up_mlflow() -> None:
    """Set the environment variables that MLflow reads when it is imported, and silence its loggers."""
    for name in ("MLFLOW_DISABLE_TELEMETRY", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"):
        os.environ.setdefault(name, "true")
    for name in ("MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD", "MLFLOW_ENABLE_PROXY_MULTIPART_DOWNLOAD"):
        os.environ.setdefault(name, "false")  # otherwise, the server may send the client to any address
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # MLflow reads it when it is imported
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger(SQL_LOGGER).setLevel(logging.CRITICAL)  # it also prints errors that it raises


def _client(tracking: Tracking, uri: str) -> tuple[MlflowClient, str]:
    from mlflow.tracking import MlflowClient

    client, name = MlflowClient(uri), tracking.experiment
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        location = tracking.artifact_location()
        return client, client.create_experiment(name, artifact_location=location, tags=dict(EXPERIMENT_TAGS))
    if experiment.lifecycle_stage == "deleted":
        raise ConfigError(tracking.describe_deleted())
    return client, experiment.experiment_id


def _check_tables(tracking: Tracking) -> None:
    """Connect to a database once; MLflow would try ten times, with a warning each time, and migrate older tables.

    Raises `ConfigError` for tables of another version.
    """
    for (revision,) in read_rows(tracking, REVISION, {}):
        check_revision(tracking, str(revision))


def read_rows(tracking: Tracking, query: str, named: Mapping[str, Any]) -> Rows:
    """Return the rows of a query, none if a database has no tables; MLflow would create or migrate them."""
    from sqlalchemy import inspect, text

    with connect(tracking) as connection:
        if not inspect(connection).has_table("alembic_version"):
            return []
        return [tuple(row) for row in connection.execute(text(query), named)]


@contextmanager
def connect(tracking: Tracking) -> Iterator[Connection]:
    """Yield a connection to a database with tables of any version; changes are committed at the end."""
    set_up_mlflow()
    from sqlalchemy.exc import ArgumentError

    with patience(_OPENING):
        try:
            engine = create_engine(tracking.absolute_uri())
        except ValueError as error:
            raise ArgumentError(f"invalid address: {error}") from error
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            engine.dispose()


@contextmanager
def patience(variables: Mapping[str, str]) -> Iterator[None]:
    """Set the time limits of MLflow and database drivers in environment variables, unless the user set these."""
    ours = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            del os.environ[name]


@contextmanager
def explain_errors(tracking: Tracking, what: str, way_out: str = "") -> Iterator[None]:
    """Raise errors of a tracking store as a `ConfigError` in one line, without passwords."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, (ImportError, OSError, sqlite3.Error, *_library_errors())):
            raise
        message = f"tracking.uri={tracking.uri}: {what} ({_reason(error)}){way_out}"
        raise ConfigError(public({"said": message})["said"]) from error


def _library_errors() -> tuple[type[Exception], ...]:
    """Return the error types of MLflow and SQLAlchemy, if these are loaded."""
    names = (("mlflow.exceptions", "MlflowException"), ("sqlalchemy.exc", "SQLAlchemyError"))
    return tuple(getattr(sys.modules[module], name) for module, name in names if module in sys.modules)


def _reason(error: BaseException) -> str:
    """Return a short reason for an error: from its chain of causes, an error of the network or the disk if any."""
    reason, inner = error, error.__cause__ or error.__context__
    while inner is not None:
        reason = inner if isinstance(inner, OSError) else reason
        inner = inner.__cause__ or inner.__context__
    way_out = "; install the driver of this database" if isinstance(error, ModuleNotFoundError) else ""
    return shorten_text(str(reason).partition("(Background on")[0], 300) + way_out


@cache
def _write_ahead() -> None:
    """Turn on SQLite's write-ahead log: commits take half the time, readers do not wait, and crashes do no damage."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def set_up(connection: object, _record: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA busy_timeout={_PATIENCE_MS}")

    event.listen(Engine, "connect", set_up)
