from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.config.objects import ConfigError
from runner.sweep.axes import Interval, Value
from runner.sweep.products import Combination, Dimension, Product, products
from runner.sweep.settings import Space


def product(*arguments: str, **space: Any) -> Product:
    (only,) = products(arguments, {}, Space(**space))
    return only


def drawn(generator: random.Random, dimension: Dimension) -> Sequence[Value]:
    """Return values for a dimension, as a search that knows nothing would."""
    (axis, *_) = dimension.axes
    if axis.interval is None:
        return generator.choice(dimension.points)
    low, high = axis.interval.low, axis.interval.high
    return [
        axis.value(generator.randint(int(low), int(high)) if axis.interval.integer else generator.uniform(low, high))
    ]


@pytest.mark.parametrize(
    ("written", "interval"),
    [
        ("interval(0.1,4)", Interval(0.1, 4.0, log=False, integer=False)),
        ("tag(log,interval(0.1,4))", Interval(0.1, 4.0, log=True, integer=False)),
        ("int(interval(1,100))", Interval(1, 100, log=False, integer=True)),
        ("tag(log,int(interval(1,100)))", Interval(1, 100, log=True, integer=True)),
        ("int(tag(log,interval(1,100)))", Interval(1, 100, log=True, integer=True)),
    ],
)
def test_an_interval_has_ends_and_says_how_it_is_searched(written: str, interval: Interval) -> None:
    (axis,) = product(f"a={written}").axes
    assert axis.interval == interval
    assert axis.varies
    assert axis.values == ()
    assert axis.value(2).override == "a=2"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("interval(4,1)", "a=interval(4,1): an interval needs two bounds, the lower one first"),
        (
            "tag(log,interval(0,1))",
            "a=tag(log,interval(0,1)): an interval needs two bounds above 0, the lower one first",
        ),
        ("tag(lgo,interval(1,2))", "a=tag(lgo,interval(1,2)): unknown tag lgo; an interval supports only log"),
    ],
)
def test_an_interval_that_cannot_be_searched_is_refused(written: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        product(f"a={written}")
    assert str(caught.value) == message


def test_an_interval_moves_alone() -> None:
    for arguments in (("a=interval(0,1)", "b=1,2"), ("b=1,2", "a=interval(0,1)")):
        with pytest.raises(
            ConfigError,
            match=r"^sweep\.zip: a=interval\(0,1\): an interval cannot be zipped with other axes; write its values$",
        ):
            product(*arguments, zip=["a", "b"])


def test_axes_know_their_values_as_they_are() -> None:
    k1, retriever, names, fixed = product("k1=range(0.1,0.4,0.1)", "+r=bm25,'a b'", "n=[1,x],null", "f=7").axes
    assert [value.plain for value in k1.values] == [0.1, 0.2, 0.3]
    assert [(value.override, value.plain, value.shown) for value in retriever.values] == [
        ("+r=bm25", "bm25", "bm25"),
        ("+r='a b'", "a b", "a b"),
    ]
    assert [value.plain for value in names.values] == [[1, "x"], None]
    assert [value.plain for value in fixed.values] == [7]
    assert (retriever.name, retriever.key, fixed.varies) == ("r", "+r", False)


def test_a_search_asks_only_for_what_applies() -> None:
    searched = product(
        "retriever=bm25,hybrid",
        "retriever.k1=interval(0.5,2)",
        "retriever.alpha=interval(0,1)",
        "dataset=beir",
        when={"retriever.k1": "retriever == bm25", "retriever.alpha": "retriever == hybrid"},
    )
    for position, applies in ((0, "retriever.k1"), (1, "retriever.alpha")):
        asked: list[str] = []

        def choose(dimension: Dimension, position: int = position, asked: list[str] = asked) -> Sequence[Value]:
            (axis,) = dimension.axes
            asked.append(axis.name)
            return [axis.value(0.75)] if axis.interval else dimension.points[min(position, len(dimension.points) - 1)]

        found = searched.combination(searched.apply(choose))
        name = ["bm25", "hybrid"][position]
        assert found == Combination(
            (f"retriever={name}", f"{applies}=0.75", "dataset=beir"), {"retriever": name, applies: "0.75"}
        )
        assert sorted(asked) == sorted(["retriever", "dataset", applies])


@given(st.integers(0, 10**6))
def test_drawn_values_are_within_bounds_and_filtered_by_the_conditions(seed: int) -> None:
    searched = product(
        "a=tag(log,interval(0.1,4))", "n=int(interval(1,9))", "x=p,q", "y=1,2",
        zip=["x", "y"], when={"n": "x == p"}, exclude="a > 2",
    )  # fmt: skip
    generator = random.Random(seed)
    applied = searched.apply(lambda dimension: drawn(generator, dimension))
    assert 0.1 <= applied["a"].plain <= 4
    assert (applied["x"].plain, applied["y"].plain) in [("p", 1), ("q", 2)]
    assert ("n" in applied) == (applied["x"].plain == "p")
    found = searched.combination(applied)
    assert (found is None) == (applied["a"].plain > 2)
    if found:
        assert [override.partition("=")[0] for override in found.overrides] == list(applied)


def test_each_product_has_axes_and_conditions_of_its_own() -> None:
    union = {"grid": {"retriever": "bm25", "k1": [1, 2]}, "models": {"retriever": "dense", "encoder": ["x", "y"]}}
    grid, models = products(["depth=5"], {}, Space(union=union, when={"k1": "retriever == bm25"}))
    assert [axis.name for axis in grid.axes] == ["retriever", "k1", "depth"]
    assert [axis.name for axis in models.axes] == ["retriever", "encoder", "depth"]
    assert [axis.varies for axis in grid.axes] == [True, True, False]
    assert [axis.condition is not None for axis in grid.axes] == [False, True, False]
    assert [len(dimension.points) for dimension in models.dimensions] == [1, 2, 1]
