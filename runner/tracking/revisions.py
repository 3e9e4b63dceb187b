"""The revision of a database's tables: whether rows are written to them directly, or only through MLflow.

MLflow itself is not loaded.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from runner.config.objects import ConfigError
from runner.tracking.settings import Tracking

REVISION = "select version_num from alembic_version"
"""The revision of the tables of a database."""

TESTED = {"1b5f0d9ad7c1": "3.10.0", "dc11669786a5": "3.17.2", "f4a9b2c7d1e6": "3.18.0"}
"""The revisions whose tables rows are written to directly, with the versions of MLflow that passed `tests/tracking`.

In tables of any other revision, runs are logged through MLflow's client (`ClientStore`), which takes longer.
"""

_REVISION = re.compile(r"^(down_)?revision(?:: [^=]+)? = [\"'](\w+)[\"']", re.MULTILINE)


@cache
def _list_revisions() -> tuple[frozenset[str], frozenset[str]]:
    """Return all revisions that the installed MLflow knows, and those that a later one follows."""
    spec = find_spec("mlflow")
    folders = [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []
    texts = [
        file.read_text(encoding="utf-8") for at in folders for file in at.glob("store/db_migrations/versions/*.py")
    ]
    revisions = [pair for text in texts for pair in _REVISION.findall(text)]
    return frozenset(name for down, name in revisions if not down), frozenset(name for down, name in revisions if down)


def read_revision(file: Path) -> str | None:
    """Return the revision of the tables in a SQLite file, None if there are none; raises `sqlite3.Error`."""
    if not file.is_file():
        return None
    with closing(sqlite3.connect(file)) as database:
        tables = database.execute("select 1 from sqlite_master where name = 'alembic_version'").fetchall()
        rows = database.execute(REVISION).fetchall() if tables else []
    return str(rows[0][0]) if rows else None


def find_installed_revision() -> str:
    """Return the revision of the tables that the installed MLflow creates."""
    known, followed = _list_revisions()
    return min(known - followed, default="")


def needs_client(file: Path | None) -> bool:
    """Return whether the installed MLflow has the tables of a database, and these were not tested.

    `file` is None for a database that is not a file: MLflow opens it, and refuses it unless the tables are its own.
    """
    try:
        revision = None if file is None else read_revision(file)
    except sqlite3.Error:  # raised again, with the address, where the file is read
        return False
    installed = find_installed_revision()
    return revision not in TESTED and installed not in TESTED and revision in (None, installed)


def check_revision(tracking: Tracking, revision: str) -> None:
    """Raise `ConfigError` if the installed MLflow would migrate tables of a revision, or does not know it."""
    known, followed = _list_revisions()
    place = f"tracking.uri={tracking.uri}: the database has the tables of"
    if revision in followed:
        raise ConfigError(
            f"{place} an older MLflow (revision {revision}); writing to it would migrate it, and that MLflow would "
            "then refuse it; migrate a copy with `mlflow db upgrade`, or choose another database"
        )
    if revision not in known:
        raise ConfigError(
            f"{place} another MLflow (revision {revision}), which the installed one does not know; install the MLflow "
            "that wrote it, or choose another database"
        )


def check_file(tracking: Tracking) -> None:
    """Raise `ConfigError` if a store is a file whose tables the installed MLflow would migrate or does not know."""
    file = tracking.sqlite_file()
    revision = None if file is None else read_revision(file)
    if revision is not None:
        check_revision(tracking, revision)
