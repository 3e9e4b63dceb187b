"""What a file says, read by the standard library, to compare readers with. `Odd` is a file without a meaning."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

Content = tuple[dict[str, tuple[str, str]], dict[str, str], dict[tuple[str, str], int]]
"""Titles and texts of documents by id, texts of queries by id, and grades."""


class Odd(Exception):
    """A file that no reader may read."""


def refuse(*_: object) -> NoReturn:
    raise Odd


def text_of(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        refuse()


def lines_of(content: bytes) -> list[str]:
    text = text_of(content)
    return [line for line in text.split("\n" if "\n" in text else "\r") if line.strip(" \t\n\v\f\r")]


def json_of(text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return dict(pairs) if len(dict(pairs)) == len(pairs) else refuse()

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except ValueError:
        refuse()


def json_rows(content: bytes) -> list[dict[str, Any]]:
    rows = [json_of(line) for line in lines_of(content)]
    return rows if all(isinstance(row, dict) for row in rows) else refuse()


def table_rows(content: bytes, delimiter: str) -> list[dict[str, Any]]:
    """Read a table between delimiters or semicolons, in UTF-8 or UTF-16."""
    try:
        text = content.decode("utf-16") if content.startswith((b"\xff\xfe", b"\xfe\xff")) else text_of(content)
        delimiter = delimiter if delimiter in text.splitlines()[0] else ";"
        header, *rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(row)]
    except (ValueError, csv.Error):
        refuse()
    if len(set(header)) < len(header) or any(len(row) != len(header) for row in rows):
        refuse()
    return [dict(zip(header, row, strict=True)) for row in rows]


def id_of(value: object) -> str:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        refuse()
    return str(int(value))


def kept_text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else refuse()


def grade_of(value: object) -> int:
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]+(\.0*)?", value.strip(" \t\n\v\f\r")):
        number = float(value)
    return int(number) if number is not None and number.is_integer() and abs(number) < 2**31 else refuse()


def qrels_of(content: bytes) -> list[tuple[str, str, int]]:
    """Read judgments in columns of equal number, of which two are a query and a document."""
    table = []
    for line in lines_of(content):
        line = line.rstrip("\r\n")
        table.append(line.split("\t") if "\t" in line else re.split("[ \t\n\v\f\r]+", line.strip(" \t\n\v\f\r")))
        if "\r" in line:
            refuse()
    if table and table[0][-1].strip().lower() in ("score", "grade", "relevance", "rel", "label"):
        table.pop(0)
    if {len(columns) for columns in table} not in ({2}, {3}, {4}, set()):
        refuse()
    if table and len(table[0]) == 2:
        if all(columns[1] in ("0", "1", "2", "3") for columns in table):
            refuse()
        table = [[*columns, "1"] for columns in table]
    return [(id_of(columns[0]), id_of(columns[-2]), grade_of(columns[-1])) for columns in table]


def field(row: Mapping[str, Any], *names: str) -> Any:
    return next((row[name] for name in names if name in row), None) if {*names} & row.keys() else refuse()


def content_of(
    documents: Iterable[tuple[str, str, str]], queries: Iterable[tuple[str, str]], qrels: Iterable[tuple[str, str, int]]
) -> Content:
    """Return the content of rows, in which ids are unique and fit on a line, and judgments agree."""
    rows = list(documents), list(queries), list(qrels)
    texts = {document: (title, text) for document, title, text in rows[0]}
    asked = dict(rows[1])
    grades: dict[tuple[str, str], int] = {}
    for query, document, grade in rows[2]:
        if query not in asked or grades.setdefault((query, document), grade) != grade:
            refuse()
    if len(texts) < len(rows[0]) or len(asked) < len(rows[1]) or not texts or not asked:
        refuse()
    ids = [*texts, *asked, *(document for _, document in grades)]
    return (
        refuse()
        if any(re.search("[\t\n\v\f\r\0\x1c-\x1e\x85\u2028\u2029]", i) for i in ids)
        else (texts, asked, grades)
    )
