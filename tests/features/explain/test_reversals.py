"""Verified causes by hand: which queries moved, and which changes restore each of them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from benchmarks.simulations.explanation import draw_version
from benchmarks.simulations.verified_causes import CHANGES, check_plan, plant
from runner.features.explain.reversals import MovedCounts, MovedQuery, QueryStates, count_moved, find_moved_queries

NAMES = {"setting retriever.k1": "retriever.k1", "documents": "documents", "judgments": "judgments"}
K1, DOCUMENTS, JUDGMENTS = NAMES


def read(*rows: tuple[float, float]) -> QueryStates:
    """Return the states of queries from the value and the rank of each."""
    values, ranks = np.array(rows, dtype=np.float64).T
    return QueryStates(values, ranks)


def test_a_cause_is_a_change_whose_reversal_alone_restores_rank_and_value() -> None:
    ids = ["same", "one", "either", "two", "code", "rank"]
    before = read((1, 1), (1, 1), (0.5, 2), (1, 1), (0.5, 3), (0, 20))
    after = read((1, 1), (0, math.inf), (0.2, 5), (0, 40), (0.2, 5), (0, 30))
    reversals = {
        frozenset({K1}): read((1, 1), (0, math.inf), (0.5, 2), (0, 30), (0.2, 5), (0, 20)),
        frozenset({DOCUMENTS}): read((1, 1), (1 - 1e-12, 1), (0.5, 2), (0, 20), (0.2, 5), (0, 21)),
        frozenset({JUDGMENTS}): read((1, 1), (0.5, 1), (0.5, 3), (0, 40), (0.2, 5), (0, 30)),
        frozenset({K1, DOCUMENTS}): read((1, 1), (1, 1), (0.5, 2), (1, 1), (0.4, 4), (0, 20)),
        frozenset({DOCUMENTS, JUDGMENTS}): read((1, 1), (1, 1), (0.5, 2), (0, 9), (0.4, 4), (0, 20)),
        frozenset(NAMES): read((1, 1), (1, 1), (0.5, 2), (1, 1), (0.4, 4), (0, 20)),
    }
    moved = find_moved_queries(ids, before, after, reversals, NAMES)
    assert [(query.query, query.restored_by) for query in moved] == [
        ("two", [["retriever.k1", "documents"]]),
        ("one", [["documents"]]),
        ("either", [["retriever.k1"], ["documents"]]),
        ("code", []),
        ("rank", [["retriever.k1"]]),
    ]
    assert (moved[1].values, moved[1].ranks) == ((1, 0), (1, math.inf))
    assert [query.causes for query in moved] == [[], ["documents"], ["retriever.k1", "documents"], [], ["retriever.k1"]]
    counts = count_moved(moved, [*NAMES.values()])
    assert counts == MovedCounts(moved=5, alone={"retriever.k1": 2, "documents": 2}, several=1, together=1, never=1)
    assert counts.single == 3


def test_a_query_that_stops_counting_moved_and_an_unknown_rank_is_not_compared() -> None:
    nan = math.nan
    before, after = read((0.5, 2), (0.5, nan), (nan, math.inf)), read((nan, math.inf), (0.5, 3), (nan, math.inf))
    (query,) = find_moved_queries(["gone", "unknown", "empty"], before, after, {frozenset({K1}): before}, NAMES)
    assert query == MovedQuery("gone", query.values, (2, math.inf), [["retriever.k1"]])


def test_a_planted_cause_is_named_and_none_where_two_are_needed(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    planted = plant(rng, draw_version(rng, 100))
    plans = [("retriever.k1", "documents"), ("documents", "judgments"), CHANGES]
    tallies = [check_plan(planted, plan, tmp_path / str(i)) for i, plan in enumerate(plans)]
    assert sum(tally.single for tally in tallies) > 50 and sum(tally.several for tally in tallies) > 5
    assert [(tally.named, tally.unnamed) for tally in tallies] == [(tally.single, tally.several) for tally in tallies]
