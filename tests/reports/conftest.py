"""Reports are tested with their plots drawn."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def blank_plots() -> None:
    """Draw all plots."""
