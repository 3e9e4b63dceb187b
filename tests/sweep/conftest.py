"""Sweeps are tested without the golden report, which takes a quarter of the time of a small one.

`tests/test_command_line.py` looks at the golden report of a sweep.
"""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_golden_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the golden report out of what a sweep writes."""
    monkeypatch.setattr("runner.reports.golden.files.golden_files", lambda *_: {})
