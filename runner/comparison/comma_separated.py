"""Rows as comma-separated values for spreadsheets.

They are byte for byte as pandas writes them, which takes half a second to load, except that no text is a formula.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from io import StringIO

from runner.pages.cells import protect_row


def format_csv(names: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    """Return a line of names and a line for each row; None, NaN and what a row lacks are empty.

    Integers of a column that also has other numbers or empty places are written as these numbers are, with a point.
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator=os.linesep)
    writer.writerow(protect_row(names))
    columns = [_format_column([row.get(name) for row in rows]) for name in names]
    writer.writerows(map(protect_row, zip(*columns, strict=True)))
    return text.getvalue()


def _format_column(values: Sequence[object]) -> list[object]:
    present = [value for value in values if value is not None and value == value]
    numbers = [value for value in present if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if len(numbers) == len(present) < len(values) or (numbers == present and any(map(_is_float, present))):
        return ["" if value is None or value != value else float(value) for value in values]  # type: ignore[arg-type]  # a number
    return ["" if value is None or value != value else value for value in values]


def _is_float(value: object) -> bool:
    return isinstance(value, float)
