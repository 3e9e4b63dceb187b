from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.trial import FixedTrial

from runner.config.objects import ConfigError
from runner.sweep.grid import combinations
from runner.sweep.products import products
from runner.sweep.settings import Space
from runner.sweep.space import UNION, SearchSpace, _Drawn


def space(*arguments: str, **settings: Any) -> SearchSpace:
    return SearchSpace(products(arguments, {}, Space(**settings)))


def drawn(of: SearchSpace, n: int = 60) -> list[tuple[str, ...]]:
    trial = _Drawn(random.Random(0))
    return [point.overrides for point in (of.point(trial) for _ in range(n)) if point is not None]


def at(of: SearchSpace, **values: Any) -> tuple[str, ...]:
    point = of.point(FixedTrial(values))
    assert point is not None
    return point.overrides


GRIDS: list[tuple[list[str], dict[str, Any]]] = [
    (["a=1,2,3", "b=x,y"], {}),
    (["a=range(0,1,0.25)", "b=3"], {}),
    (["a=1,2,3", "b=x,y,z"], {"zip": [["a", "b"]]}),
    (["a=1,2,3", "b=x,y"], {"when": {"b": "a == 2"}}),
    (["a=1,2,3", "b=0,1"], {"exclude": ["a > 2 and b == 1"]}),
    (["a=0.1,0.3,1"], {"union": [{"r": "bm25", "k": [1, 2]}, {"r": "dense"}, {"r": "x", "k": [2, 5]}]}),
    (["a='1',1,null,true,[1,2]"], {}),
]


@pytest.mark.parametrize(("arguments", "settings"), GRIDS)
def test_the_points_of_a_finite_space_are_the_combinations_of_its_grid(
    arguments: list[str], settings: dict[str, Any]
) -> None:
    grid = {c.overrides for c in combinations(arguments, {}, Space(**settings))}
    found = drawn(space(*arguments, **settings), 400)
    assert set(found) == grid


@given(st.integers(0, 2**32 - 1))
def test_a_number_of_an_interval_is_within_it_and_short(seed: int) -> None:
    of = space("a=interval(0.1,3)", "b=int(interval(2,9))", "c=tag(log,interval(1e-3,7.12345678))")
    point = of.point(_Drawn(random.Random(seed)))
    assert point is not None
    a, b, c = (override.partition("=")[2] for override in point.overrides)
    assert 0.1 <= float(a) <= 3
    assert len(a) <= 10
    assert b in map(str, range(2, 10))
    assert 1e-3 <= float(c) <= 7.12345678


def test_evenly_spaced_numbers_are_ordered_and_others_are_choices() -> None:
    of = space("a=range(0.1,0.5,0.1)", "b=1,3,5", "c=1,10,100", "d=3,2,1", "e=1,2")
    values = {"a": 0.30000000000000004, "b": 3, "c": "10", "d": "2", "e": "2"}
    assert at(of, **values) == ("a=0.3", "b=3", "c=10", "d=2", "e=2")


def test_axes_that_move_together_are_one_parameter() -> None:
    of = space("a=1,2", "b=x,y", zip=[["a", "b"]])
    assert at(of, **{"a and b": "2, y"}) == ("a=2", "b=y")


def test_products_share_a_parameter_that_they_agree_on_and_no_other() -> None:
    union = [{"r": "bm25", "k": [1, 2], "n": "interval(0,1)"}, {"r": "dense", "k": [1, 7], "n": "interval(0,1)"}]
    of = space(union=union)
    assert at(of, **{UNION: "r=bm25", "k": "2", "n": 0.5}) == ("r=bm25", "k=2", "n=0.5")
    assert at(of, **{UNION: "r=dense", "k (2)": "7", "n": 0.5}) == ("r=dense", "k=7", "n=0.5")
    assert of.axes == {"r": "bm25, dense", "k": "1, 2, 7", "n": "interval(0,1)"}


def test_what_a_point_stands_for_decides_the_identity() -> None:
    others = [
        space("a=1,2"),
        space("a=1,3"),
        space("a=1,2", "b=3"),
        space("a=1,2", exclude=["a == 2"]),
        space("a=1,2", include=["a == 2"]),
        space("a=1,2", "b=1,2", when={"b": "a == 1"}),
        space("a=1,2", "b=1,2"),
        space("a=interval(1,2)"),
        space("a=int(interval(1,2))"),
        space("a=tag(log,interval(1,2))"),
        space(union=[{"a": 1}, {"a": 2}]),
    ]
    assert len({of.identity for of in others}) == len(others)
    assert space("a=1,2", "sweep.output=out", "tracking.uri=x").identity == others[0].identity
    assert space("a=1,2", "b=3", "c=4").identity == space("c=4", "b=3", "a=1,2").identity


def test_probes_have_every_choice_and_both_ends_of_an_interval() -> None:
    of = space("a=x,y", "b=interval(0,2)", "c=1,2", when={"c": "a == y"}, exclude=["b == 2"])
    assert [" ".join(probe.overrides) for probe in of.probes(0)] == ["a=x b=0.0", "a=y b=0.0 c=1"]


def test_where_the_probes_are_excluded_one_is_drawn() -> None:
    of = space("a=interval(0,3)", exclude=["a == 0", "a == 3"])
    (probe,) = of.probes(0)
    assert 0 < float(probe.swept["a"]) < 3
    with pytest.raises(ConfigError, match=r"^sweep.include, sweep.exclude: the conditions exclude all"):
        space("a=interval(0,3)", exclude=["a >= 0"]).probes(0)


def test_a_space_has_axes() -> None:
    with pytest.raises(ConfigError, match="a search needs at least one axis"):
        space("a=1")
