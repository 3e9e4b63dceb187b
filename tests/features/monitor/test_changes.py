"""The parts of a change add up to it, and distances of windows are in units of those of the baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.monitor.changes import explain_fall, measure_drift
from runner.features.monitor.windows import QueryRecord, WindowRecord

EMPTY = WindowRecord(
    start="2026-01-05T00:00+00:00", end="2026-01-12T00:00+00:00", judgments="", searches=100, recorded=0, empty=0,
    failed=0, users=0, hits=0, unjudged=0, quality=None, answered=None, slices={}, latency={}, queries={}, words={},
    scores=[], releases={},
)  # fmt: skip


def window(queries: Mapping[str, QueryRecord]) -> WindowRecord:
    return replace(EMPTY, queries=queries)


def mean(records: Mapping[str, QueryRecord]) -> float:
    return sum(r.searches * r.mean for r in records.values()) / sum(r.searches for r in records.values())


def test_each_part_of_a_change_is_found_alone() -> None:
    before = {"a": QueryRecord(2, 0.8, ["d1", "d2"]), "b": QueryRecord(2, 0.4, [])}
    worse = explain_fall([window(before)], [window({**before, "a": QueryRecord(2, 0.6, ["d2"])})])
    assert worse is not None
    assert list(worse.parts.values()) == pytest.approx([-0.1, 0, 0, 0])
    (change,) = worse.queries
    assert (change.query, change.before, change.after) == ("a", 2, 2)
    assert change.contribution == pytest.approx(-0.1)
    assert worse.gone == {"d1": 1}
    other = explain_fall([window(before)], [window({"a": QueryRecord(1, 0.8, []), "b": QueryRecord(3, 0.4, [])})])
    assert other is not None
    assert list(other.parts.values()) == pytest.approx([0, -0.1, 0, 0])
    new = explain_fall([window({"a": before["a"]})], [window(before)])
    assert new is not None
    assert new.parts["the same queries, other results"] == 0
    assert new.parts["new queries"] == pytest.approx(-0.15)  # half of the searches, 0.3 below the mean of both means


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from("abcdef"),
            st.builds(QueryRecord, st.integers(1, 9), st.floats(0, 1), st.just(())),
            min_size=1,
        ),
        min_size=2,
        max_size=2,
    )
)
def test_the_parts_add_up_to_the_change(sides: list[dict[str, QueryRecord]]) -> None:
    before, after = sides
    fall = explain_fall([window(before)], [window(after)])
    assert fall is not None
    assert sum(fall.parts.values()) == pytest.approx(mean(after) - mean(before), abs=1e-12)


def test_windows_together_have_the_mean_of_all_their_searches() -> None:
    first, second = {"a": QueryRecord(1, 1.0, ["x"])}, {"a": QueryRecord(3, 0.2, ["y"])}
    fall = explain_fall([window(first), window(second)], [window({"a": QueryRecord(1, 0.1, ["y"])})])
    assert fall is not None
    assert fall.before == pytest.approx(0.4)
    assert fall.gone == {"x": 1}


def test_nothing_is_explained_without_judged_searches_on_both_sides() -> None:
    assert explain_fall([EMPTY], [window({"a": QueryRecord(1, 1.0, [])})]) is None


def test_drift_is_the_distance_in_units_of_those_of_the_baseline() -> None:
    rng = np.random.default_rng(0)

    def draw(names: str, centre: float) -> WindowRecord:
        words = dict(zip(names, rng.multinomial(200, [1 / len(names)] * len(names)).tolist(), strict=True))
        return replace(
            EMPTY, words=words, scores=np.quantile(rng.normal(centre, 1, 300), np.linspace(0, 1, 21)).tolist()
        )

    baseline = [draw("abcde", 5) for _ in range(8)]
    same, other = measure_drift(baseline, draw("abcde", 5)), measure_drift(baseline, draw("abxyz", 9))
    assert 0.3 < same.queries < 2
    assert 0.3 < same.scores < 2
    assert other.queries > 5
    assert other.scores > 5


def test_drift_is_unknown_without_words_and_scores() -> None:
    drift = measure_drift([EMPTY] * 3, EMPTY)
    assert math.isnan(drift.queries)
    assert math.isnan(drift.scores)
