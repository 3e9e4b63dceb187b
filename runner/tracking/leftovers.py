"""Lists what killed processes and unreachable tracking stores left on disk: unlogged results, artifacts without a run.

Nothing is changed, and MLflow is not loaded.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from runner.store.base import RunFiles
from runner.tracking.settings import Tracking
from runner.tracking.store import choose_store
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
    try:
        return choose_store(tracking).find_orphans()
    except sqlite3.Error:  # commands that use the database report the error
        return []
