"""Comma-separated values are those of pandas."""

from __future__ import annotations

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from runner.comparison.comma_separated import format_csv
from tests.strategies.cells import CELLS, NUMBERS, OTHERS


@given(st.data(), st.integers(0, 4))
def test_values_are_written_as_pandas_writes_them(data: st.DataObject, n: int) -> None:
    rows: list[dict[str, object]] = [{"first, column": f"row {i}"} for i in range(n)]
    for name, values in (("a", NUMBERS), ("b", CELLS), ("c", CELLS), ("d", OTHERS)):
        for row in rows:
            if data.draw(st.integers(0, 9)):
                row[name] = data.draw(values)
    names = ["first, column", "d", "c", "b", "a", "nowhere"]
    assert format_csv(names, rows) == pd.DataFrame(rows, columns=names).to_csv(index=False)
