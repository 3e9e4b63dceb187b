"""Logged runs and sweeps, and the state of a sweep. MLflow is not needed."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from runner.system.processes import holder


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
class ParentRun:
    """A parent run of a sweep, with the process that executed it last and the identity of its report."""

    run: LoggedRun
    status: str
    process: str
    report: str


@dataclass(frozen=True)
class Run:
    """A logged run. `kind` is "evaluation" or "sweep"; a sweep has the name and the run id of its best combination.

    `parent` is the run of the sweep that computed it, "" for a single evaluation.
    """

    id: str
    name: str
    status: str
    kind: str
    best: str
    best_run: str
    parent: str
    artifacts: str

    @property
    def folder(self) -> Path | None:
        """Return the folder of its artifacts if that is on this machine."""
        return local_path(self.artifacts)


@dataclass(frozen=True)
class State:
    """The state of a sweep: the parent run of its report, if there is one, and the status of that run.

    `finished` has the finished combinations of the whole sweep by identity, for any report.
    """

    run: LoggedRun | None = None
    status: str = ""
    finished: Mapping[str, LoggedRun] = field(default_factory=dict)


def state_of(parents: Sequence[ParentRun], finished: Mapping[str, LoggedRun], report: str = "") -> State:
    """Return the state of a sweep from its parent runs, oldest first, and its finished combinations."""
    if not parents:  # a sweep without a parent run was never started, or was deleted
        return State()
    for parent in reversed(parents):
        if parent.report == report:
            return State(parent.run, parent.status, finished)
    return State(finished=finished)


def this_time() -> str:
    """Return a unique name for one execution by this process."""
    return f"{holder()} {uuid.uuid4().hex}"


def local_path(uri: str) -> Path | None:
    """Return the local path of an address of artifacts, None if they are not on this machine."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return Path(_WINDOWS_DRIVE.sub("", unquote(parts.path)))
    return Path(uri) if re.match(r"[A-Za-z]:[\\/]", uri) else None  # a Windows path


def find_beside(database: Path, uri: str) -> Path | None:
    """Return the folder of a run's artifacts that is beside a database, None if `uri` names it or it does not exist.

    If a project was moved or copied, its database names the earlier folders.
    """
    recorded = local_path(uri)
    if recorded is None or len(recorded.parts) < 4:
        return None
    beside = database.parent.joinpath(*recorded.parts[-3:])  # artifacts/RUN/artifacts
    return beside if beside != recorded and beside.is_dir() else None


def find_artifacts(database: Path | None, uri: str) -> str:
    """Return the address of a run's artifacts: beside the database if they were moved or copied with it."""
    beside = None if database is None else find_beside(database, uri)
    return uri if beside is None else beside.as_uri()


_WINDOWS_DRIVE = re.compile(r"^/(?=[A-Za-z]:/)")
"""The slash before the drive in an address such as file:///C:/runs."""
