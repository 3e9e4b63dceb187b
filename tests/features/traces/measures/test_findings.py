"""The order of tasks, and the configuration that the others are compared with."""

from __future__ import annotations

from runner.features.traces.measures.findings import select_baseline, sort_by_interest
from tests.features.traces.documents import done


def test_tasks_that_differ_come_first_then_missed_ones_and_unmeasured_ones_last() -> None:
    artifacts = {
        "b/none": done("none", "a.py", gold=()),
        "b/found": done("found", "a.py", "b.py"),
        "b/missed": done("missed", "x.py"),
        "b/apart": done("apart", "x.py"),
        "c/apart": done("apart", "a.py", "b.py", config_name="c"),
    }
    assert sort_by_interest(artifacts) == ["b/apart", "c/apart", "b/missed", "b/found", "b/none"]


def test_the_first_that_is_called_a_baseline_is_one() -> None:
    assert select_baseline(["agent", "zero-baseline", "baseline-b"]) == "baseline-b"
    assert select_baseline(["b", "a"]) == "a"
    assert select_baseline([]) == ""
