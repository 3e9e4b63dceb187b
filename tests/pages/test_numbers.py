"""Numbers are shown as people read them."""

from __future__ import annotations

import math
from typing import get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.comparison.criteria import Criterion
from runner.pages import numbers
from runner.pages.explorer.data import Format


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0 ms"), (0.0004, "0.40 ms"), (0.25, "250 ms"), (0.9996, "1.0 s"), (90, "1 min 30 s"), (7200, "2 h 0 min")],
)
def test_a_duration_is_in_the_unit_that_it_is_read_in(seconds: float, told: str) -> None:
    assert numbers.duration(seconds) == told


@given(st.sampled_from([0.1, 0.05, 0.025, 0.01, 0.005]), st.floats(0.001, 1))
def test_a_p_value_reads_as_below_a_level_just_when_it_is(level: float, p: float) -> None:
    assert (float(numbers.p_value(p)) < level) == (p < level)


@pytest.mark.parametrize(
    ("show", "value", "text"),
    [
        (numbers.score, 0.12345, "0.123"),
        (numbers.score, None, "–"),
        (numbers.score, math.nan, "–"),
        (numbers.score4, 0.12345, "0.1235"),
        (numbers.format_signed, 0.05, "+0.0500"),
        (numbers.format_signed, -0.05, "-0.0500"),
        (numbers.p_value, 0.0004, "<0.001"),
        (numbers.p_value, 0.05, "0.050"),
        (numbers.p_value, 0.0503, "0.050"),
        (numbers.p_value, 0.0496, "0.0496"),
        (numbers.p_value, 0.04999999, "0.0499"),
        (numbers.p_value, 0.0412, "0.041"),
        (numbers.interval, (0.1, 0.25), "[0.100, 0.250]"),
        (numbers.interval, None, "–"),
        (numbers.percent, 0.875, "87.5%"),
        (numbers.number, 5183, "5,183"),
        (numbers.number, 1553.2, "1,553"),
        (numbers.number, 15.53, "15.5"),
        (numbers.number, 2.5e9, "2.5e+09"),
        (numbers.milliseconds, 0.416, "0.42"),
        (numbers.milliseconds, 12.34, "12.3"),
        (numbers.milliseconds, 1234.5, "1,234"),
        (numbers.duration, 0.0021, "2.10 ms"),
        (numbers.duration, 12.34, "12.3 s"),
        (numbers.duration, 119.9, "2 min 0 s"),
        (numbers.duration, 200, "3 min 20 s"),
        (numbers.duration, 1800, "30 min"),
        (numbers.duration, 7500, "2 h 5 min"),
        (numbers.difference_interval, (-0.01, 0.0249, 9, 42), "[-0.010, +0.025]"),
        (numbers.difference_interval, (math.nan, math.nan, 3, 1042), "3 of 1,042 differ"),
        (numbers.difference_interval, (math.nan, math.nan, 0, 0), "–"),
        (numbers.difference_interval, None, "–"),
    ],
)
def test_numbers_read_well(show: object, value: object, text: str) -> None:
    assert callable(show)
    assert show(value) == text


def test_every_format_of_a_criterion_is_one_of_texts_and_of_pages() -> None:
    formats = set(get_args(get_type_hints(Criterion)["format"]))
    assert set(numbers.FORMATS) == formats
    assert formats <= set(get_args(Format))
