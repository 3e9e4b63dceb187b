"""Long JSON is written a piece at a time, and is the JSON that it would be as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.long_json import Lazy, iter_indented
from runner.features.traces.measures.stages import round_numbers
from tests.strategies.json_values import EXACT_JSON, json_objects


def lazily(value: Any) -> Any:
    """Return JSON whose lists are lazy, but for those that lie within another."""
    if isinstance(value, dict):
        return {key: lazily(each) for key, each in value.items()}
    return Lazy(lambda: iter(value)) if isinstance(value, list) else value


@given(json_objects(EXACT_JSON), st.text(), st.lists(EXACT_JSON, max_size=3))
def test_the_bytes_are_those_of_the_whole(content: dict[str, Any], name: str, elements: list[Any]) -> None:
    whole = orjson.dumps({**content, name: elements}, option=orjson.OPT_INDENT_2)
    assert b"".join(iter_indented(content, name, elements)) == whole
    assert b"".join(iter_indented(lazily(content), name, iter(elements))) == whole


def test_an_element_is_made_when_its_turn_comes() -> None:
    made = []

    def elements() -> Iterator[dict[str, int]]:
        for number in range(3):
            made.append(number)
            yield {"n": number}

    pieces = iter_indented({"within": [Lazy(elements)]}, "long", [])
    assert b"within" in next(pieces)
    assert not made
    next(pieces)
    assert made == [0]
    b"".join(pieces)
    assert made == [0, 1, 2]


def test_a_lazy_list_is_rounded_as_it_is_gone_through_and_as_often_as_one_likes() -> None:
    found = round_numbers({"list": Lazy(lambda: iter([1 / 3, {"a": float("nan")}]))})
    assert [*found["list"]] == [*found["list"]] == [0.3333, {"a": None}]


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        b"".join(iter_indented({"a": {1, 2}}, "long", []))
