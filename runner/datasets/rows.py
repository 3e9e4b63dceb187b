"""Read the rows of a table in any common form: JSON, JSON lines, YAML, CSV, TSV or Parquet.

Nothing here depends on what the columns mean.
"""

from __future__ import annotations

import csv
import io
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from retrievers.runs.run_formats import TABLES, strip_compression
from retrievers.strict_values import parse_json
from runner.config.yaml_files import YamlError, parse_yaml_texts
from runner.datasets import files
from runner.datasets.base import DatasetError
from runner.datasets.columns import NAMES, is_question, normalize_name
from runner.datasets.files import SourceRecord

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

logger = logging.getLogger("runner.datasets")

RowFormat = Literal["jsonl", "json", "yaml", "csv", "tsv", "parquet"]

FORMATS: Mapping[str, RowFormat] = {**TABLES, ".json": "json", ".yaml": "yaml", ".yml": "yaml"}
"""The format of a table by its extension, without that of its compression."""

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
_ROW_NAMES = ("url", "uri", "link", "path", "file", "filename", "file_name", "source", "title", "name")
_LONGEST_NAME = 200
_PARTS = ("queries", "corpus", "relevant_docs")
_KEYS = {"documents": "documents_key", "queries": "queries_key", "questions": "queries_key"}
"""The setting that names the key of the rows in a JSON or YAML file, by the setting of the file."""
_QUESTION = ("question", "query", "user_input", "input", "text")
_ITEM_KEYS = {"id", "_id", "text", "question", "query", "title"}
"""Keys of a single item, which is not an object of texts by id."""


@dataclass(frozen=True)
class RowTable:
    """A file of rows; `columns` are the names in its header, schema or first row, at `place`.

    `read` yields the rows; of Parquet, it reads only the columns that it is given.
    """

    place: str
    columns: Sequence[str]
    read: Callable[[Collection[str] | None], Iterator[SourceRecord]]


def open_table(
    path: Path,
    setting: str,
    format: RowFormat | None = None,
    names: Collection[str] = (),
    key: str | None = None,
    encoding: str | None = None,
) -> RowTable:
    """Open a file of rows; raises `DatasetError`, which names the place.

    `setting` names the file in messages. `names` are columns that settings name, which may contain a delimiter. `key`
    is that of the list of rows in a JSON or YAML file with several. `encoding` is that of CSV; None: the file shows it.
    """
    kind = format or FORMATS.get(Path(strip_compression(path.name)).suffix.lower())
    if path.is_fifo():
        raise DatasetError(f"dataset.{setting}={path}: a pipe can be read only once; save the data to a file first")
    if kind is None:
        raise DatasetError(f"dataset.{setting}={path}: unknown format; set dataset.format={', '.join(_KINDS)}")
    if kind == "parquet":
        return RowTable(str(path), _read_schema(path), lambda wanted: iter_parquet(path, wanted))
    if kind in ("csv", "tsv"):
        dialect = find_dialect(path, "," if kind == "csv" else "\t", names, encoding)
        return RowTable(f"{path}:1", _read_header(path, dialect), lambda _: iter_csv(path, dialect))
    content = _read_yaml(path) if kind == "yaml" else _read_document(path, kind)
    if content is _Lines:
        first = next(files.json_lines(path))
        return RowTable(first.location, [*first.fields], lambda _: files.json_lines(path))
    rows = list_rows(path, content, setting, key)
    return RowTable(rows[0].location if rows else str(path), [*(rows[0].fields if rows else ())], lambda _: iter(rows))


def find_unique(table: RowTable) -> str | None:
    """Return the column of names of rows: an id, the first column, or an address, a path or a title.

    All values must be different texts of at most `_LONGEST_NAME` characters and no questions; None without such a
    column.
    """
    ids = [name for name in table.columns if normalize_name(name).endswith("id")]
    named = [name for known in _ROW_NAMES for name in table.columns if normalize_name(name) == known]
    for name in dict.fromkeys([*ids, *table.columns[:1], *named]):
        values = [record.fields.get(name) for record in table.read({name})] if name.strip() else []
        names = {
            value
            for value in values
            if isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and not is_question(value)
        }
        if values and len(names) == len(values):
            return name
    return None


