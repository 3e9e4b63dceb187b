"""The private parts of MLflow that this program uses: the classes behind its client.

They may change in any release. Sessions are used only with the tables that were tested (`revisions.py`); others are
written through MLflow's client. `make mlflow` runs the tests of tracking with several versions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runner.tracking.tables import Rows, Session

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient
    from sqlalchemy import Engine, orm

SQL_LOGGER = "mlflow.store.db.utils"
"""The logger that prints each error of a database before it is raised."""


class _StoreSession:
    """A transaction on MLflow's database."""

    def __init__(self, session: orm.Session) -> None:
        self._session = session

    def read(self, query: str, named: Mapping[str, Any]) -> Rows:
        from sqlalchemy import text

        return [tuple(row) for row in self._session.execute(text(query), named)]

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        from mlflow.store.db.base_sql_model import Base

        if rows:
            self._session.execute(Base.metadata.tables[table].insert(), list(rows))

    def change(self, statement: str, named: Mapping[str, Any]) -> None:
        from sqlalchemy import text

        self._session.execute(text(statement), named)


@contextmanager
def store_transaction(client: MlflowClient) -> Iterator[Session]:
    """Yield a session of the database behind a client."""
    with client._tracking_client.store.ManagedSessionMaker() as session:
        yield _StoreSession(session)


def open_artifacts(uri: str, tracking_uri: str | None = None) -> Any:  # noqa: ANN401 (MLflow has no types)
    """Return MLflow's `ArtifactRepository` of an address of artifacts, which may be one of a tracking server."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    return get_artifact_repository(uri, tracking_uri)


def create_engine(uri: str) -> Engine:
    """Return an engine with MLflow's connection settings."""
    from mlflow.store.db.utils import create_sqlalchemy_engine

    engine: Engine = create_sqlalchemy_engine(uri)  # type: ignore[no-untyped-call]  # MLflow has no types
    return engine


def create_tables(uri: str) -> None:
    """Create MLflow's tables in an empty database."""
    from mlflow.store.db.utils import _initialize_tables

    engine = create_engine(uri)
    try:
        _initialize_tables(engine)  # type: ignore[no-untyped-call]  # MLflow has no types
    finally:
        engine.dispose()
