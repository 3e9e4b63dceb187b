from __future__ import annotations

import itertools
import math
import re
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import assume, given
from hypothesis import strategies as st

from runner.config import CONF
from runner.config.objects import ConfigError, build
from runner.sweep.compose import Composer
from runner.sweep.grid import combinations
from runner.sweep.products import Combination
from runner.sweep.settings import Space


def points(*arguments: str, params: dict[str, Any] | None = None, **space: Any) -> list[Combination]:
    return combinations(arguments, params or {}, Space(**space))


def overrides(*arguments: str, params: dict[str, Any] | None = None, **space: Any) -> list[str]:
    return [" ".join(c.overrides) for c in points(*arguments, params=params, **space)]


def test_axes_multiply() -> None:
    assert overrides("a=1,2", "b=x", "c=range(1,3)") == ["a=1 b=x c=1", "a=1 b=x c=2", "a=2 b=x c=1", "a=2 b=x c=2"]


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)))
def test_there_are_as_many_as_the_product_of_the_axes(axes: dict[str, list[int]]) -> None:
    found = overrides(*(f"{key}={','.join(map(str, values))}" for key, values in axes.items()))
    assert len(found) == math.prod(len(values) for values in axes.values())


def test_repetitions_are_removed_and_the_first_is_kept() -> None:
    assert overrides("a=1,1,2", union=[{"b": 1}, {"b": 1}]) == ["b=1 a=1", "b=1 a=2"]
    assert overrides(union=[{"a": [1, 2], "b": 1}, {"b": 1, "a": [3, 2]}]) == ["a=1 b=1", "a=2 b=1", "b=1 a=3"]


def test_an_interval_is_refused_with_the_way_out() -> None:
    with pytest.raises(
        ConfigError, match=r"^a=interval\(0,1\): a grid needs a list of values, not an interval; write range"
    ):
        overrides("a=interval(0,1)")


def test_glob_stands_for_the_choices_of_its_group() -> None:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        found = combinations(["retriever=glob(*bm25)"], {}, Space(), loader)
    assert [c.name for c in found] == ["retriever=bm25", "retriever=rank_bm25"]


# Names


def test_a_run_is_named_by_what_varies() -> None:
    first, *_ = points("retriever.k1=1,2", "retriever.b=0.3", "x.k=0,1", "y.k=2,3")
    assert first.name == "k1=1, x.k=0, y.k=2"
    assert first.swept == {"retriever.k1": "1", "x.k": "0", "y.k": "2"}
    assert [c.name for c in points("a=1")] == ["single combination"]


def test_what_varies_is_told_without_quotes_and_escapes() -> None:
    first, *_ = points("a='it is','b'", "b=x\\,y,z", "c=['p,q',r],[]", "d=null,true")
    assert first.swept == {"a": "it is", "b": "x,y", "c": "[p,q,r]", "d": "null"}


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("range(0.1,0.6,0.1)", "0.1 0.2 0.3 0.4 0.5"),
        ("range(0.3,1.0,0.1)", "0.3 0.4 0.5 0.6 0.7 0.8 0.9"),
        ("range(1.1,0.7,-0.1)", "1.1 1.0 0.9 0.8"),
        ("range(0,1,0.25)", "0.0 0.25 0.5 0.75"),
        ("range(-0.2,0.3,0.2)", "-0.2 0.0 0.2"),
        ("range(1e-4,4e-4,1e-4)", "0.0001 0.0002 0.0003"),
        ("sort(range(0.1,0.4,0.1),reverse=true)", "0.3 0.2 0.1"),
        ("float(range(1,3))", "1.0 2.0"),
        ("range(3,0,-1)", "3 2 1"),
        ("range(3)", "0 1 2"),
    ],
)
def test_a_range_has_the_numbers_that_it_is_written_with(written: str, names: str) -> None:
    found = points(f"a={written}")
    assert [c.swept["a"] for c in found] == names.split()
    assert [c.overrides for c in found] == [(f"a={number}",) for number in names.split()]


