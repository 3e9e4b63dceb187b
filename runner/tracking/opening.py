"""Opening a store of runs: how long it may take, how SQLite writes, and what went wrong in one line."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from retrievers.files import replace_file
from runner.config.objects import ConfigError
from runner.config.values import public
from runner.tracking.settings import Tracking

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

_PATIENCE_MS = 60_000  # with a database that another program writes to
_OPENING = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20", "PGCONNECT_TIMEOUT": "20"}
"""How long to wait for a store that may not be there."""

WRITING = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3", "MLFLOW_HTTP_REQUEST_TIMEOUT": "60"}
"""How long for one that was there: what it does not take is kept, and MLflow's own minutes would hold up the work."""


def open_store(tracking: Tracking, uri: str) -> tuple[MlflowClient, str]:
    """Return a client of a store of runs, and the experiment that runs go to; raises `ConfigError`."""
    for name in ("MLFLOW_DISABLE_TELEMETRY", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"):
        os.environ.setdefault(name, "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # read as it is imported
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # it would print what it raises as well
    with explain_errors(tracking, "cannot be opened"):
        if uri.startswith("sqlite:///"):
            _write_ahead()
            database = Path(uri.removeprefix("sqlite:///").partition("?")[0])
            database.parent.mkdir(parents=True, exist_ok=True)
            # Several processes that migrate a new database at once collide.
            with FileLock(database.with_suffix(".lock")):
                if not database.exists():
                    _make(database)
                _connect(uri)
                return _client(tracking, uri)
        with patience(_OPENING):
            if not tracking.is_server():
                _connect(uri)
            return _client(tracking, uri)


def _client(tracking: Tracking, uri: str) -> tuple[MlflowClient, str]:
    from mlflow.tracking import MlflowClient

    client, name = MlflowClient(uri), tracking.experiment
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        # The kind opens MLflow's UI on the table of runs, not on traces of an application.
        tags = {"mlflow.experimentKind": "custom_model_development"}
        return client, client.create_experiment(name, artifact_location=tracking.artifact_location(), tags=tags)
    if experiment.lifecycle_stage == "deleted":
        raise ConfigError(f"tracking.experiment={name}: was deleted; restore it in MLflow, or choose another name")
    return client, experiment.experiment_id


def _make(database: Path) -> None:
    """Make MLflow's tables aside and move them into place: half of them, of a process that was ended, are no use."""
    from mlflow.store.db.utils import _initialize_tables, create_sqlalchemy_engine

    with replace_file(database) as new:
        engine = create_sqlalchemy_engine(f"sqlite:///{new}")  # type: ignore[no-untyped-call]  # MLflow has no types
        try:
            _initialize_tables(engine)  # type: ignore[no-untyped-call]  # the same
        finally:
            engine.dispose()


def _connect(uri: str) -> None:
    """Connect to a database once; MLflow would try ten times, with a warning each."""
    from mlflow.store.db.utils import create_sqlalchemy_engine
    from sqlalchemy.exc import ArgumentError

    try:
        engine = create_sqlalchemy_engine(uri)  # type: ignore[no-untyped-call]  # MLflow has no types
    except ValueError as error:
        raise ArgumentError(f"not an address: {error}") from error
    try:
        engine.connect().close()
    finally:
        engine.dispose()


@contextmanager
def patience(variables: Mapping[str, str]) -> Iterator[None]:
    """Have MLflow and drivers wait as long as their variables say, unless the user said how long."""
    ours = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            del os.environ[name]


@contextmanager
def explain_errors(tracking: Tracking, what: str) -> Iterator[None]:
    """Raise what goes wrong with a store as a `ConfigError`: one line without the password of its address."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, ImportError, OSError) as error:
        message = f"tracking.uri={tracking.uri}: {what} ({_reason(error)})"
        raise ConfigError(public({"said": message})["said"]) from error


def _reason(error: BaseException) -> str:
    """Return why, briefly: of the errors that libraries wrap one another's in, the network's or the disk's own."""
    reason, inner = error, error.__cause__ or error.__context__
    while inner is not None:
        reason = inner if isinstance(inner, OSError) else reason
        inner = inner.__cause__ or inner.__context__
    way_out = "; install the driver of this database" if isinstance(error, ModuleNotFoundError) else ""
    return " ".join(str(reason).partition("(Background on")[0].split())[:300] + way_out


@cache
def _write_ahead() -> None:
    """Have SQLite write ahead: commits cost half, readers do not wait, and a crash still leaves a sound database."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def set_up(connection: object, _record: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA busy_timeout={_PATIENCE_MS}")

    event.listen(Engine, "connect", set_up)
