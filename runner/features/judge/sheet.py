"""Read and write a sheet of pairs that people grade in a spreadsheet: CSV with query, document and an empty grade.

The judge's grades, ranks and systems are not shown. Rows are in random order, so the graded rows from the top down to
any row are a random sample.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from retrievers.files import replace_file
from runner.datasets.base import DatasetError
from runner.features.judge.judging import SCALE, PairIds
from runner.pages.cells import protect_row, restore_text

COLUMNS = ("query_id", "document_id", "query", "document", "grade", "note", "order")

_TEXTS = ("query_id", "document_id", "query", "document", "note")
"""The columns with texts, which a sheet protects."""


@dataclass(frozen=True)
class SheetRow:
    """A pair in a sheet; `grade` is None until it is graded. `order` says how the pair was chosen."""

    pair: PairIds
    query: str
    document: str
    grade: int | None = None
    note: str = ""
    order: str = "random"


def load_sheet(path: Path) -> list[SheetRow]:
    """Read a sheet, perhaps saved by a spreadsheet program; raise `DatasetError` with the line if it is invalid."""
    if not path.exists():
        return []
    try:
        text = path.read_bytes().decode("utf-8-sig")  # reading as text would change line breaks in cells
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: cannot be read ({error}); save the sheet as CSV in UTF-8") from None
    heading = next(iter(text.splitlines()), "")
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=";" if heading.count(";") > 3 else ",")
    missing = [name for name in COLUMNS[:5] if name not in (rows.fieldnames or ())]
    if missing:
        raise DatasetError(f"{path}: the column {missing[0]!r} is missing; keep all columns of the sheet")
    sheet: dict[PairIds, SheetRow] = {}
    for row in rows:
        place = f"{path}:{rows.line_num}"
        query_id, document_id, query, document, note = (restore_text(row.get(name) or "") for name in _TEXTS)
        pair = (query_id, document_id)
        grade, order = _parse_grade(row["grade"], place), row.get("order") or "random"
        graded = SheetRow(pair, query, document, grade, note, order)
        if pair in sheet:
            raise DatasetError(f"{place}: query {pair[0]!r} and document {pair[1]!r} occur twice; keep one row")
        sheet[pair] = graded
    return list(sheet.values())


def save_sheet(path: Path, rows: Sequence[SheetRow]) -> None:
    """Write a sheet; the file is replaced atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as new, new.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in rows:
            grade = "" if row.grade is None else row.grade
            writer.writerow(protect_row([*row.pair, row.query, row.document, grade, row.note, row.order]))


def match_sheet(path: Path, rows: Sequence[SheetRow], places: Mapping[PairIds, int], order: str) -> list[int]:
    """Return the position in the pool of each row.

    Raises `DatasetError` for a pair that the pool lacks, or that was chosen in another order.
    """
    for row in rows:
        if row.order != order:
            raise DatasetError(
                f"{path}: the pairs were chosen with order={row.order}, not order={order}, and a sheet with both is "
                f"not a random sample; set order={row.order}, or sheet= to another file"
            )
        if row.pair not in places:
            raise DatasetError(
                f"{path}: query {row.pair[0]!r} and document {row.pair[1]!r} are not in the pool; the sheet belongs "
                "to other results or another judging.depth. Set sheet= to another file, or output= to another folder"
            )
    return [places[row.pair] for row in rows]


def _parse_grade(text: str | None, place: str) -> int | None:
    plain = (text or "").strip().replace(",", ".")
    if not plain:
        return None
    try:
        grade = float(plain)
    except ValueError:
        grade = -1.0
    if not grade.is_integer() or not SCALE.least <= grade <= SCALE.greatest:
        raise DatasetError(
            f"{place}: the grade {plain[:20]!r} is not a whole number from {SCALE.least} to {SCALE.greatest}; leave "
            "the cell empty to skip the pair"
        )
    return int(grade)
