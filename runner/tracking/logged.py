"""Logged runs and sweeps, and the state of a sweep. MLflow is not needed."""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from runner.config.objects import ConfigError
from runner.processes import holder
from runner.tracking.mlflow_internals import Rows, read_sqlite, sweep_rows
from runner.tracking.settings import Tracking


@dataclass(frozen=True)
class LoggedRun:
    """A logged run: its id, and the folder of its artifacts if that is on this machine."""

    id: str
    folder: Path | None

    def where(self, file: str) -> str:
        """Return a description of where an artifact is."""
        return str(self.folder / file) if self.folder else f"{file} among the artifacts of run {self.id}"


@dataclass(frozen=True)
class Sweep:
    """A sweep as it is logged: its identity, its name, its axes with their values, and its parent run once it has one.

    `process` identifies one execution by one process (see `this_time`). `report` is the identity of the report of its
    parent run: commands of the same sweep with other reports share its combinations but have another parent run.
    """

    id: str
    name: str
    axes: Mapping[str, str]
    combinations: int
    process: str = ""
    run: LoggedRun | None = None
    report: str = ""


@dataclass(frozen=True)
class State:
    """The state of a sweep: the parent run of its report, if there is one, and the status of that run.

    `finished` has the finished combinations of the whole sweep by identity, for any report.
    """

    run: LoggedRun | None = None
    status: str = ""
    finished: Mapping[str, LoggedRun] = field(default_factory=dict)


def state_of(parents: Rows, finished: Rows, report: str = "") -> State:
    """Return the state of a sweep from the rows that `sweep_rows` returns."""
    if not parents:  # a sweep without a parent run was never started, or was deleted
        return State()
    done = {identity: LoggedRun(run, local_path(where)) for identity, run, where in finished}
    for run_id, uri, status, _, reported in reversed(parents):
        if (reported or "") == report:
            return State(LoggedRun(run_id, local_path(uri)), status, done)
    return State(finished=done)


def sqlite_state(tracking: Tracking, sweep_id: str, report: str = "") -> State:
    """Return the state of a sweep in a SQLite file, without loading MLflow; raises `ConfigError`."""
    file = tracking.sqlite_file()
    assert file is not None  # noqa: S101 (it is SQLite)
    try:
        return state_of(*sweep_rows(read_sqlite(file), tracking.experiment, sweep_id), report)
    except sqlite3.Error as error:
        raise ConfigError(
            f"tracking.uri={tracking.uri}: cannot be read ({error}); set the file of an MLflow database"
        ) from error


def this_time() -> str:
    """Return a unique name for one execution by this process."""
    return f"{holder()} {uuid.uuid4().hex}"


def local_path(uri: str) -> Path | None:
    """Return the local path of an address of artifacts, None if they are not on this machine."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return Path(_WINDOWS_DRIVE.sub("", unquote(parts.path)))
    return Path(uri) if re.match(r"[A-Za-z]:[\\/]", uri) else None  # a Windows path


_WINDOWS_DRIVE = re.compile(r"^/(?=[A-Za-z]:/)")
"""The slash before the drive in an address such as file:///C:/runs."""
