"""Read judgments in columns: those of BEIR and TREC, and other orders and separators that a file shows by itself."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from retrievers.strict_values import parse_number, split_columns
from runner.datasets import files
from runner.datasets.base import DatasetError, Qrel
from runner.datasets.columns import find_first, normalize_name
from runner.datasets.files import Place, grade_of

logger = logging.getLogger("runner.datasets")

QUERY = ("query_id", "qid", "q_id", "topic_id", "topic", "query")
DOCUMENT = ("document_id", "corpus_id", "doc_id", "docid", "docno", "pid", "passage_id", "item_id", "did", "document")
GRADE = ("score", "grade", "relevance", "rel", "label", "rating", "judgment", "judgement")
"""The names of columns, in lower case with underscores."""
_ITERATION = re.compile(r"q?[0-9]{1,3}", re.IGNORECASE)
"""The second column of TREC's qrels, which is rarely other than 0 or Q0."""
_ZERO = {"0", "Q0", "q0"}
_SEPARATORS = (None, "|", ":", ";", ",")
"""What separates columns; None: tabs or, in a line without any, ASCII white space."""
_SAMPLE = 100
"""The number of lines that show the separator."""
_COLUMNS = {
    2: "2 columns (query, document)",
    3: "3 columns (query, document, grade)",
    4: "4 columns (query, iteration, document, grade)",
}
_WAY_OUT = "reorder the columns, or name them in a first line: query_id, iteration, document_id and grade"


class _Row(NamedTuple):
    number: int
    columns: Sequence[str]


class _Order(NamedTuple):
    """The positions of the columns; without grades, every grade is 1."""

    query: int
    document: int
    grade: int | None


_USUAL = {2: _Order(0, 1, None), 3: _Order(0, 1, 2), 4: _Order(0, 2, 3)}


def read_qrels(path: Path, convert: Callable[[object], int] | None = None) -> list[Qrel]:
    """Read judgments, with or without a header: query, document, grade, or TREC's query, iteration, document, grade.

    A line with tabs is split at these, so that ids may contain spaces; any other line is split at ASCII white space or,
    if the lines show it, at a vertical bar, colon, semicolon or comma. Another order follows from the header, or from
    the column that is always 0 or Q0; such readings are logged. `convert` makes grades of values, or raises
    `ValueError`.
    """
    rows, order, notes = _read_rows(path)
    if notes:
        logger.warning("%s: %s", path, "; ".join(notes))
    qrels, grades = list[Qrel](), dict[str, int]()  # a file has few distinct grades
    for number, columns in rows:
        query, document = columns[order.query], columns[order.document]
        if not query or not document:
            raise DatasetError(f"{path}:{number}: the id of the {'document' if query else 'query'} is empty")
        value = "1" if order.grade is None else columns[order.grade]
        if value not in grades:
            try:
                grades[value] = 1 if order.grade is None else (convert or _whole_grade)(value)
            except ValueError as error:
                raise DatasetError(f"{path}:{number}: {error}") from None
        qrels.append((query, document, grades[value]))
    return qrels


def find_qrel_columns(columns: Collection[str]) -> Mapping[str, str | None] | None:
    """Return the settings of the columns of judgments in a table by their names, None if these do not show the ids.

    A table of two columns has no grades; in any other one without a known name, the setting is left out.
    """
    query, document, grade = (find_first(group, columns) for group in (QUERY, DOCUMENT, GRADE))
    if query is None or document is None:
        return None
    ids = {"qrel_query": query, "qrel_document": document}
    return {**ids, "qrel_grade": grade} if grade or len(columns) == 2 else ids


def iter_qrel_places(path: Path) -> Iterator[Place]:
    """Yield the line of each judgment in a file that `read_qrels` reads."""
    rows, order, _ = _read_rows(path)
    yield from ((f"{path}:{number}", (columns[order.query], columns[order.document])) for number, columns in rows)


def _whole_grade(value: str) -> int:
    try:
        return grade_of(value)
    except ValueError as error:
        way_out = "; to convert such grades, set dataset=judged dataset.grade_thresholds" if is_number(value) else ""
        raise ValueError(f"{error}{way_out}") from None


