"""Finds logged runs by the beginning of their ids, and reads their records. Nothing is written."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from runner.evaluation.records import load_record
from runner.evaluation.result import Result, ResultError
from runner.tracking.logged import LoggedRun, Run
from runner.tracking.opening import explain_errors
from runner.tracking.places import describe_missing
from runner.tracking.settings import Tracking
from runner.tracking.store import RunStore, choose_store

RECORD = {"result.json", "per_query.parquet", "rankings.parquet", "documents.parquet", "grades.parquet"}


class Runs:
    """The runs of a tracking store; raises `ConfigError` if it cannot be read."""

    def __init__(self, tracking: Tracking) -> None:
        self.tracking = tracking
        self._store = choose_store(tracking)

    def like(self, beginning: str) -> list[Run]:
        """Return the runs whose ids start with these hexadecimal digits."""
        return self._search(lambda: self._store.find_runs(beginning))

    def of_sweep(self, parent: Run, status: Literal["FINISHED", "FAILED"] = "FINISHED") -> list[Run]:
        """Return the combinations of a sweep with a status, its own and reused ones."""
        return self._search(lambda: self._store.list_combinations(parent.id, status))

    def list_ended(self) -> list[Run]:
        """Return the ended evaluations and sweeps of the experiment, latest first."""
        return self._search(lambda: self._store.list_runs(ended=True))

    def list_started(self) -> list[Run]:
        """Return the evaluations and sweeps of the experiment, also those that are running, latest first."""
        return self._search(lambda: self._store.list_runs(ended=False))

    def list_kind(self, kind: str) -> list[Run]:
        """Return the finished runs of the experiment with a tag `kind`, oldest first."""
        return self._search(lambda: self._store.list_kind(kind))

    def record(self, run: Run, rankings: bool = True) -> Result:
        """Return the record of a run, with or without its rankings; raises `ResultError`."""
        if run.folder is not None and not run.folder.parents[1].is_dir():
            raise ResultError(describe_missing(self.tracking, run.folder.parents[1]))
        with explain_errors(self.tracking, f"run {run.id} cannot be fetched"):
            return fetch_record(self._store, LoggedRun(run.id, run.folder), rankings)

    def list_files(self, run: Run) -> list[str]:
        """Return the names of the artifacts of a run; raises `ConfigError`."""
        if run.folder is not None:
            return sorted(path.name for path in run.folder.iterdir()) if run.folder.is_dir() else []
        with explain_errors(self.tracking, f"run {run.id} cannot be fetched"):
            return sorted(self._store.list_files(run.id))

    def read_file(self, run: Run, name: str) -> str:
        """Return an artifact of a run as text; raises `ConfigError`."""
        if run.folder is not None:
            return (run.folder / name).read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as copy, explain_errors(self.tracking, f"run {run.id} cannot be fetched"):
            self._store.fetch_file(run.id, name, Path(copy))
            return (Path(copy) / name).read_text(encoding="utf-8")

    def _search(self, search: Callable[[], list[Run]]) -> list[Run]:
        with explain_errors(self.tracking, "cannot be read"):
            return search()


def fetch_record(store: RunStore, run: LoggedRun, rankings: bool) -> Result:
    """Return the record of a run, with or without its rankings; raises `ResultError`."""
    if run.folder is not None:
        return load_record(run.folder, rankings)
    kept = store.list_files(run.id)
    if "result.json" not in kept:
        raise ResultError(f"run {run.id} has no record of an evaluation in its artifacts")
    with tempfile.TemporaryDirectory() as copy:
        for name in kept & (RECORD if rankings else RECORD - {"rankings.parquet", "documents.parquet"}):
            store.fetch_file(run.id, name, Path(copy))
        return load_record(Path(copy), rankings)


def format_runs(runs: Sequence[Run], most: int = 10) -> str:
    """Return a list of runs by id and name, as the end of a message."""
    listed = [f"{run.id[:8]} ({run.name})" for run in runs[:most]]
    return ", ".join(listed) + (f" and {len(runs) - most:,} more" if len(runs) > most else "")
