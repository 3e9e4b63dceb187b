from __future__ import annotations

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from runner.config import CONF
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


def test_glob_stands_for_the_choices_of_its_group() -> None:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        found = combinations(["retriever=glob(*bm25)"], {}, [], loader)
    assert [c.name for c in found] == ["retriever=bm25", "retriever=rank_bm25"]


@pytest.mark.parametrize("params", [{"a": "range(1,0)"}, {"a": "range(1.0,1.0,0.1)"}, {"a": []}])
def test_an_axis_without_a_value_is_refused(params: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"^a=.*: an axis without a value$"):
        overrides(params=params)


@given(
    st.lists(st.text() | st.sampled_from(["a, b", "x  ", "it's", "a=b", "[x]", "1", "null", "\\'", "a\\"]), min_size=1)
)
def test_a_string_in_a_list_comes_through_as_it_is(texts: list[str]) -> None:
    texts = list(dict.fromkeys(texts))
    parser = OverridesParser.create()
    found = combinations([], {}, [{"a": texts, "b": [[*texts]]}])
    assert [c.swept["a"] for c in found] == texts
    for text, combination in zip(texts, found, strict=True):
        assert [parser.parse_override(o).value() for o in combination.overrides] == [text, texts]


def test_a_string_that_stands_alone_is_override_syntax() -> None:
    assert overrides(params={"a": "0.6,0.9"}) == ["a=0.6", "a=0.9"]
    assert overrides(union=[{"a": "range(1,3)"}]) == ["a=1", "a=2"]


def test_what_varies_is_told_without_quotes_and_escapes() -> None:
    first, *_ = combinations(["a='it is','b'", "b=x\\,y,z", "c=['p,q',r],[]", "d=null,true"], {}, [])
    assert first.swept == {"a": "it is", "b": "x,y", "c": "[p,q,r]", "d": "null"}


@pytest.mark.parametrize("key", ["tracking.uri", "tracking", "store.path", "sweep.name", "++plugins", "x@store.y"])
def test_what_a_sweep_has_one_of_is_no_axis(key: str) -> None:
    for given_as in ({"union": [{key: "x"}]}, {"params": {key: "x"}}):
        with pytest.raises(ConfigError, match="is one for the whole sweep"):
            overrides(**given_as)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="is one for the whole sweep"):
        overrides(f"{key}=x,y")
    assert overrides(f"{key}=x") == [f"{key}=x"]


def test_several_presets_are_no_axis() -> None:
    with pytest.raises(ConfigError, match="experiment=a,b: one experiment at a time"):
        overrides("experiment=a,b")


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)))
def test_there_are_as_many_as_the_product_of_the_axes(axes: dict[str, list[int]]) -> None:
    expected = 1
    for values in axes.values():
        expected *= len(values)
    assert len(overrides(*(f"{key}={','.join(map(str, values))}" for key, values in axes.items()))) == expected
