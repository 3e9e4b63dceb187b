"""Run a command in a folder with an MLflow store, and read the figures that it logged from the database."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from runner.__main__ import main

Figures = Mapping[str, float]
"""The figures of a run by name; a figure with several steps has the name `NAME, step STEP` for each."""


def prepare_store(migrated: Path, folder: Path) -> None:
    """Give a folder an empty MLflow store."""
    (folder / "mlruns").mkdir(parents=True)
    shutil.copy(migrated, folder / "mlruns" / "mlflow.db")


def run_logged(folder: Path, *words: str, code: int = 0) -> None:
    """Run a command in a folder; it must end with an exit code."""
    with contextlib.chdir(folder):
        assert main([*words, "tracking.background=false"]) == code


def read_figures(folder: Path) -> dict[str, dict[str, float]]:
    """Return the figures of each run in the store of a folder, by the name of the run."""
    names = "SELECT run_uuid, name FROM runs"
    values = "SELECT run_uuid, key, step, value FROM metrics"
    with closing(sqlite3.connect(folder / "mlruns" / "mlflow.db")) as database:
        runs = dict(database.execute(names).fetchall())
        rows: Sequence[tuple[str, str, int, float]] = database.execute(values).fetchall()
    steps = {key for _, key, step, _ in rows if step}
    figures: dict[str, dict[str, float]] = {name: {} for name in runs.values()}
    for run, key, step, value in rows:
        figures[runs[run]][f"{key}, step {step}" if key in steps else key] = value
    return figures
