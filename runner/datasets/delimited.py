"""Read delimited text with a header: CSV and TSV, in the dialect and the encoding that the file shows."""

from __future__ import annotations

import csv
import io
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from retrievers.runs.run_formats import TABLES, strip_compression
from runner.datasets import files
from runner.datasets.base import DatasetError
from runner.datasets.files import SourceRecord

logger = logging.getLogger("runner.datasets")

_LONGEST_FIELD = 2**31 - 1
_DELIMITERS = ",\t;|"
_SAMPLE = 50
"""The number of rows that decide how a CSV file is written."""
_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""The byte order marks of UTF-16."""
_ADJACENT = re.compile(rb"[\x80-\xff]{2,}")
_LEGACY = "cp1252"
_QUOTED = re.compile(r'"([^"]|"")*"')
_NUMBERED = re.compile(r"([A-Za-z_-]{0,8})\d+")
"""An id such as q12."""
_NAMELESS = {
    2: ["id", "text"],
    3: ["query_id", "document_id", "grade"],
    4: ["query_id", "iteration", "document_id", "grade"],
}
"""The columns of a table without a header, by their number."""


class Dialect(NamedTuple):
    """How a CSV file is written; `quote` is "" if quotation marks belong to the values."""

    delimiter: str
    quote: str = '"'
    encoding: str = "utf-8"


def find_dialect(path: Path, usual: str, names: Collection[str] = (), encoding: str | None = None) -> Dialect:
    """Return how a CSV file is written: its encoding, and the delimiter with which the first rows are equally long.

    `usual` is the delimiter of the extension, which also holds if the header is one of `names`. Between tabs, quotation
    marks belong to the values unless all of them are CSV's.
    """
    encoding = encoding or _find_encoding(path)
    first = next((line for _, line in _text_lines(path, encoding)), "").rstrip("\r\n")
    plain = Dialect(usual, encoding=encoding)
    if first in names:
        return plain
    marks = [mark for mark in dict.fromkeys([usual, *_DELIMITERS]) if mark in first]
    candidates = [Dialect(mark, '"', encoding) for mark in marks]
    if "\t" in marks:
        candidates.insert(1 + marks.index("\t"), Dialect("\t", "", encoding))
    chosen = next((d for d in candidates if _fits(path, d)), Dialect(marks[0], encoding=encoding) if marks else plain)
    if not chosen.quote:
        rows = _iter_lines(path, chosen)
        odd = (n for n, row in rows for cell in row if cell.startswith('"') and not _QUOTED.fullmatch(cell))
        logger.warning("%s:%s: not quoted as in CSV, so quotation marks belong to the values", path, next(odd, 1))
    return chosen


def _fits(path: Path, dialect: Dialect) -> bool:
    """Return whether rows are equally long: the first ones or, if quotation marks may belong to values, all."""
    try:
        with _open_text(path, dialect.encoding) as lines:
            parsed = (row for row in _parse(lines, dialect) if any(row))
            width = len(next(parsed, ()))
            rows = parsed if dialect.delimiter == "\t" else islice(parsed, _SAMPLE)
            return width > 1 and all(len(row) == width for row in rows)
    except (csv.Error, DatasetError, UnicodeDecodeError):
        return False


def _parse(lines: Iterable[str], dialect: Dialect) -> Any:  # noqa: ANN401 (csv has no type for its readers)
    csv.field_size_limit(_LONGEST_FIELD)  # the default, 128 KiB, is too small for long documents
    if not dialect.quote:
        return csv.reader(lines, delimiter=dialect.delimiter, quoting=csv.QUOTE_NONE)
    return csv.reader(lines, delimiter=dialect.delimiter, strict=True)


@contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    files.decode_text(b"", str(path), encoding)  # raises for an unknown encoding
    with files.open_file(path, also=_WIDE) as file, io.TextIOWrapper(file, encoding, newline="") as lines:
        yield lines


def _text_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    with _open_text(path, encoding) as lines:
        yield from ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def _find_encoding(path: Path) -> str:
    """Return the encoding of a text: UTF-8, UTF-16 with a byte order mark, or else Windows-1252 with a warning."""
    with files.open_file(path, also=_WIDE) as file:
        if file.peek(2)[:2] in _WIDE:
            return "utf-16"
        numbered = [(number, line) for number, line in enumerate(file, start=1) if not line.isascii()]
    unlike = [(number, line) for number, line in numbered if not _is_utf8(line)]
    if not unlike:
        return "utf-8"
    place = f"{path}:{unlike[0][0]}"
    if like := next((number for number, line in numbered if _is_utf8(line)), None):
        raise DatasetError(f"{place}: not UTF-8 text, but line {like} is; the file mixes encodings, save it as UTF-8")
    text = b"".join(line for _, line in unlike)
    adjacent = sum(map(len, _ADJACENT.findall(text)))
    try:
        text.decode(_LEGACY)
    except UnicodeDecodeError:
        adjacent = len(text)
    if 2 * adjacent > sum(byte > 127 for byte in text):  # letters beyond ASCII seldom follow each other in the West
        raise DatasetError(f"{place}: not UTF-8 text; save the file as UTF-8, or set dataset.encoding, such as gb18030")
    logger.warning(
        "%s: not UTF-8 text, so the file is read as Windows-1252; if letters look wrong, set dataset.encoding", place
    )
    return _LEGACY


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def read_header(path: Path, dialect: Dialect) -> list[str]:
    """Return the names in the first row or, if it has values, those of a usual table with as many columns."""
    first, *rest = [row for _, row in islice(_iter_lines(path, dialect), 2)] or [[]]
    return _NAMELESS.get(len(first), first) if _is_nameless(first, rest) else first


def _is_nameless(header: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has values in place of names: ids that are numbers, or like that of the next row."""
    if not header or header == [*map(str, range(len(header)))]:
        return False
    alike = [_NUMBERED.fullmatch(row[0]) for row in (header, *rest) if row]
    return header[0].isdecimal() or (len(alike) == 2 and all(alike) and len({m[1] for m in alike if m}) == 1)


def iter_csv(path: Path, dialect: Dialect | None = None) -> Iterator[SourceRecord]:
    """Yield the rows of a table with a header; rows without any value are left out. None: the file shows its dialect.

    Raises `DatasetError`, which names the line.
    """
    ending = Path(strip_compression(path.name)).suffix.lower()
    dialect = dialect or find_dialect(path, "\t" if TABLES.get(ending) == "tsv" else ",")
    place, header = f"{path}:", read_header(path, dialect)
    for position, (number, row) in enumerate(_iter_lines(path, dialect)):
        repeated = next((name for name in header if name and header.count(name) > 1), None) if not position else None
        if repeated is not None:
            raise DatasetError(f"{place}{number}: the column {repeated!r} occurs twice; keep one")
        if len(row) != len(header):
            raise DatasetError(f"{place}{number}: expected {len(header)} columns, as in the header, found {len(row)}")
        if position or row != header:
            yield SourceRecord(place, number, dict(zip(header, row, strict=True)))


def _iter_lines(path: Path, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file that have a value, each with the number of its last line."""
    with _open_text(path, dialect.encoding) as lines:
        rows = _parse(lines, dialect)
        try:
            yield from ((rows.line_num, row) for row in rows if any(row))
        except UnicodeDecodeError:
            raise DatasetError(
                f"{path}:{rows.line_num + 1}: not {dialect.encoding} text, on this line or shortly after it"
            ) from None
        except csv.Error as error:
            raise DatasetError(f"{path}:{rows.line_num}: invalid CSV ({error})") from None