@given(st.integers(-50, 50), st.integers(1, 40), st.integers(1, 30), st.integers(0, 4))
def test_a_range_ends_before_its_end_whatever_its_decimals(start: int, step: int, count: int, places: int) -> None:
    a, b, c = (f"{number / 10**places:.{places}f}" for number in (start, start + step * count, step))
    expected = [round((start + step * i) / 10**places, places) for i in range(count)]
    assert [float(c.swept["a"]) for c in points(f"a=range({a},{b},{c})")] == expected


def test_all_numbers_of_a_small_grid_stay_short() -> None:
    assert max(len(c.name) for c in points("a=range(0.1,4,0.1)", "b=range(0.05,1,0.05)")) == len("a=0.1, b=0.05")


def test_a_range_that_goes_nowhere_is_refused() -> None:
    for written in ("range(1,2,0)", "range(1.5,2,0.0)"):
        with pytest.raises(ConfigError, match="a range cannot have a step of 0"):
            points(f"a={written}")


def test_shuffled_values_have_an_order_of_their_seed() -> None:
    numbers = [f"a={i}" for i in range(20)]
    first, second = overrides("a=shuffle(range(20))"), overrides("a=shuffle(range(20))", seed=1)
    assert first == overrides("a=shuffle(range(20))")
    assert sorted(first) == sorted(second) == sorted(numbers)
    assert len({tuple(numbers), tuple(first), tuple(second)}) == 3


# YAML


@pytest.mark.parametrize(
    ("axes", "place", "n"),
    [
        (["a=range(0,100000000)"], "a=range(0,100000000)", 100_000_000),
        (["a=range(0,1e300,0.5)"], "a=range(0,1e300,0.5)", 2 * 10**300),
        (["a=shuffle(range(0,200000,0.001))"], "a=shuffle(range(0,200000,0.001))", 200_000_000),
        ([f"{key}=range(1000)" for key in "abcd"], "sweep", 10**12),
    ],
)
def test_too_many_combinations_are_refused_before_any_is_made(axes: list[str], place: str, n: int) -> None:
    said = f"{place}: {n:,} {'combinations' if place == 'sweep' else 'values'} exceed sweep.max_combinations=10000; "
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError, match=re.escape(said)) as refusal:
            points(*axes)
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
    assert f"raise the limit with sweep.max_combinations={n}" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_the_limit_of_combinations_can_be_raised_and_does_not_count_what_is_not_drawn() -> None:
    assert len(points("a=range(200)", "b=range(60)", max_combinations=12_000)) == 12_000
    assert len(points("a=range(1000)", "b=range(1000)", sample=3)) == 3
    with pytest.raises(ConfigError, match="sweep: 6 combinations"):
        points("a=range(3)", "b=range(2)", max_combinations=5)


@pytest.mark.parametrize("axes", [{"a": "range(1,0)"}, {"a": "range(1.0,1.0,0.1)"}, {"a": []}])
def test_an_axis_without_a_value_is_refused(axes: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"^a=.*: an axis needs at least one value$"):
        overrides(params=axes)


@given(
    st.lists(st.text() | st.sampled_from(["a, b", "x  ", "it's", "a=b", "[x]", "1", "null", "\\'", "a\\"]), min_size=1)
)
def test_a_string_in_a_list_comes_through_as_it_is(texts: list[str]) -> None:
    texts = list(dict.fromkeys(texts))
    parser = OverridesParser.create()
    found = points(union=[{"a": texts, "b": [[*texts]]}])
    assert [c.swept["a"] for c in found] == texts
    for text, combination in zip(texts, found, strict=True):
        assert [parser.parse_override(o).value() for o in combination.overrides] == [text, texts]


def test_a_string_that_stands_alone_is_override_syntax() -> None:
    assert overrides(params={"a": "0.6,0.9"}) == ["a=0.6", "a=0.9"]
    assert overrides(union=[{"a": "range(1,3)"}]) == ["a=1", "a=2"]


