"""Writes the tables of a new database of the installed MLflow, `runner/tracking/mlflow.sql`."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from runner.tracking.mlflow_internals import create_engine, create_tables
from runner.tracking.sqlite import TABLES


def dump_tables() -> str:
    """Return the tables that MLflow makes, with the rows of a new database, as SQL."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mlflow.db"
        engine = create_engine(f"sqlite:///{file}")
        create_tables(engine)
        engine.dispose()
        with closing(sqlite3.connect(file)) as database:
            return "\n".join(database.iterdump()) + "\n"


if __name__ == "__main__":
    TABLES.write_text(dump_tables(), encoding="utf-8")