_KINDS: Sequence[RowFormat] = ("jsonl", "json", "yaml", "csv", "tsv", "parquet")
_Lines = object()
"""In place of the content of a file with an object in each line."""


def read_content(path: Path) -> object:
    """Return the content of a file in JSON, YAML or JSON lines, these as a list; raises `DatasetError`."""
    kind = FORMATS.get(Path(strip_compression(path.name)).suffix.lower())
    content = _read_yaml(path) if kind == "yaml" else _read_document(path, "jsonl" if kind == "jsonl" else "json")
    return [record.fields for record in files.json_lines(path)] if content is _Lines else content


def has_documents(path: str, setting: str) -> bool:
    """Return whether a file of questions contains their documents too, as LlamaIndex writes both."""
    file = files.find_copy(path, setting)
    if FORMATS.get(Path(strip_compression(file.name)).suffix.lower()) != "json" or not file.is_file():
        return False
    return _has_parts(_read_document(file, "json"))


def _has_parts(content: object) -> bool:
    """Return whether content has questions, documents and gold, each an object by id: LlamaIndex's dataset."""
    return isinstance(content, dict) and all(isinstance(content.get(part), dict) for part in _PARTS)


def _read_yaml(path: Path) -> object:
    with files.open_file(path) as file:
        content = file.read()
    try:
        return parse_yaml_texts(files.decode_content(content, path), str(path))
    except YamlError as error:
        raise DatasetError(str(error)) from None


def _read_document(path: Path, kind: RowFormat) -> object:
    """Return the content of a file with one JSON document, or `_Lines` if each line is an object."""
    beginning = list(islice((line for _, line in files.lines(path) if not files.is_comment(line)), 2))
    if not beginning:
        return []
    with suppress(ValueError):
        alone = parse_json(beginning[0])
        if isinstance(alone, dict) and (len(beginning) == 2 or (kind == "jsonl" and not _is_nested(alone))):
            return _Lines
    try:
        return files.json_content(path)
    except DatasetError:
        if kind == "jsonl":
            for _ in files.json_lines(path):  # names the line
                pass
        raise


def _is_nested(content: Mapping[str, Any]) -> bool:
    """Return whether an object contains rows: all values are objects, or one is a list of objects."""
    return (
        bool(content)
        and not _is_question(content)
        and (_is_map(content) or any(_is_list(value) for value in content.values()))
    )


def _is_question(content: Mapping[str, Any]) -> bool:
    return any(isinstance(content.get(name), str) for name in _QUESTION)


def _is_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _is_map(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(item, dict) for item in value.values())


def list_rows(path: Path, content: object, setting: str, key: str | None = None) -> list[SourceRecord]:
    """Return the rows of a JSON or YAML document; raises `DatasetError`.

    It is a list of objects; an object of columns; objects or texts by id, which become rows with the field `id`; or an
    object with one of these under a key, at any depth.
    """
    if isinstance(content, dict) and key is None:
        content = [content] if _is_question(content) else _unfold(path, content, setting)
    if isinstance(content, dict):
        tables = dict(_find_tables(content))
        if key is not None and key not in tables:
            raise DatasetError(f"{path}: no list of rows under {key!r}; there are {', '.join(tables) or 'none'}")
        if len(tables) > 1 and key is None and setting != "documents":
            asking = {name: rows for name, rows in tables.items() if _has_questions(rows)}
            if len(asking) == 1:
                others = ", ".join(name for name in tables if name not in asking)
                logger.warning("%s: the questions are the rows under %s, not those under %s", path, *asking, others)
                tables = asking
        if len(tables) > 1 and key is None:
            way_out = f"set dataset.{_KEYS[setting]} to one of them" if setting in _KEYS else "keep only one of them"
            raise DatasetError(f"{path}: rows under several keys: {', '.join(tables)}; {way_out}")
        name = key if key is not None else next(iter(tables), None)
        if name is not None:
            return list_rows(path, tables[name], setting)
        content = [content]
    if not isinstance(content, list):
        raise DatasetError(f"{path}: expected a list of objects, or an object that contains one")
    return files.json_objects(path, "row", content)


