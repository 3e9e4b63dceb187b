"""The combinations of a grid: axes, ranges, products, names and settings."""

from __future__ import annotations

import itertools
import math
import re
import tracemalloc
from typing import Any

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import assume, given
from hypothesis import strategies as st

from runner.config import CONF
from runner.config.objects import ConfigError, build_settings
from runner.sweep.compose import Composer
from runner.sweep.grid import combinations
from runner.sweep.settings import Space
from tests.sweep.grids import overrides, points


def test_axes_multiply() -> None:
    assert overrides("a=1,2", "b=x", "c=range(1,3)") == ["a=1 b=x c=1", "a=1 b=x c=2", "a=2 b=x c=1", "a=2 b=x c=2"]


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)))
def test_there_are_as_many_as_the_product_of_the_axes(axes: dict[str, list[int]]) -> None:
    found = overrides(*(f"{key}={','.join(map(str, values))}" for key, values in axes.items()))
    assert len(found) == math.prod(len(values) for values in axes.values())


def test_duplicates_are_removed_and_the_first_one_stays() -> None:
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


def test_a_run_is_named_by_what_varies() -> None:
    first, *_ = points("retriever.k1=1,2", "retriever.b=0.3", "x.k=0,1", "y.k=2,3")
    assert first.name == "k1=1, x.k=0, y.k=2"
    assert first.swept == {"retriever.k1": "1", "x.k": "0", "y.k": "2"}
    assert [c.name for c in points("a=1")] == ["single combination"]


def test_swept_values_are_shown_without_quotes_and_escapes() -> None:
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


@pytest.mark.parametrize(
    ("axes", "place", "n"),
    [
        (["a=range(0,100000000)"], "a=range(0,100000000)", 100_000_000),
        (["a=range(0,1e300,0.5)"], "a=range(0,1e300,0.5)", 2 * 10**300),
        (["a=shuffle(range(0,200000,0.001))"], "a=shuffle(range(0,200000,0.001))", 200_000_000),
        ([f"{key}=range(1000)" for key in "abcd"], "sweep", 10**12),
    ],
)
def test_too_many_combinations_are_refused_before_any_is_built(axes: list[str], place: str, n: int) -> None:
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


def test_the_limit_of_combinations_can_be_raised_and_counts_what_is_drawn() -> None:
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
def test_a_setting_of_the_whole_sweep_is_not_an_axis(key: str) -> None:
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


@pytest.fixture
def composer() -> Any:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield Composer(GlobalHydra.instance().config_loader(), "evaluate", [])


def test_conditions_read_settings_that_are_not_axes_from_the_composed_config(composer: Composer) -> None:
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
        build_settings(Space, settings, "sweep")
    assert str(caught.value).startswith(message)
