"""Write `runner/tracking/mlflow.sql`, the tables of a new database of the installed MLflow."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from runner.tracking.mlflow_internals import create_tables
from runner.tracking.sqlite import TABLES

CONSTRAINTS = re.compile(r"(?:^\t(?:CONSTRAINT|CHECK|FOREIGN KEY|UNIQUE)\b.*\n)+", re.MULTILINE)
"""The constraints of a table, which follow its columns."""

INDEXES = re.compile(r"(?:^CREATE (?:UNIQUE )?INDEX\b.*\n)+", re.MULTILINE)


def dump_tables() -> str:
    """Return the tables and rows of a new MLflow database as SQL; the text is the same each time."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mlflow.db"
        create_tables(f"sqlite:///{file}")
        with closing(sqlite3.connect(file)) as database:
            return sort_definitions("\n".join(database.iterdump()) + "\n")


def sort_definitions(tables: str) -> str:
    """Sort the constraints of each table, primary keys first, and the indexes: Alembic's order is that of a set."""
    tables = INDEXES.sub(lambda indexes: "".join(sorted(indexes[0].splitlines(keepends=True))), tables)
    return CONSTRAINTS.sub(_sort_constraints, tables)


def _sort_constraints(constraints: re.Match[str]) -> str:
    lines = constraints[0].removesuffix("\n").split(", \n")
    return ", \n".join(sorted(lines, key=lambda line: (" PRIMARY KEY " not in line, line))) + "\n"


if __name__ == "__main__":
    TABLES.write_text(dump_tables(), encoding="utf-8")
