"""Read the rows of a table in any common form: JSON, JSON lines, YAML, CSV, TSV, Excel or Parquet.

Nothing here depends on what the columns mean.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from retrievers.runs.run_formats import strip_compression
from retrievers.strict_values import parse_json
from runner.config.yaml_files import YamlError, parse_yaml_texts
from runner.datasets import files
from runner.datasets.base import DatasetError
from runner.datasets.columns import NAMES, is_question, normalize_name
from runner.datasets.delimited import find_dialect, iter_csv, read_header
from runner.datasets.files import SourceRecord
from runner.datasets.shapes import describe, map_signs
from runner.datasets.workbooks import read_workbook

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

logger = logging.getLogger("runner.datasets")

RowFormat = Literal["jsonl", "json", "yaml", "csv", "tsv", "parquet", "xlsx"]

FORMATS: Mapping[str, str] = map_signs("table")
"""The format of a table by its extension, without that of its compression."""

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
        raise DatasetError(
            f"dataset.{setting}={path}: unknown format; set dataset.format, for example to csv, or save it as "
            f"{describe('table')}"
        )
    if kind == "parquet":
        return RowTable(str(path), _read_schema(path), lambda wanted: iter_parquet(path, wanted))
    if kind in ("csv", "tsv"):
        dialect = find_dialect(path, "," if kind == "csv" else "\t", names, encoding)
        return RowTable(f"{path}:1", read_header(path, dialect), lambda _: iter_csv(path, dialect))
    if kind == "xlsx":
        return _open_rows(path, _choose(path, read_workbook(path), "sheet", setting, key))
    content = _read_yaml(path) if kind == "yaml" else _read_document(path, kind)
    if content is _Lines:
        first = next(files.json_lines(path))
        return RowTable(first.location, [*first.fields], lambda _: files.json_lines(path))
    return _open_rows(path, list_rows(path, content, setting, key))


def _open_rows(path: Path, rows: Sequence[SourceRecord]) -> RowTable:
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


def _read_document(path: Path, kind: str) -> object:
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
    """Return whether an object contains rows: all values or LlamaIndex's are objects, or one is a list of objects."""
    return (
        bool(content)
        and not _is_question(content)
        and (_is_map(content) or _has_parts(content) or any(_is_list(value) for value in content.values()))
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
        if tables or key is not None:
            return list_rows(path, _choose(path, tables, "key", setting, key), setting)
        content = [content]
    if not isinstance(content, list):
        raise DatasetError(f"{path}: expected a list of objects, or an object that contains one")
    return files.json_objects(path, "row", content)


def _choose(path: Path, tables: Mapping[str, Any], noun: str, setting: str, key: str | None) -> Any:  # noqa: ANN401
    """Return the rows of a file under the `key`, or those of the only table or of the only one with questions."""
    if key is not None and key not in tables:
        raise DatasetError(f"{path}: no list of rows in the {noun} {key!r}; there are {', '.join(tables) or 'none'}")
    if len(tables) > 1 and key is None and setting != "documents":
        asking = {name: rows for name, rows in tables.items() if _has_questions(rows)}
        if len(asking) == 1:
            others = ", ".join(name for name in tables if name not in asking)
            logger.warning("%s: the questions are the rows under %s, not those under %s", path, *asking, others)
            tables = asking
    if len(tables) > 1 and key is None:
        way_out = f"set dataset.{_KEYS[setting]} to one of them" if setting in _KEYS else "keep only one of them"
        raise DatasetError(f"{path}: rows under several {noun}s: {', '.join(tables)}; {way_out}")
    return next(iter(tables.values()), []) if key is None else tables[key]


def _has_questions(rows: object) -> bool:
    """Return whether rows have a field with the name of a question, of their own or in an object."""
    listed = [*(rows.values() if isinstance(rows, dict) else rows if isinstance(rows, list) else ())]
    listed = [row.fields if isinstance(row, SourceRecord) else row for row in listed]
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


def is_table(path: Path, *others: str) -> bool:
    """Tell files with named columns from others by their extension: CSV, Excel, Parquet, or one of `others`."""
    ending = Path(strip_compression(path.name)).suffix.lower()
    return ending in others or FORMATS.get(ending) in ("csv", "parquet", "xlsx")


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
