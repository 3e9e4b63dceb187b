"""Finds folders of artifacts that a database names and that do not exist, and records where they are now.

This needs no tested tables: the addresses are in the same two columns in every database of MLflow. A server cannot
change them, but its database can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from runner.config.objects import ConfigError
from runner.config.values import without_secrets
from runner.tracking.logged import local_path
from runner.tracking.opening import connect, explain_errors
from runner.tracking.settings import NOT_STORED, Tracking

if TYPE_CHECKING:
    from sqlalchemy import Connection

_COLUMNS = {"runs": ("run_uuid", "artifact_uri"), "experiments": ("experiment_id", "artifact_location")}
"""The columns with the id and the address of artifacts, by table."""

Move = tuple[str, str | int, str]
"""A table, the id of a row and its new address."""


def list_missing(tracking: Tracking) -> dict[Path, int]:
    """Return the folders for artifacts that do not exist, with the number of runs in each; raises `ConfigError`."""
    with _connect(tracking) as connection:
        folders = [local_path(uri) for _, uri in _read(connection, "runs")]
    places = [folder.parents[1] for folder in folders if folder is not None and len(folder.parts) > 2]
    return {place: runs for place, runs in Counter(places).items() if not place.is_dir()}


def find_moves(tracking: Tracking, before: str, after: str) -> tuple[list[Move], int]:
    """Return the new addresses of what was in one folder (or s3://...) and is in another, and how many runs are not.

    A run is moved if its new folder exists, or is not on this machine. Raises `ConfigError`.
    """
    moves: list[Move] = []
    with _connect(tracking) as connection:
        rows = [(table, *row) for table in _COLUMNS for row in _read(connection, table)]
    new = [(table, row, uri) for table, row, old in rows if (uri := replace_place(old, before, after)) is not None]
    moves = [(table, row, uri) for table, row, uri in new if table != "runs" or _may_exist(uri)]
    return moves, len(new) - len(moves)


def write_moves(tracking: Tracking, moves: list[Move]) -> None:
    """Record new addresses of artifacts, all or none; raises `ConfigError`."""
    from sqlalchemy import text

    with _connect(tracking) as connection:
        for table, row, uri in moves:
            key, column = _COLUMNS[table]
            change = f"update {table} set {column} = :uri where {key} = :row"  # noqa: S608 (own names)
            connection.execute(text(change), {"uri": uri, "row": row})


def replace_place(uri: str, before: str, after: str) -> str | None:
    """Return an address of artifacts with one place replaced by another, None if it is not in that place."""
    folder, earlier, now = local_path(uri), local_path(before), local_path(after)
    if folder is not None and earlier is not None:
        if not folder.is_relative_to(earlier.absolute()):
            return None
        rest = folder.relative_to(earlier.absolute()).parts
    elif folder is None and earlier is None and f"{uri}/".startswith(f"{before.rstrip('/')}/"):
        rest = tuple(uri[len(before.rstrip("/")) :].strip("/").split("/"))
    else:
        return None
    return now.absolute().joinpath(*rest).as_uri() if now is not None else "/".join((after.rstrip("/"), *rest))


def _may_exist(uri: str) -> bool:
    folder = local_path(uri)
    return folder is None or folder.is_dir()


def _read(connection: Connection, table: str) -> list[tuple[str | int, str]]:
    from sqlalchemy import text

    rows = connection.execute(text(f"select {', '.join(_COLUMNS[table])} from {table}"))  # noqa: S608 (own names)
    return [(row, uri) for row, uri in rows if uri]


@contextmanager
def _connect(tracking: Tracking) -> Iterator[Connection]:
    """Yield a connection to a database whose changes are committed at the end; raises `ConfigError`."""
    if tracking.is_off:
        raise ConfigError(NOT_STORED)
    if tracking.is_server():
        raise ConfigError(
            f"tracking.uri={without_secrets(tracking.uri)}: a server cannot change where artifacts are; stop it, and "
            "set tracking.uri to the address of its database (its --backend-store-uri)"
        )
    file = tracking.sqlite_file()
    if file is not None and not file.is_file():
        raise ConfigError(f"tracking.uri={tracking.uri}: {file} does not exist")
    with explain_errors(tracking, "cannot be opened"), connect(tracking) as connection:
        yield connection
