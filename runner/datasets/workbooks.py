"""Read the sheets of an Excel workbook as rows; needs the extra `documents`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrievers.extras import MissingPackageError, check_installed
from runner.datasets.base import DatasetError
from runner.datasets.files import SourceRecord

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

_SUMMED = "a formula without a result; open the workbook in a program of spreadsheets and save it"


def read_workbook(path: Path) -> Mapping[str, list[SourceRecord]]:
    """Return the rows of each visible sheet that has any, below its first row with values; raises `DatasetError`.

    Rows without any value are left out. Columns with values but no name are named by their letters. Dates and times are
    texts as in ISO 8601.
    """
    try:
        check_installed("openpyxl", "openpyxl", "documents")
    except MissingPackageError as error:
        raise DatasetError(f"{path}: {error}") from None
    from openpyxl import load_workbook

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of features that have no values
            values, formulas = (load_workbook(path, data_only=only) for only in (True, False))
    except Exception as error:  # a damaged file raises anything
        raise DatasetError(f"{path}: cannot be read as an Excel workbook ({error})") from None
    visible = [sheet for sheet in values.worksheets if sheet.sheet_state == "visible"]
    sheets = {sheet.title: _read_sheet(path, sheet, formulas[sheet.title]) for sheet in visible}
    return {title: rows for title, rows in sheets.items() if rows}


def _read_sheet(path: Path, sheet: Worksheet, formulas: Worksheet) -> list[SourceRecord]:
    place = f"{path}, sheet {sheet.title!r}, row "
    records: list[SourceRecord] = []
    names: Sequence[str] = ()
    named: Sequence[bool] = ()
    for number, (cells, written) in enumerate(zip(sheet.iter_rows(), formulas.iter_rows(), strict=True), start=1):
        for cell, formula in zip(cells, written, strict=True):
            if cell.data_type == "e" or (cell.value is None and formula.data_type == "f"):
                problem = f"the error {cell.value}" if cell.data_type == "e" else _SUMMED
                raise DatasetError(f"{place}{number}: the cell {cell.coordinate} has {problem}")
        row = [_convert(cell.value) for cell in cells]
        if all(value is None for value in row):
            continue
        if names:
            fields = zip(names, named, row, strict=True)
            records.append(SourceRecord(place, number, {n: v for n, has, v in fields if has or v is not None}))
            continue
        named = [value is not None for value in row]
        names = [
            cell.column_letter if value is None else str(value).strip() for cell, value in zip(cells, row, strict=True)
        ]
        if repeated := next((name for name in names if names.count(name) > 1), None):
            raise DatasetError(f"{place}{number}: the column {repeated!r} occurs twice; keep one")
    return records


def _convert(value: object) -> Any:  # noqa: ANN401 (what a cell has)
    """Return the value of a cell as JSON would have it: None for an empty text, a whole number without a fraction."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, date | time):
        return value.isoformat()
    return int(value) if isinstance(value, float) and value.is_integer() else value
