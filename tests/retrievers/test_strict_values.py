"""What other programs write is read alike everywhere, and not more than it says."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.strict_values import (
    parse_count,
    parse_id,
    parse_json,
    parse_number,
    parse_reply,
    parse_whole,
    split_columns,
)  # fmt: skip
from tests.strategies.json_values import EXACT_JSON, REPEATING_PAIRS


@pytest.mark.parametrize("value", ["7", 7, 7.0, np.int64(7), np.float32(7), np.uint8(7)])
def test_a_whole_number_of_any_type_is_an_id(value: object) -> None:
    assert parse_id(value) == "7"


@pytest.mark.parametrize(
    "value", [None, "", True, np.True_, 0.5, float("nan"), float("inf"), 1e300, b"7", [7], {"id": 7}]
)
def test_other_values_are_refused_as_ids(value: object) -> None:
    with pytest.raises(ValueError, match="an id must be text or a whole number"):
        parse_id(value)


@pytest.mark.parametrize("value", ["250", " 250 ", "+250.0", "2.5e2", "250.", 250, Decimal(250), np.float32(250)])
def test_a_number_may_be_written_in_several_ways(value: object) -> None:
    assert parse_number(value) == 250


@pytest.mark.parametrize(
    "value", ["1_0", "\u0661", "1,5", "0x1", "nan", "inf", "1e999", "", "1 0", True, None, 10**400]
)
def test_what_only_python_calls_a_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        parse_number(value)


@pytest.mark.parametrize("value", ["2", 2, 2.0, "2.0", " 2 ", "+2", Decimal(2), np.int32(2)])
def test_a_whole_number_may_have_decimals_that_are_zero(value: object) -> None:
    assert parse_whole(value) == 2


@pytest.mark.parametrize("value", ["1e2", "1_0", "\u0662", "1.5", "", "9" * 5_000, 0.5, True, None, [1], float("nan")])
def test_another_number_is_not_whole(value: object) -> None:
    with pytest.raises(ValueError, match="is not a"):
        parse_whole(value)


@given(EXACT_JSON, st.sampled_from([None, 1, "\t"]))
def test_json_is_read_as_the_standard_library_does(value: object, indent: int | str | None) -> None:
    assert parse_json(json.dumps(value, indent=indent).encode()) == value


@given(REPEATING_PAIRS, st.sampled_from(["", " ", " \n\t"]))
def test_a_key_that_occurs_twice_is_refused(pairs: list[tuple[str, object]], gap: str) -> None:
    text = ",".join(f"{json.dumps(key)}{gap}:{json.dumps(value)}" for key, value in pairs)
    nested = f'{{"x": [{{{text}}}], "y": "{{}}"}}'.encode()
    if len({key for key, _ in pairs}) == len(pairs):
        assert parse_json(nested) == {"x": [dict(pairs)], "y": "{}"}
    else:
        with pytest.raises(ValueError, match=r"occurs twice in an object.*; keep one"):
            parse_json(nested)


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        (b"q1 Q0  d1\v1", [b"q1", b"Q0", b"d1", b"1"]),
        (b"q 1\tQ0\t d1\t", [b"q 1", b"Q0", b" d1", b""]),
        ("q\u00a01 d\u20281".encode(), ["q\u00a01".encode(), "d\u20281".encode()]),
    ],
)
def test_only_tabs_or_ascii_white_space_separate_columns(line: bytes, columns: list[bytes]) -> None:
    assert split_columns(line) == columns


@pytest.mark.parametrize("value", ["3", -1, 2**31 + 1, 2**63, 1e300, float("nan"), True, None, [3]])
def test_what_cannot_count_anything_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        parse_count(value)


def test_a_key_that_occurs_twice_in_a_long_file_is_named_with_its_line() -> None:
    """Braces in texts, and objects within the object, come before its end."""
    content = b'{"rows": [\n {"id": "}\\"}"},\n {"id": {}, "id": 2}\n]}\n'
    with pytest.raises(ValueError, match="the key 'id' occurs twice in an object that ends on line 3; keep one"):
        parse_json(content)


def test_a_reply_may_have_lone_surrogates_but_no_key_twice() -> None:
    assert parse_reply(b'{"id": "\\ud800", "n": 7}') == {"id": "\ud800", "n": 7}
    with pytest.raises(ValueError, match="the key 'id' occurs twice in an object; keep one"):
        parse_reply('{"id": 1, "id": 2}')
