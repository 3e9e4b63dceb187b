"""Sweeps are tested without the golden report, which takes a quarter of the time of a small one.

`tests/test_command_line.py` looks at the golden report of a sweep.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.tracking.settings import Tracking
from tests.sweep.searches import write_dataset


@pytest.fixture(autouse=True)
def no_golden_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the golden report out of what a sweep writes."""
    monkeypatch.setattr("runner.features.golden.report.files.golden_files", lambda *_, **__: {})


@pytest.fixture
def here(tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: it has a store of runs, and in `data` a dataset with a train split."""
    assert tracking.sqlite_file() == tmp_path / "mlruns" / "mlflow.db"
    write_dataset(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path