def _has_questions(rows: object) -> bool:
    """Return whether rows have a field with the name of a question, of their own or in an object."""
    listed = [*(rows.values() if isinstance(rows, dict) else rows if isinstance(rows, list) else ())]
    inner = [value for row in listed for value in row.values() if isinstance(value, dict)]
    return any(normalize_name(name) in NAMES["query_text"][1:] for row in (*listed, *inner) for name in row)


def _unfold(path: Path, content: dict[str, Any], setting: str) -> object:
    """Return the rows of an object of columns, of objects by id or of texts by id; any other object as it is."""
    if _has_parts(content):
        queries, corpus, golds = (content[part] for part in _PARTS)
        if unknown := next((name for name in golds if name not in queries), None):
            raise DatasetError(f"{path}: relevant_docs names the query {unknown!r}, which queries lacks")
        own = {name: {"text": text, "gold": golds.get(name)} for name, text in queries.items()}
        content = corpus if setting == "documents" else own
    if columns := _list_columns(content):
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if _is_map(content):
        return [{"id": name, **fields} for name, fields in content.items()]
    if content and all(isinstance(value, str) for value in content.values()) and not _ITEM_KEYS & content.keys():
        return [{"id": name, "text": text} for name, text in content.items()]
    return content


def _list_columns(content: Mapping[str, Any]) -> Mapping[str, Sequence[Any]]:
    """Return the columns of an object of lists, or of objects by row number as pandas writes them; empty for others."""
    if len(content) < 2:
        return {}
    if all(isinstance(column, list) for column in content.values()):
        same = len({len(column) for column in content.values()}) == 1
        return content if same and not any(map(_is_list, content.values())) else {}
    if _is_map(content):
        numbers = [[*column] for column in content.values()]
        if all(n == numbers[0] for n in numbers) and numbers[0] == [*map(str, range(len(numbers[0])))]:
            return {name: [*column.values()] for name, column in content.items()}
    return {}


def _find_tables(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the lists of objects in an object, by their path of keys; without any, the objects by id."""
    lists: list[tuple[str, object]] = []
    for name, value in content.items():
        if _is_list(value):
            lists.append((f"{prefix}{name}", value))
        elif isinstance(value, dict):
            lists += [table for table in _find_tables(value, f"{prefix}{name}.") if isinstance(table[1], list)]
    yield from lists or [(f"{prefix}{name}", value) for name, value in content.items() if _is_map(value)]


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


def _read_header(path: Path, dialect: Dialect) -> list[str]:
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
    place, header = f"{path}:", _read_header(path, dialect)
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


def is_table(path: Path, *others: str) -> bool:
    """Tell files with named columns from others by their extension: CSV, Parquet, or one of `others`."""
    ending = Path(strip_compression(path.name)).suffix.lower()
    return ending in others or TABLES.get(ending) in ("csv", "parquet")


def _read_schema(path: Path) -> list[str]:
    with _open_parquet(path) as table:
        return list(table.schema_arrow.names)


def iter_parquet(
    path: Path,
    wanted: Collection[str] | None = None,
    rows: int = 65_536,
    describe_missing: Callable[[Collection[str]], str] | None = None,
) -> Iterator[SourceRecord]:
    """Yield the rows of a Parquet file with all of its columns, or the `wanted` ones; raises `DatasetError`.

    `rows` are read at a time. `describe_missing` takes the names of the columns and returns an error message, or an
    empty text.
    """
    with _open_parquet(path) as table:
        names = table.schema_arrow.names
        if describe_missing and (missing := describe_missing(names)):
            raise DatasetError(f"{path}: {missing}")
        columns = [name for name in names if wanted is None or name in wanted]
        batches = table.iter_batches(rows, columns=columns)
        for number, fields in enumerate(chain.from_iterable(batch.to_pylist() for batch in batches), start=1):
            yield SourceRecord(f"{path}, row ", number, fields)


@contextmanager
def _open_parquet(path: Path) -> Iterator[ParquetFile]:
    import pyarrow
    from pyarrow.parquet import ParquetFile

    try:
        yield ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DatasetError(f"{path}: cannot be read ({error})") from None
