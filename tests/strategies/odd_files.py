"""Files as other programs and people write them: odd values, separators, line ends, encodings and repetitions."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

PLAIN_IDS = st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "h"])
ODD_IDS = st.sampled_from(
    [
        "a b",
        " a",
        "b ",
        "é",
        "7",
        7,
        7.0,
        7.5,
        True,
        None,
        "",
        ["a"],
        {"a": 1},
        "a\u2028b",
        "a\u00a0b",
        "A",
        2**60,
        "a%20b",
        "nan",
        "\ufeffa",
        "a\tb",
        "a\r",
        "None",
        "[1, 2]",
    ]
)
IDS = st.one_of(*[PLAIN_IDS] * 7, ODD_IDS)
ODD_TEXTS = st.sampled_from(
    ["", None, "two\nlines", 'say "x", y', "a\tb", "é\u2028ß", 5, ["x"], "\ufeff", "a\rb", "\\"]
)
TEXTS = st.one_of(*[st.sampled_from(["red apple", "blue sky", "green tree"])] * 5, ODD_TEXTS)
ODD_GRADES = st.sampled_from([-1, 1.0, 1.5, "1", "2.0", " 1 ", "1e0", "x", "", None, True, 2**40, "１", "1_0", [1]])
GRADES = st.one_of(*[st.integers(0, 3)] * 6, ODD_GRADES)
ODD_SCORES = st.sampled_from([-0.0, 3, "1.5", "1e-3", "nan", "inf", None, "", True, 1e39, "x", "1_0", "１", [1.0]])
SCORES = st.one_of(*[st.floats(-9, 9, width=16)] * 6, ODD_SCORES)

LINE_ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n", "\n \n"])


@st.composite
def encoded(draw: st.DrawFn, text: str, others: Sequence[str] = ("utf-16", "latin-1")) -> bytes:
    """Draw the bytes of a text: mostly UTF-8, with or without a mark, sometimes in another encoding."""
    name = draw(st.sampled_from(["utf-8"] * 7 + ["utf-8-sig", "utf-8-sig", *others]))
    return text.encode(name, "replace")


@st.composite
def json_objects(draw: st.DrawFn, row: Mapping[str, Any]) -> str:
    """Draw an object of JSON in one line, sometimes with a key twice or cut short."""
    separators = draw(st.sampled_from([(", ", ": "), (",", ":"), (" ,\t", " : ")]))
    text = json.dumps(row, ensure_ascii=draw(st.booleans()), separators=separators)
    odd = draw(st.integers(0, 60))
    if odd == 0 and row:
        key = next(iter(row))
        text = f'{{"{key}": "twice"{separators[0]}{text[1:]}'
    return text[:-1] if odd == 1 else f" {text} " if odd == 2 else "[1]" if odd == 3 else text


@st.composite
def json_line_files(draw: st.DrawFn, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Draw a file with an object in each line."""
    end = draw(LINE_ENDS)
    text = end.join(draw(json_objects(row)) for row in rows) + draw(st.sampled_from(["", end]))
    return draw(encoded(text))


@st.composite
def json_files(draw: st.DrawFn, value: object) -> bytes:
    """Draw a file of JSON."""
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 0, 2])))
    odd = draw(st.integers(0, 40))
    return draw(encoded(text[:-2] if odd == 0 else f"\n{text}\n" if odd == 1 else text))


@st.composite
def table_files(draw: st.DrawFn, rows: Sequence[Mapping[str, Any]], delimiter: str) -> bytes:
    """Draw a table with a header, whose rows may differ in length; values are written as text."""
    names = list(rows[0]) if rows else ["id"]
    odd = draw(st.integers(0, 40))
    table = [names, *([str("" if row[n] is None else row[n]) for n in names] for row in rows)]
    if odd == 0:
        table[-1].append("more")
    if odd == 1:
        table[0][-1] = table[0][0]
    file, end = io.StringIO(), draw(LINE_ENDS)
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    csv.writer(file, delimiter=";" if odd == 2 else delimiter, lineterminator=end, quoting=quoting).writerows(table)
    return draw(encoded(file.getvalue(), others=["utf-16"]))


@st.composite
def column_files(draw: st.DrawFn, rows: Sequence[Sequence[object]]) -> bytes:
    """Draw lines of columns between tabs or white space, with or without a header."""
    gap = draw(st.sampled_from(["\t", "\t", " ", "  ", " \t"]))
    lines = [gap.join("" if value is None else str(value) for value in row) for row in rows]
    return draw(encoded(draw(LINE_ENDS).join(lines) + draw(st.sampled_from(["", "\n"]))))


@st.composite
def markup_files(draw: st.DrawFn, outer: str, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Draw elements with an element for each value, sometimes without an end."""
    end, lost = draw(LINE_ENDS), draw(st.integers(0, 30))
    texts = ["" if value is None else html.escape(str(value)) for row in rows for value in row.values()]
    tags = [tag for row in rows for tag in row]
    lines = [f"<{tag}> {text} </{tag}>" for tag, text in zip(tags, texts, strict=True)]
    width = len(rows[0])
    blocks = [[f"<{outer}>", *lines[i : i + width], f"</{outer}>"] for i in range(0, len(lines), width)]
    if lost == 0:
        blocks[-1].pop()
    if lost == 1:
        del blocks[0][1]
    return draw(encoded(end.join(end.join(block) for block in blocks)))


def type_columns(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows whose columns have one type each, as Parquet needs it: those of several types become text."""
    columns = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        kinds = {type(value) for value in values if value is not None}
        columns[name] = values if len(kinds) < 2 else [None if v is None else str(v) for v in values]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
