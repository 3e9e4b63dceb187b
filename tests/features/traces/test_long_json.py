"""Long JSON is written a piece at a time, and is the JSON that it would be as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.features.traces.long_json import iter_indented
from tests.strategies.json_values import EXACT_JSON, json_objects


@given(json_objects(EXACT_JSON), st.text(), st.lists(EXACT_JSON, max_size=3))
def test_the_bytes_are_those_of_the_whole(content: dict[str, Any], name: str, elements: list[Any]) -> None:
    whole = orjson.dumps({**content, name: elements}, option=orjson.OPT_INDENT_2)
    assert b"".join(iter_indented(content, name, iter(elements))) == whole


def test_elements_are_generated_one_at_a_time() -> None:
    made = []

    def elements() -> Iterator[dict[str, int]]:
        for number in range(3):
            made.append(number)
            yield {"n": number}

    pieces = iter_indented({"before": 1}, "long", elements())
    assert b"before" in next(pieces)
    assert not made
    next(pieces)
    assert made == [0]
    b"".join(pieces)
    assert made == [0, 1, 2]


def test_a_value_that_json_lacks_is_refused() -> None:
    with pytest.raises(TypeError):
        b"".join(iter_indented({"a": {1, 2}}, "long", []))