def test_lists_words_and_signs_are_written_as_hydra_reads_them() -> None:
    found = overrides("~gone", "+new=1,2", params={"w": [[0.1, 0.9], [1, 2]], "flag": [True, None]})
    assert found[0] == "w=[0.1,0.9] flag=True ~gone +new=1"
    assert len(found) == 8


@pytest.mark.parametrize("key", ["tracking.uri", "tracking", "store.path", "sweep.name", "++plugins", "x@store.y"])
def test_what_a_sweep_has_one_of_is_no_axis(key: str) -> None:
    for given_as in ({"union": [{key: "x"}]}, {"params": {key: "x"}}, {"union": [{key: ["x"]}]}):
        with pytest.raises(ConfigError, match="applies to the whole sweep"):
            overrides(**given_as)
    with pytest.raises(ConfigError, match="applies to the whole sweep"):
        overrides(f"{key}=x,y")
    assert overrides(f"{key}=x") == [f"{key}=x"]


@pytest.mark.parametrize("written", ["a,b", "choice(a,b)"])
def test_several_presets_are_no_axis_but_one_sweep(written: str) -> None:
    with pytest.raises(ConfigError, match=r"sweep one at a time, or combine them with 'experiment=\[a,b\]'"):
        overrides(f"experiment={written}")


# Keys given twice


def test_the_command_line_wins_over_a_preset() -> None:
    assert overrides("k1=5", params={"k1": "1,2", "b": [0.3, 0.4]}) == ["b=0.3 k1=5", "b=0.4 k1=5"]


def test_a_product_wins_over_params_and_the_last_word_over_those_before() -> None:
    assert overrides("b=3", "b=4,5", params={"a": 1}, union=[{"a": [2, 3]}]) == [
        "a=2 b=4",
        "a=2 b=5",
        "a=3 b=4",
        "a=3 b=5",
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("a=1,2", "++a=5", "++a=5"),
        ("++a=1,2", "a=5", "++a=5"),
        ("+a=1,2", "a=5", "+a=5"),
        ("a=1,2", "~a", "~a"),
        ("~a", "+a=5", "+a=5"),
        ("~a", "a=5", "a=5"),
        ("+g@a.b=x,y", "g@a.b=z", "+g@a.b=z"),
    ],
)
def test_a_key_with_another_sign_is_the_same_key(before: str, after: str, told: str) -> None:
    assert overrides(before, after) == [told]


# Products side by side


def test_products_stand_side_by_side_and_share_what_the_command_line_says() -> None:
    union = [{"retriever": "bm25", "k1": [1, 2]}, {"retriever": "dense", "encoder": ["a", "b"]}]
    found = points("split=test", "depth=5,6", union=union)
    assert [c.name for c in found[::2]] == [
        "retriever=bm25, k1=1, depth=5",
        "retriever=bm25, k1=2, depth=5",
        "retriever=dense, encoder=a, depth=5",
        "retriever=dense, encoder=b, depth=5",
    ]
    assert len(found) == 8
    assert all("split=test" in c.overrides for c in found)


def test_products_may_have_names_and_a_name_may_have_several() -> None:
    named = {"x": {"a": [1, 2]}, "gone": None, "y": [{"a": 3}, {"a": 4}]}
    assert overrides(union=named) == overrides(union=[{"a": [1, 2]}, {"a": 3}, {"a": 4}])
    assert overrides(union=None) == [""]


def test_what_a_product_fixes_is_in_the_name_only_if_another_does_not() -> None:
    grid, models = {"retriever": "bm25", "k1": [1]}, {"retriever": "dense", "encoder": ["a"]}
    assert [c.name for c in points(union=[grid])] == ["k1=1"]
    assert [c.name for c in points(union=[grid, models])] == ["retriever=bm25, k1=1", "retriever=dense, encoder=a"]
    assert [c.name for c in points(union=[{"m": "x", "a": 1}, {"m": "x", "b": 1}])] == ["a=1", "b=1"]
    assert [c.name for c in points(params={"k1": 1}, union=[{"a": [2]}, {"k1": 2}])] == ["k1=1, a=2", "k1=2"]


