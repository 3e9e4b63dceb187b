"""What tests of synthesis share: a journal of what is paid for."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.llm.journal import Journal


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Return a journal, which is empty."""
    return Journal(tmp_path / "journal.jsonl")
