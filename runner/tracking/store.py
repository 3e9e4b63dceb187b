"""Tracking stores: what the program needs of a place for runs, and the choice of the place that the settings name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from runner.tracking.client import ClientStore
from runner.tracking.database import DatabaseStore, MlflowDatabase
from runner.tracking.logged import LoggedRun, ParentRun, Run
from runner.tracking.record import LoggedDataset, Point, RunRecord, TagChanges
from runner.tracking.revisions import needs_client
from runner.tracking.settings import Tracking
from runner.tracking.sqlite import SqliteDatabase


def choose_store(tracking: Tracking) -> RunStore:
    """Return the store that the settings name; nothing is read or created yet."""
    file = tracking.sqlite_file()
    if tracking.is_server() or (not tracking.is_off and needs_client(file)):
        return ClientStore(tracking)
    if file is not None or tracking.is_off:
        return DatabaseStore(tracking, SqliteDatabase(tracking, file))
    return DatabaseStore(tracking, MlflowDatabase(tracking))


class RunStore(Protocol):
    """The runs of an experiment, oldest first unless a method says otherwise; may raise errors of its library.

    Times are in milliseconds since the epoch. Methods that only read do not need `open`.
    """

    @property
    def keeps_runs(self) -> bool:
        """Return whether runs can be read after this process has ended."""
        ...

    @property
    def is_direct(self) -> bool:
        """Return whether runs are read and written at once, without loading a library or waiting for a server."""
        ...

    @property
    def page(self) -> str | None:
        """Return where a browser shows the runs, "" if unknown; None if only `python -m runner ui` shows them."""
        ...

    @property
    def folder(self) -> Path:
        """Return the folder on this machine for other files of the experiment."""
        ...

    @property
    def experiment(self) -> str:
        """Return the id of the experiment in an open store."""
        ...

    def check(self) -> None:
        """Raise `ConfigError` if it is known without a connection that runs cannot be logged; nothing is created."""
        ...

    def relocate(self) -> str:
        """Record where artifacts are that were moved with the store; return what the user should know, else ""."""
        ...

    def open(self) -> None:
        """Prepare for writing: create what is missing, remove what dead processes left. Raises `ConfigError`."""
        ...

    def log(self, runs: Sequence[tuple[str, RunRecord]]) -> Iterable[LoggedRun]:
        """Yield ended runs in the same order, each once it is stored completely, with its artifacts.

        Each comes with the id of its result, "" if it has none. If an error is raised, no other run is stored.
        """
        ...

    def find_logged(self, results: Sequence[str]) -> Mapping[str, LoggedRun]:
        """Return the runs that `log` stored, by the ids of their results."""
        ...

    def create_run(self, name: str, started: int, tags: Mapping[str, str]) -> LoggedRun:
        """Create a run with the status RUNNING and return it."""
        ...

    def update_run(self, run_id: str, tags: TagChanges, status: str | None = None, ended: int | None = None) -> None:
        """Set tags of a run, or remove those that are None, and set its status and the time of its end if given."""
        ...

    def add_metrics(self, run_id: str, metrics: Sequence[Point], dataset: LoggedDataset) -> None:
        """Add metrics to a run, and link it to their dataset, once; the value of a metric is that of the last step."""
        ...

    def link(self, parent: str, sweep_id: str, runs: Collection[str]) -> None:
        """Tag combinations of a sweep as also reported by this parent run, except those that it computed itself."""
        ...

    def find_running(self) -> list[tuple[str, str]]:
        """Return the ids of runs with the status RUNNING, with the names of their processes."""
        ...

    def read_sweep(self, sweep_id: str, parent: str = "") -> tuple[Sequence[ParentRun], Mapping[str, LoggedRun]]:
        """Return the parent runs of a sweep, and its finished combinations by identity.

        With `parent`, only the combinations that this parent run computed.
        """
        ...

    def find_runs(self, beginning: str) -> list[Run]:
        """Return the runs whose ids start with these hexadecimal digits."""
        ...

    def list_combinations(self, parent: str, status: str) -> list[Run]:
        """Return the combinations with a status that a parent run computed or reports."""
        ...

    def list_runs(self, ended: bool) -> list[Run]:
        """Return the evaluations and sweeps, latest first; with `ended`, only those that have ended, by their end."""
        ...

    def list_kind(self, kind: str) -> list[Run]:
        """Return the finished runs with a tag `kind`, oldest first."""
        ...

    def add_files(self, run_id: str, files: Mapping[str, str]) -> None:
        """Add texts to the artifacts of a run."""
        ...

    def list_files(self, run_id: str) -> set[str]:
        """Return the names of the artifacts of a run whose folder is not on this machine."""
        ...

    def fetch_file(self, run_id: str, name: str, folder: Path) -> None:
        """Copy an artifact of a run into a folder."""
        ...

    def find_orphans(self) -> list[Path]:
        """Return the artifact folders on this machine of runs that dead processes did not log."""
        ...
