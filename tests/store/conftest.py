"""A clock that tests of the store set."""

from __future__ import annotations

import time

import pytest

from tests.store.building import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock that measures work."""
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    return clock
