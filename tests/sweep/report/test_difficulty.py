"""What a sweep says of the difficulty of its queries: the numbers are those of the analysis."""

from __future__ import annotations

import re

import numpy as np
import pytest

from runner.comparison.leaderboard import build_leaderboard
from runner.sweep.report import difficulty
from runner.sweep.report.page import sweep_page
from runner.sweep.report.sections import sweep_markdown
from tests.pages.factory import sweep

PRIMARY = "nDCG@10"


def test_the_hardest_of_all_are_by_the_mean_over_combinations_with_their_spread() -> None:
    results = sweep(5)
    table = difficulty.hardest_of_all(results, PRIMARY, 4)
    scores = np.stack([r.of(PRIMARY) for r in results])
    position = int(np.nanargmin(scores.mean(axis=0)))
    query, _, mean, spread, worst, best, answered, _ = table.rows[0]
    assert query == results[0].queries.ids[position]
    assert (mean, spread) == (pytest.approx(scores[:, position].mean()), pytest.approx(scores[:, position].std()))
    assert (worst, best) == (scores[:, position].min(), scores[:, position].max())
    assert answered == f"{np.count_nonzero(scores[:, position])} of 5"
    assert len(table.rows) == 4


def test_combinations_disagree_most_where_the_spread_is_largest() -> None:
    results = sweep(5)
    spreads = np.stack([r.of(PRIMARY) for r in results]).std(axis=0)
    query, *_ = difficulty.divisive(results, PRIMARY, 4).rows[0]
    assert query == results[0].queries.ids[int(np.nanargmax(spreads))]
    assert not difficulty.divisive(results[:1], PRIMARY, 4).rows


def test_a_sweep_names_the_queries_in_which_no_combination_scores() -> None:
    results = sweep(3)
    for each in results:
        each.scores[list(each.measures).index(PRIMARY), [4, 7]] = 0
    board = build_leaderboard(results, PRIMARY)
    best = np.stack([each.of(PRIMARY) for each in results]).max(axis=0)
    none = [results[0].queries.ids[i] for i in np.flatnonzero(best == 0)]
    assert {"q004", "q007"} <= set(none)
    said = f"No combination has a nDCG@10 above 0 in {len(none)} queries: {', '.join(none)}."
    for text in (sweep_markdown(board, results), sweep_page(board, results)):
        assert said in text
        assert "Queries with the largest differences between combinations" in text
        assert re.search("standard deviation of their nDCG@10", text)
