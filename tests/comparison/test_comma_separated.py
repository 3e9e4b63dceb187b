"""Comma-separated values are those of pandas, except that no text is a formula."""

from __future__ import annotations

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from runner.comparison.comma_separated import format_csv
from runner.pages.cells import escape_formula
from tests.strategies.cells import CELLS, NUMBERS, OTHERS


@given(st.data(), st.integers(0, 4))
def test_values_are_written_as_pandas_writes_them(data: st.DataObject, n: int) -> None:
    rows: list[dict[str, object]] = [{"first, column": f"row {i}"} for i in range(n)]
    for name, values in (("a", NUMBERS), ("b", CELLS), ("c", CELLS), ("d", OTHERS)):
        for row in rows:
            if data.draw(st.integers(0, 9)):
                row[name] = data.draw(values)
    names = ["first, column", "d", "c", "b", "a", "nowhere"]
    frame = pd.DataFrame(rows, columns=names)
    protected = frame.map(lambda cell: escape_formula(cell) if isinstance(cell, str) else cell)
    assert format_csv(names, rows) == protected.to_csv(index=False)


def test_no_text_is_a_formula_and_numbers_stay_numbers() -> None:
    row: dict[str, object] = {"=name": "=1+1", "b": -0.5, "c": "-0.5", "d": " @x", "e": 7}
    assert format_csv(list(row), [row]).splitlines() == [" =name,b,c,d,e", " =1+1,-0.5, -0.5,  @x,7"]
