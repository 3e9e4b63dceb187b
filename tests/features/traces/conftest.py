"""What the tests of agents share: where real traces are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import DATA


@pytest.fixture(scope="session")
def real_traces() -> Path:
    """Return the folder of real trials and runs, or skip."""
    if not (DATA / "traces").is_dir():
        pytest.skip(f"no real traces at {DATA / 'traces'}: set RETRIEVAL_DATA to a folder that has traces/")
    return DATA / "traces"
