"""A sweep's report: what is said while it is made."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from runner.__main__ import main
from runner.reports import console
from runner.sweep import execute
from runner.tracking.settings import Tracking

STAGES = {
    "SweepRun.logged": "logging the rest, comparing all",
    "leaderboard": "logging the rest, comparing all",
    "sweep_page": "report",
    "SweepRun.finish": "logging the report",
}
WAIT_S = 60


def test_after_its_last_combination_a_sweep_is_said_to_go_on(
    tracking: Tracking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, heard = io.StringIO(), dict[str, bool]()

    def waiting(stage: str, whole: Callable[..., Any]) -> Callable[..., Any]:
        def waits(*given: object, **named: object) -> object:
            end, before = time.monotonic() + WAIT_S, len(stream.getvalue())
            while not (is_said := f"{STAGES[stage]}, " in stream.getvalue()[before:]) and time.monotonic() < end:
                time.sleep(0.01)
            heard[stage] = is_said
            return whole(*given, **named)

        return waits

    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(console, "EVERY_S", 0.01)
    for stage in STAGES:
        monkeypatch.setattr(f"runner.sweep.execute.{stage}", waiting(stage, attrgetter(stage)(execute)))
    assert main(["-m", "retriever=bm25", "retriever.k1=0.6,0.9", "tracking.background=false"]) == 0
    assert heard == dict.fromkeys(STAGES, True)
