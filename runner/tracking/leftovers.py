"""Lists what killed processes and unreachable tracking stores left on disk: unlogged results, artifacts without a run.

Nothing is changed, and MLflow is not loaded.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.store.base import RunFiles
from runner.tracking.artifacts import ArtifactFolders
from runner.tracking.logged import local_path
from runner.tracking.mlflow_internals import read_sqlite
from runner.tracking.settings import Tracking
from runner.tracking.unlogged import waiting_in


@dataclass(frozen=True)
class WaitingResults:
    """A folder of results that wait to be logged: their number and their size in bytes."""

    folder: Path
    results: int
    bytes: int


def waiting_results(files: RunFiles) -> list[WaitingResults]:
    """Return the folders of results that wait to be logged."""
    groups = [(folder, list(waiting_in(folder))) for folder in sorted(files.unlogged.glob("*/"))]
    return [
        WaitingResults(folder, len(group), sum(waiting.bytes for waiting in group)) for folder, group in groups if group
    ]


def find_orphaned_artifacts(tracking: Tracking) -> list[Path]:
    """Return the artifact folders of runs that dead processes did not log; the next command that logs removes them."""
    location = tracking.artifact_location()
    folders = ArtifactFolders(local_path(location) if location else None, tracking.absolute_uri())

    def find_logged(ids: Sequence[str]) -> Collection[str]:
        if (file := tracking.sqlite_file()) is None:
            return ()
        ask = read_sqlite(file)
        rows = (ask("select run_uuid from runs where run_uuid = :run", {"run": run}) for run in ids)
        return {run for rows_of_run in rows for (run,) in rows_of_run}

    try:
        return folders.orphans(find_logged)
    except sqlite3.Error:  # commands that use the database report the error
        return []
