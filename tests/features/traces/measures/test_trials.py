"""Several trials of a task: which one counts."""

from __future__ import annotations

from runner.features.traces.measures.figures import FigureNames
from runner.features.traces.measures.trials import build_trial, select_latest
from tests.features.traces.documents import done


def test_of_a_task_done_several_times_the_latest_batch_counts() -> None:
    days = (1, 3, 2)
    runs = [build_trial(done("t", reward=1.0, batch_timestamp=f"2026-01-0{day}"), FigureNames()) for day in days]
    assert select_latest(runs) == {"t": 1}
