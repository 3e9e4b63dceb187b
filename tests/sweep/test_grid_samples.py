"""Samples of a grid."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.sweep.grids import overrides


def test_a_sample_is_some_of_the_combinations_in_their_order() -> None:
    arguments = ("a=range(30)", "b=range(30)", "c=x,y")
    every = overrides(*arguments)
    drawn = overrides(*arguments, sample=50)
    assert len(drawn) == 50
    assert drawn == [each for each in every if each in set(drawn)]
    assert drawn == overrides(*arguments, sample=50)
    assert drawn != overrides(*arguments, sample=50, seed=1)


def test_a_sample_of_more_than_there_are_is_all_of_them() -> None:
    assert overrides("a=1,1,2", "b=3,4", sample=99) == overrides("a=1,2", "b=3,4")


def test_a_sample_of_very_many_needs_no_memory_for_them() -> None:
    arguments = [f"{key}=range(10)" for key in "abcdefghijklmnopqrst"]  # 10 to the 20
    tracemalloc.start()
    assert len(overrides(*arguments, sample=20, exclude="a < 5")) == 20
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6


def test_each_distinct_combination_is_as_likely_to_be_drawn() -> None:
    """An axis that applies to one of two retrievers makes 100 points of the other, which are one combination."""
    arguments = ("retriever=bm25,dense", "k1=range(10)", "b=range(10)")
    when = {"k1": "retriever == bm25", "b": "retriever == bm25"}
    drawn = Counter(o for seed in range(400) for o in overrides(*arguments, when=when, sample=5, seed=seed))
    assert drawn["retriever=dense"] < 40  # expected: 400 * 5 / 101, or 20


@given(st.integers(1, 40), st.integers(0, 99))
def test_a_sample_is_of_what_conditions_leave(sample: int, seed: int) -> None:
    arguments = ("r=x,y", "a=range(5)", "b=range(4)")
    conditions: dict[str, Any] = {"when": {"a": "r == x"}, "exclude": "a == 2"}
    every = overrides(*arguments, **conditions)
    drawn = overrides(*arguments, **conditions, sample=sample, seed=seed)
    assert drawn == [each for each in every if each in set(drawn)]
    assert len(drawn) == min(sample, len(every)) == len(set(drawn))
