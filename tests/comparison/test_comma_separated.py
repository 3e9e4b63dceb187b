"""Comma-separated values are those of pandas."""

from __future__ import annotations

import math

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from runner.comparison.comma_separated import format_csv

NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(0, 3), st.floats(), st.sampled_from([1e16, 0.1, -0.0])
)
OTHERS = st.one_of(st.text('ab,"\n \u00e9', max_size=3), st.booleans(), st.just(["x", 1]), st.just({"a": None}))
COLUMNS = st.one_of(
    st.one_of(NUMBERS, st.sampled_from([None, math.nan])),
    st.one_of(st.integers(0, 9), st.none()),
    st.one_of(NUMBERS, OTHERS, st.none()),
    st.one_of(st.booleans(), st.none()),
)


@given(st.data(), st.integers(0, 4))
def test_values_are_written_as_pandas_writes_them(data: st.DataObject, n: int) -> None:
    rows: list[dict[str, object]] = [{"first, column": f"row {i}"} for i in range(n)]
    for name, values in (("a", NUMBERS), ("b", COLUMNS), ("c", COLUMNS), ("d", OTHERS)):
        for row in rows:
            if data.draw(st.integers(0, 9)):
                row[name] = data.draw(values)
    names = ["first, column", "d", "c", "b", "a", "nowhere"]
    assert format_csv(names, rows) == pd.DataFrame(rows, columns=names).to_csv(index=False)
