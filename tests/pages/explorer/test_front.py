"""The script of a page finds the same Pareto front of the rows shown as the leaderboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.pages.explorer.data import DataColumn
from runner.pages.explorer.page import STATIC
from runner.statistics.selection import find_front
from tests.strategies.scores import MEASURE_VALUES, value_pairs

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_the_script_finds_the_front_of_any_rows_by_the_rule_of_the_leaderboard(browser: Browser) -> None:
    page = browser.new_page()
    page.add_script_tag(content=(STATIC / "front.js").read_text(encoding="utf-8"))
    points = value_pairs(MEASURE_VALUES, 8, 16) | value_pairs(MEASURE_VALUES | st.floats(0, 2), 1, 16)

    @settings(max_examples=200, deadline=None)  # ties on a front are rare
    @given(points, st.sets(st.integers(0, 15), max_size=8), st.sampled_from([0.0, 0.15, 0.25]) | st.floats(0, 0.5))
    def check(points: list[tuple[float, float]], hidden: set[int], ignored: float) -> None:
        sides = zip(*points, strict=True)
        costs, means = (DataColumn("", "", "", side, "number").to_dict()["values"] for side in sides)
        rows = [row for row in range(len(points)) if row not in hidden]
        front = find_front(np.array([costs, means]).T[rows], [False, True], ignored)
        expected = sorted(np.array(rows, dtype=np.int64)[front].tolist(), key=lambda row: (costs[row], row))
        known = [[None if np.isnan(value) else value for value in column] for column in (costs, means)]
        assert page.evaluate("of => findFront(...of)", [rows, *known, ignored]) == expected

    check()
    page.close()
