"""What is told of a pool that a language model judged, and of the standings by it."""

from __future__ import annotations

from runner.evaluation.verdicts import GradeVerdict
from runner.features.judge.judging import Bounds, Standing
from runner.features.judge.report import pool_table, standings_table


def test_standings_are_ordered_by_what_they_are_after() -> None:
    low, high = Bounds(0.2, 0.9, 0.5), Bounds(0.4, 0.6, 0.8)
    table = standings_table([Standing("a", high, low), Standing("b", low, high)], "P@10", 10)
    assert [row[0] for row in table.texts()] == ["b", "a"]
    assert table.texts()[0][1:] == ["0.2000", "0.9000", "50.0%", "0.4000", "0.6000", "80.0%"]


def test_a_pools_verdicts_are_counted() -> None:
    said = [
        GradeVerdict(2.0, "graded", clamped=True, calls=1, tokens_in=10, cut=True),
        GradeVerdict(None, "error", calls=6),
    ]
    table = dict(pool_table(said).texts())
    assert (table["grades outside the scale"], table["texts cut"]) == ("1", "1")
    assert (table["pairs"], table["graded"], table["error"], table["calls"]) == ("2", "1", "1", "7")
