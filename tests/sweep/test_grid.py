from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.config.objects import ConfigError
from runner.sweep.grid import combinations


def overrides(
    *arguments: str, params: dict[str, object] | None = None, union: list[dict[str, object]] | None = None
) -> list[str]:
    return [" ".join(c.overrides) for c in combinations(arguments, params or {}, union or [])]


def test_axes_multiply() -> None:
    assert overrides("a=1,2", "b=x", "c=range(1,3)") == ["a=1 b=x c=1", "a=1 b=x c=2", "a=2 b=x c=1", "a=2 b=x c=2"]


def test_a_run_is_named_by_what_varies() -> None:
    first, *_ = combinations(["retriever.k1=1,2", "retriever.b=0.3", "x.k=0,1", "y.k=2,3"], {}, [])
    assert first.name == "k1=1, x.k=0, y.k=2"
    assert first.swept == {"retriever.k1": "1", "x.k": "0", "y.k": "2"}


def test_products_stand_side_by_side_and_share_what_the_command_line_says() -> None:
    union = [{"retriever": "bm25", "k1": [1, 2]}, {"retriever": "dense", "encoder": ["a", "b"]}]
    found = combinations(["split=test"], {}, union)
    assert [c.name for c in found] == [
        "retriever=bm25, k1=1",
        "retriever=bm25, k1=2",
        "retriever=dense, encoder=a",
        "retriever=dense, encoder=b",
    ]
    assert all("split=test" in c.overrides for c in found)


def test_the_command_line_wins_over_a_preset() -> None:
    assert overrides("k1=5", params={"k1": "1,2", "b": [0.3, 0.4]}) == ["b=0.3 k1=5", "b=0.4 k1=5"]


def test_repetitions_are_removed() -> None:
    assert overrides("a=1,1,2", union=[{"b": 1}, {"b": 1}]) == ["b=1 a=1", "b=1 a=2"]


def test_lists_words_and_signs_are_written_as_hydra_reads_them() -> None:
    found = overrides("~gone", "+new=1,2", params={"w": [[0.1, 0.9], [1, 2]], "flag": [True, None]})
    assert found[0] == "w=[0.1,0.9] flag=True ~gone +new=1"
    assert len(found) == 8


def test_an_interval_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match=r"a=interval\(0,1\): an interval is no list of values; write range"):
        overrides("a=interval(0,1)")


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)))
def test_there_are_as_many_as_the_product_of_the_axes(axes: dict[str, list[int]]) -> None:
    expected = 1
    for values in axes.values():
        expected *= len(values)
    assert len(overrides(*(f"{key}={','.join(map(str, values))}" for key, values in axes.items()))) == expected