def _read_rows(path: Path) -> tuple[list[_Row], _Order, list[str]]:
    """Return the lines of a file without its header, the order of their columns, and what is unusual about both."""
    content = [(number, files.strip_end(line, f"{path}:{number}")) for number, line in files.lines(path)]
    lead = next((n for n, (_, line) in enumerate(content) if not line.startswith((b"# ", b"#\t"))), 0)
    notes = [f"the first {lead} lines are comments"] if lead else []
    content = content[lead:]
    separator = _find_separator([line for _, line in content[:_SAMPLE]])
    if separator:
        notes.append(f"the columns are separated by {separator!r}")
    rows = [_Row(number, _decode(_split(line, separator), path, number)) for number, line in content]
    header = rows.pop(0) if rows and _is_header(rows[0].columns) else None
    if header and (name := next((name for name in header.columns if header.columns.count(name) > 1), None)):
        raise DatasetError(f"{path}:{header.number}: the column {name!r} occurs twice; keep one")
    width = len(rows[0].columns) if rows else 3
    for number, columns in rows:
        if width not in _COLUMNS:
            raise DatasetError(f"{path}:{number}: expected {', '.join(_COLUMNS.values())}; found {width}")
        if len(columns) != width:
            raise DatasetError(f"{path}:{number}: expected {_COLUMNS[width]}, as before, found {len(columns)}")
        if (header and columns == header.columns) or (
            width == 2 and columns[0].lower().replace("-", "_") in QUERY and _is_header(columns)
        ):
            raise DatasetError(f"{path}:{number}: repeats the header; remove the line")
    order = (header and _read_header(header.columns, width)) or _find_order(path, rows, width)
    if order != _USUAL[width]:
        names = {order.query: "query", order.document: "document", order.grade: "grade"}
        notes.append(f"the columns are read as {', '.join(names.get(n, 'iteration') for n in range(width))}")
    if order.grade is None:
        notes.append("there are no grades, so every grade is 1")
    return rows, order, notes


def _decode(columns: Sequence[bytes], path: Path, number: int) -> Sequence[str]:
    try:
        return [column.decode() for column in columns]
    except UnicodeDecodeError:
        return [files.decode_text(column, f"{path}:{number}") for column in columns]  # names the place


def _find_separator(lines: Sequence[bytes]) -> str | None:
    """Return the separator with which lines have three or four columns, one of numbers, or else two without blanks."""
    for widths in ((3, 4), (2,)):
        for separator in _SEPARATORS:
            rows = [_split(line, separator) for line in lines]
            if len({len(row) for row in rows}) == 1 and len(rows[0]) in widths:
                columns = zip(*(rows[1:] or rows), strict=True)  # the first row may be a header
                has_blanks = separator and any(len(value.split()) > 1 for row in rows for value in row)
                if any(all(map(is_number, column)) for column in columns) if 2 not in widths else not has_blanks:
                    return separator
    return None


def _split(line: bytes, separator: str | None) -> list[bytes]:
    return split_columns(line) if separator is None else [part.strip() for part in line.split(separator.encode())]


def is_number(value: object) -> bool:
    """Return whether a value, a text or ASCII bytes are a number."""
    try:
        parse_number(value.decode("ascii", "replace") if isinstance(value, bytes) else value)
    except ValueError:
        return False
    return True


def _is_header(columns: Sequence[str]) -> bool:
    known = [find_first(group, columns) for group in (QUERY, DOCUMENT, GRADE)]
    return normalize_name(columns[-1]) in GRADE or sum(name is not None for name in known) > 1


def _read_header(columns: Sequence[str], width: int) -> _Order | None:
    """Return the order that a header names, None if it lacks a name."""
    names = [*columns]
    query, document, grade = (find_first(group, columns) for group in (QUERY, DOCUMENT, GRADE))
    if len(names) != width or query is None or document is None or (grade is None and width > 2):
        return None
    return _Order(names.index(query), names.index(document), names.index(grade) if grade else None)


def _find_order(path: Path, rows: Sequence[_Row], width: int) -> _Order:
    """Return the usual order, or the one that a column of only 0 or Q0 shows; raises `DatasetError`."""
    if width == 2 and rows and all(row.columns[1] in ("0", "1", "2", "3") for row in rows):
        raise DatasetError(
            f"{path}:{rows[0].number}: expected the columns query and document, but the second has only grades; add "
            "the ids of the documents"
        )
    if width != 4 or not (wrong := _find_wrong(rows)):
        return _USUAL[width]
    zeros = [n for n in range(4) if {row.columns[n] for row in rows} <= _ZERO]
    others = [n for n in range(4) if n not in zeros[:1]]
    if len(zeros) != 1 or not all(is_number(row.columns[others[2]]) for row in rows):
        raise DatasetError(
            f"{path}:{wrong.number}: expected the columns query, iteration (0 or Q0), document and grade, but the "
            f"second is {wrong.columns[1]!r} and the third {wrong.columns[2]!r}; {_WAY_OUT}"
        )
    return _Order(*others)


def _find_wrong(rows: Sequence[_Row]) -> _Row | None:
    """Return a row whose second column is no iteration, None if all may be in TREC's order."""
    for row in rows:
        if not _ITERATION.fullmatch(row.columns[1]) and row.columns[2].isdecimal():
            return row
    first, second, third, last = ({row.columns[n] for row in rows} for n in range(4))
    many = len({value.lower().lstrip("q") for value in second})
    return rows[-1] if many > max(1, len(third)) or (many > 1 and (first <= _ZERO or last <= _ZERO)) else None