# Axes that move together


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


# Axes that apply only to some choices


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


def test_a_condition_may_read_an_axis_that_has_one_itself_and_is_null_where_it_is_left_out() -> None:
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


# What is kept


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


@pytest.fixture
def composer() -> Any:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield Composer(GlobalHydra.instance().config_loader(), "evaluate", [])


def test_what_is_no_axis_is_read_from_what_the_choices_make(composer: Composer) -> None:
    space = Space(
        when={"retriever.parts.lexical.k1": "retriever.parts.lexical._target_ != null"},
        exclude=["retriever.k1 == 1.5 or analyzer != english"],
    )
    arguments = ["retriever=bm25,rank_bm25,hybrid", "retriever.parts.lexical.k1=1,2", "encoder=lsa"]
    with pytest.raises(ConfigError, match=r"retriever\.parts\.lexical\._target_: no such setting"):
        combinations(arguments, {}, space, lookup=composer.value)
    space = Space(
        when={"retriever.parts.lexical.k1": "retriever == hybrid"}, exclude=["encoder.seed == 0 and analyzer == x"]
    )
    assert len(combinations(arguments, {}, space, lookup=composer.value)) == 4
    space = Space(exclude=["retriever.k1 > 1 and analyzer == english"])
    found = combinations(["retriever=bm25,rank_bm25"], {}, space, lookup=composer.value)
    assert [c.name for c in found] == ["retriever=bm25"]
    with pytest.raises(
        ConfigError, match=r"^sweep\.exclude: retriever\.k3 > 1: retriever\.k3: no such setting; did you"
    ):
        combinations(["retriever=bm25,rank_bm25"], {}, Space(exclude=["retriever.k3 > 1"]), lookup=composer.value)


# Samples


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


# Everything at once, against the plainest way to say it


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.lists(st.sampled_from("xy"), min_size=1, max_size=2),
    st.booleans(),
    st.integers(0, 3),
)
def test_a_grid_is_the_product_with_what_conditions_say_done_to_each_point(
    a: list[int], b: list[int], c: list[str], together: bool, limit: int
) -> None:
    together = together and len(a) == len(b)
    arguments = (f"a=choice({','.join(map(str, a))})", f"b=choice({','.join(map(str, b))})", f"c=choice({','.join(c)})")
    expected: dict[str, None] = {}
    for (x, y), z in itertools.product(zip(a, b, strict=True) if together else itertools.product(a, b), c):
        kept = [f"a={x}", *([f"b={y}"] if z == "x" else []), f"c={z}"]
        if not (x == limit or (z == "x" and y > limit + 1)):
            expected[" ".join(kept)] = None
    assume(expected)
    groups = [["a", "b"]] if together else None
    assert overrides(*arguments, zip=groups, when={"b": "c == x"}, exclude=f"a == {limit} or b > {limit} + 1") == list(
        expected
    )


# Mistakes in the settings themselves


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sample": 0}, "sweep.sample=0: should be greater than or equal to 1"),
        ({"union": 5}, "sweep.union=5: should be a list"),
        ({"union": {"retriever": "bm25"}}, "sweep.union.0=bm25: should be a valid dictionary"),
        ({"zip": 5}, "sweep.zip=5: should be a list"),
        ({"when": ["a == 1"]}, "sweep.when"),
        ({"exclude": 5}, "sweep.exclude=5: should be a list"),
        ({"seed": "x"}, "sweep.seed=x: should be a valid integer"),
        ({"exlude": "a"}, "sweep.exlude: no such setting; did you mean sweep.exclude?"),
    ],
)
def test_a_mistake_in_the_settings_is_said_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build({"_target_": "runner.sweep.settings.Space", **settings}, "sweep")
    assert str(caught.value).startswith(message)
