"""Which points of a grid are left out: axes that move together, conditions, exclusions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

from runner.config import CONF
from runner.config.objects import ConfigError
from runner.sweep.grid import combinations
from runner.sweep.settings import Space
from tests.sweep.grids import overrides, points


def test_zipped_axes_move_together() -> None:
    expected = ["a=1 x=8 b=3", "a=1 x=9 b=3", "a=2 x=8 b=4", "a=2 x=9 b=4"]
    for groups in ([["a", "b"]], {"pair": ["a", "b"]}, ["a", "b"], {"pair": ["b", "a"], "gone": None}):
        assert overrides("a=1,2", "x=8,9", "b=3,4", zip=groups) == expected
    assert overrides("a=1,1,2", "b=3,3,3", "+c=x,y", "d=p,q", zip=[["a", "b"], ["c", "d"]]) == [
        "a=1 b=3 +c=x d=p",
        "a=1 b=3 +c=y d=q",
        "a=2 b=3 +c=x d=p",
        "a=2 b=3 +c=y d=q",
    ]


def test_what_has_one_value_moves_with_none() -> None:
    assert overrides("b=5", params={"a": [1, 2], "b": [3, 4]}, zip=[["a", "b"]]) == ["a=1 b=5", "a=2 b=5"]
    assert overrides(union=[{"a": [1, 2], "b": [3, 4]}, {"a": [7, 8]}], zip=[["a", "b"]]) == [
        "a=1 b=3",
        "a=2 b=4",
        "a=7",
        "a=8",
    ]


@pytest.mark.parametrize(
    ("arguments", "groups", "message"),
    [
        (["a=1,2", "b=3,4,5"], [["a", "b"]], "sweep.zip: a has 2 values, but b has 3; zipped axes need"),
        (
            ["retriever.k1=1,2", "b=3"],
            [["retriever.k2", "b"]],
            "sweep.zip: retriever.k2: not an axis of this sweep; did yo",
        ),
        (["a=1,2", "b=3,4", "c=5,6"], [["a", "b"], ["c", "a"]], "sweep.zip: a: occurs more than once"),
    ],
)
def test_what_cannot_move_together_is_said_in_one_line(
    arguments: Sequence[str], groups: list[list[str]], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        overrides(*arguments, zip=groups)
    assert str(caught.value).startswith(message)


def test_an_axis_is_left_out_where_its_condition_is_false() -> None:
    found = points(
        "retriever=bm25,dense,hybrid",
        "retriever.k1=1,2",
        "encoder=x,y",
        when={"retriever.k1": "retriever == bm25", "encoder": "retriever in [dense, hybrid]"},
    )
    assert [c.name for c in found] == [
        "retriever=bm25, k1=1",
        "retriever=bm25, k1=2",
        "retriever=dense, encoder=x",
        "retriever=dense, encoder=y",
        "retriever=hybrid, encoder=x",
        "retriever=hybrid, encoder=y",
    ]


def test_a_condition_may_read_an_axis_that_has_a_condition() -> None:
    when = {"dimensions": "encoder == lsa", "encoder": "retriever == dense", "k1": "encoder == null"}
    assert overrides("dimensions=8,9", "k1=1,2", "encoder=minilm,lsa", "retriever=bm25,dense", when=when) == [
        "k1=1 retriever=bm25",
        "encoder=minilm retriever=dense",
        "dimensions=8 encoder=lsa retriever=dense",
        "k1=2 retriever=bm25",
        "dimensions=9 encoder=lsa retriever=dense",
    ]


def test_what_has_one_value_may_have_a_condition_too() -> None:
    found = points("retriever=bm25,hybrid", "retriever.alpha=0.5", when={"retriever.alpha": "retriever == hybrid"})
    assert [c.overrides for c in found] == [("retriever=bm25",), ("retriever=hybrid", "retriever.alpha=0.5")]


def test_axes_that_move_together_need_not_all_apply() -> None:
    arguments = ("retriever=bm25,hybrid,bm25,hybrid", "k1=1,2,1,2", "alpha=3,4,5,6")
    found = overrides(*arguments, zip=["retriever", "k1", "alpha"], when={"alpha": "retriever == hybrid"})
    assert found == ["retriever=bm25 k1=1", "retriever=hybrid k1=2 alpha=4", "retriever=hybrid k1=2 alpha=6"]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("retriever == bm52", "no retriever bm52; did you mean bm25?"),
        ("k1 == 1 or not retriever in [dense, hybird]", "no retriever hybird; did you mean hybrid?"),
        ("retriever != 'bm52'", "no retriever bm52"),
        ("retriever@retriever.parts.lexical == sqlite", "no retriever@retriever.parts.lexical sqlite; did you mean sq"),
    ],
)
def test_a_condition_on_a_choice_that_there_is_not_is_refused(condition: str, message: str) -> None:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        for space in (Space(when={"k1": condition}), Space(include=[condition]), Space(exclude=[condition])):
            with pytest.raises(ConfigError, match=re.escape(message)):
                combinations(["retriever=bm25,dense", "k1=1,2"], {}, space, loader)


def test_a_condition_may_be_on_a_choice_that_this_sweep_does_not_make() -> None:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        space = Space(when={"k1": "retriever in [bm25, dense]"}, exclude=["retriever == dense or k1 == medium"])
        assert len(combinations(["retriever=bm25", "k1=1,2"], {}, space, loader)) == 2


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ({"retriever.k2": "a == 1"}, "sweep.when: retriever.k2: not an axis of this sweep; did you mean retriever.k1?"),
        ({"a": "b == 1", "b": "retriever.k1 == 1", "retriever.k1": "a == 1"}, "depend on each other"),
        ({"a": "a == 1"}, "sweep.when: a <- a: these conditions depend on each other in a circle"),
        ({"a": "b = 1"}, "sweep.when.a: b = 1: invalid condition ("),
        ({"a": "c == 1"}, "sweep.when.a: c == 1: c: not an axis of this sweep; choose a, b or retriever.k1"),
    ],
)
def test_a_condition_that_makes_no_sense_is_said_in_one_line(when: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        overrides("a=1,2", "b=1,2", "retriever.k1=1,2", when=when)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "expression", ["a > 1 and b < 4", ["a > 1 and b < 4"], {"few": "a > 1 and b < 4", "gone": None}]
)
def test_an_exclude_drops_and_an_include_keeps(expression: Any) -> None:
    every = ["a=1 b=3", "a=1 b=4", "a=2 b=3", "a=2 b=4"]
    assert overrides("a=1,2", "b=3,4", exclude=expression) == [each for each in every if each != "a=2 b=3"]
    assert overrides("a=1,2", "b=3,4", include=expression) == ["a=2 b=3"]


def test_one_include_is_enough_to_keep_and_one_exclude_to_drop() -> None:
    assert overrides("a=range(6)", include=["a < 2", "a > 3"], exclude={"x": "a == 0", "y": "a == 5"}) == ["a=1", "a=4"]


def test_conditions_read_signs_away_and_values_as_they_are() -> None:
    found = overrides("+g@a.b=x,'y z'", "+n=[1,2],3", "~gone", exclude=["g@a.b == 'y z'", "n == [1, 2]"])
    assert found == ["+g@a.b=x +n=3 ~gone"]


def test_an_axis_of_another_product_is_null() -> None:
    union = [{"retriever": "bm25", "k1": [1, 2]}, {"retriever": "dense"}]
    assert overrides(union=union, exclude="k1 > 1") == ["retriever=bm25 k1=1", "retriever=dense"]
    assert overrides(union=union, include="k1 == null") == ["retriever=dense"]


def test_a_sweep_of_nothing_is_refused() -> None:
    with pytest.raises(
        ConfigError,
        match=r"^sweep\.include, sweep\.exclude: the conditions exclude all 1,000 combinations; relax them$",
    ):
        overrides("a=range(1000)", include="a > 1 and a < 0")
