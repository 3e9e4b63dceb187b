"""Read what formats share: lines and JSON, plain or compressed; errors name the place.

Nothing here depends on the files of a dataset or the meaning of their fields.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedReader
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from retrievers.runs.run_formats import COMPRESSIONS
from retrievers.strict_values import BYTE_ORDER_MARK, parse_id, parse_json, parse_whole, show_value
from runner.config.addresses import is_address
from runner.datasets.base import DatasetError
from runner.datasets.variants import no_query_has


def _open_arrow(compression: str, file: BufferedReader) -> BufferedReader:
    """Open content compressed in a way that the standard library cannot read."""
    import pyarrow

    return BufferedReader(pyarrow.input_stream(file, compression=compression))


_OPENERS: Mapping[bytes, Callable[[BufferedReader], Any]] = {
    b"\x1f\x8b": gzip.open,
    **{b"BZh%d1AY&SY" % level: bz2.open for level in range(1, 10)},
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": partial(_open_arrow, "zstd"),
    b"\x04\x22\x4d\x18": partial(_open_arrow, "lz4"),
}
"""How to open compressed content, by its first bytes."""
_NOT_TEXT = {
    b"PK\x03\x04": "a zip archive or a document of an office program; unpack it, or save it as text",
    b"PAR1": "a Parquet file; rename it to .parquet, or set dataset=parquet",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}
"""The first bytes of files that are often mistaken for text, with advice for each."""
_LARGEST_GRADE = 2**31 - 1


PlaceTable = Literal["document", "query", "judgment"]
Place = tuple[str, tuple[str, ...]]
"""A location, as FILE:LINE, and the ids there: of a document or a query, or of a judgment's query and document."""


class SourceRecord(NamedTuple):
    """The fields of one line, row or object, with its location: `place` and `number` start every error message."""

    place: str
    number: int
    fields: Mapping[str, Any]

    @property
    def location(self) -> str:
        """Return the file and the line, row or position."""
        return f"{self.place}{self.number}"

    def fault(self, problem: str) -> DatasetError:
        """Return an error that names the location of the record."""
        return DatasetError(f"{self.location}: {problem}")

    def value(self, *names: str) -> object:
        """Return the first existing field of these names."""
        for name in names:
            if name in self.fields:
                return self.fields[name]
        wanted = " or ".join(repr(name) for name in names)
        raise self.fault(f"{wanted} is missing; the fields are {', '.join(self.fields) or 'none'}")

    def identifier(self, *names: str) -> str:
        """Return a field that is an id: non-empty text or a whole number."""
        value = self.fields.get(names[0])
        if type(value) is str and value:
            return value
        return self.parse_id(names[0], self.value(*names))

    def parse_id(self, name: str, value: object) -> str:
        """Return a value in the field with this name as an id."""
        try:
            return parse_id(value)
        except ValueError:
            shown = show_value(value)
            raise self.fault(f"{name!r} is {shown}; an id must be text or a whole number") from None

    def text(self, *names: str) -> str:
        """Return a field that is text; null counts as empty text."""
        value = self.fields.get(names[0])
        if isinstance(value, str):  # the usual case, fast
            return value
        value = self.value(*names)
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        raise self.fault(f"{names[0]!r} is {show_value(value)}; it must be text")

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a field that is an object; a missing one is empty."""
        value = self.fields.get(name) or {}
        if not isinstance(value, dict):
            raise self.fault(f"{name!r} is not a JSON object")
        return value

    def array(self, name: str, required: bool = False) -> list[Any]:
        """Return a field that is a list; unless it is `required`, a missing one is empty."""
        value = self.value(name) if required else self.fields.get(name) or []
        if not isinstance(value, list):
            raise self.fault(f"{name!r} is not a list")
        return value

    def objects(self, name: str, required: bool = False) -> list[SourceRecord]:
        """Return a field that is a list of objects, as `array`, each with its place in the list."""
        listed = self.array(name, required)
        if not all(isinstance(value, dict) for value in listed):
            raise self.fault(f"{name!r} is not a list of JSON objects")
        return [SourceRecord(f"{self.location}, {name} ", n, value) for n, value in enumerate(listed, start=1)]

    def grade(self, name: str, convert: Callable[[object], int] | None = None) -> int:
        """Return a field that is a grade: a whole number, or what `convert` makes of it."""
        value = self.value(name)
        try:
            return (convert or grade_of)(value)
        except ValueError as error:
            raise self.fault(str(error)) from None


NO_FIELDS: Mapping[str, str] = MappingProxyType({})
"""No fields of queries that settings name."""


def with_named_fields(
    records: Sequence[SourceRecord], metadata: Sequence[Mapping[str, Any]], named: Mapping[str, str]
) -> Sequence[Mapping[str, Any]]:
    """Return the metadata of queries, adding the fields that settings name if they are fields of the record itself.

    `named` are the fields by setting. A record's own field takes precedence over one in its metadata. Raises
    `DatasetError` if no query has a field.
    """
    if not named:
        return metadata
    together = [
        {**about, **{field: record.fields[field] for field in named.values() if field in record.fields}}
        for record, about in zip(records, metadata or [{}] * len(records), strict=True)
    ]
    for setting, field in named.items():
        if records and not any(about.get(field) not in (None, "") for about in together):
            raise DatasetError(no_query_has(setting, field, metadata, [record.fields for record in records]))
    return together


def grade_of(value: object) -> int:
    """Return a grade of any type as a whole number; raises `ValueError`."""
    with suppress(ValueError):
        grade = parse_whole(value)
        if abs(grade) <= _LARGEST_GRADE:
            return grade
    raise ValueError(f"the grade {show_value(value)} is not a whole number up to {_LARGEST_GRADE}")


def resolve_path(path: str | Path, setting: str) -> Path:
    """Return the path of a file or folder, or of its compressed file if only that exists; an error names the setting.

    Files in an object store are copied to this machine.
    """
    plain = find_copy(str(path), setting)
    if not plain.exists():
        if packed := find_compressed(plain):
            return packed
        raise DatasetError(f"dataset.{setting}={path if is_address(str(path)) else plain}: no such file or folder")
    return plain


@contextmanager
def name_settings(group: str) -> Iterator[None]:
    """Name the settings of a dataset in errors by another group in which they were set, such as `traffic.path`."""
    try:
        yield
    except DatasetError as error:
        raise DatasetError(re.sub(r"\bdataset\.(?=\w+=)", f"{group}.", str(error))) from None


def find_compressed(path: Path) -> Path | None:
    """Return the file with the extension of a compression added to its name, if there is one."""
    candidates = (path.with_name(path.name + ending) for ending in COMPRESSIONS)
    return next((file for file in candidates if file.exists()), None)


def find_copy(path: str, setting: str) -> Path:
    """Return a local path, or the path of the local copy of a remote address; an error names the setting."""
    local = Path(path).expanduser()
    if not is_address(path) and local.exists():
        return local
    from runner.datasets.mirror import address_of, mirror  # imported only here, as most data are local

    address = path if is_address(path) else address_of(local)  # a file next to a copy may not be copied yet
    if address is None:
        return local
    try:
        return mirror(address)
    except ValueError as error:
        raise DatasetError(f"dataset.{setting}={path}: {error}") from None
    except OSError as error:
        raise DatasetError(f"dataset.{setting}={path}: cannot be read ({error.strerror or error})") from None


def matching(pattern: str, setting: str) -> list[Path]:
    """Return the files that a setting names, ordered by path: a file, those of a folder, or those that match a glob."""
    path = find_copy(pattern, setting)
    if path.is_dir():
        files: Iterable[Path] = path.rglob("*")
    elif any(character in str(path) for character in "*?[") and not path.exists():
        files = Path(path.anchor).glob(str(path.relative_to(path.anchor)))
    else:
        return [resolve_path(pattern, setting)]
    chosen = sorted(file for file in files if file.is_file() and not file.name.startswith("."))
    if not chosen:
        raise DatasetError(f"dataset.{setting}={pattern if is_address(pattern) else path}: no file matches")
    return chosen


@contextmanager
def open_file(path: Path, also: Collection[bytes] = ()) -> Iterator[BufferedReader]:
    """Open a file, decompressed and past a byte order mark; read errors name the file.

    Its first bytes, not its name, say whether it is compressed; `also` are first bytes that are text for the caller. A
    FIFO or device is rejected, because opening it may block for ever, except paths that the shell passes: /dev/stdin,
    /dev/fd/63.
    """
    if (path.is_fifo() or path.is_char_device() or path.is_block_device()) and not _is_passed(path):
        raise DatasetError(f"{path}: expected a regular file, found a FIFO or a device; save the data to a file first")
    try:
        with _open_content(path) as file:
            start = file.peek(4)
            mistaken = next((w for m, w in _NOT_TEXT.items() if start.startswith(m) and m not in also), None)
            if mistaken:
                raise DatasetError(f"{path}: the file is {mistaken}")
            if file.peek(len(BYTE_ORDER_MARK)).startswith(BYTE_ORDER_MARK):
                file.read(len(BYTE_ORDER_MARK))
            yield file
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DatasetError(f"{path}: cannot be read ({reason})") from None


@contextmanager
def _open_content(path: Path) -> Iterator[BufferedReader]:
    with path.open("rb") as file:
        start = file.peek(10)
        unpack = next((unpack for magic, unpack in _OPENERS.items() if start.startswith(magic)), None)
        if unpack is None:
            yield file
            return
        with unpack(file) as unpacked:
            yield unpacked


def _is_passed(path: Path) -> bool:
    """Tell whether a path, before links are followed, is an open file descriptor of this process."""
    return path == Path("/dev/stdin") or path.parent in (Path("/dev/fd"), Path("/proc/self/fd"))


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the non-blank lines of a file, with their numbers from 1; without any LF, lines end with CR."""
    with open_file(path) as file:
        for number, line in enumerate(file, start=1):
            if number == 1 and b"\r" in line and not line.endswith(b"\n"):
                yield from ((n, part) for n, part in enumerate(line.split(b"\r"), start=1) if part.strip())
            elif not line.isspace():
                yield number, line


def text_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield the non-blank lines of a text file, without line breaks, with their numbers from 1."""
    for number, line in lines(path):
        yield number, decode_text(strip_end(line, f"{path}:{number}"), f"{path}:{number}", encoding)


def strip_end(line: bytes, place: str) -> bytes:
    """Return a line without its line break; an error names the place."""
    plain = line.rstrip(b"\r\n")
    if b"\r" in plain:
        raise DatasetError(f"{place}: a carriage return within the line; end every line with LF or CRLF")
    return plain


def decode_text(content: bytes, place: str, encoding: str = "utf-8") -> str:
    """Decode text; an error names the place."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        way_out = "" if encoding != "utf-8" else "; save it as UTF-8 (it may be Latin-1 or Windows-1252)"
        raise DatasetError(f"{place}: not {encoding} text{way_out}") from None
    except LookupError:
        raise DatasetError(
            f"dataset.encoding={encoding}: unknown encoding; set, for example, utf-8 or latin-1"
        ) from None


def decode_content(content: bytes, path: Path, encoding: str = "utf-8") -> str:
    """Decode the text of a file; an error names the line."""
    place = str(path)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        place = f"{path}:{line}"
    except LookupError:
        pass
    return decode_text(content, place, encoding)


def json_lines(path: Path) -> Iterator[SourceRecord]:
    """Yield the objects of a JSONL file; lines that begin with // or # are comments."""
    place = f"{path}:"
    for number, line in lines(path):
        try:
            value = parse_json(line)
        except ValueError as error:
            if is_comment(line):
                continue
            decode_text(line, f"{path}:{number}")  # report invalid UTF-8 as such
            raise DatasetError(f"{path}:{number}: {error}") from None
        yield _record(place, number, value)


def is_comment(line: bytes) -> bool:
    """Return whether a line of JSONL is a comment."""
    return line.lstrip().startswith((b"//", b"#"))


def json_content(path: Path) -> object:
    """Return the content of a JSON file."""
    with open_file(path) as file:
        content = file.read()
    try:
        return parse_json(content)
    except ValueError as error:
        decode_content(content, path)  # report invalid UTF-8 as such
        raise DatasetError(f"{path}: {error}") from None


def json_objects(path: Path, kind: str, values: Iterable[object]) -> list[SourceRecord]:
    """Return the objects in a list of a JSON file; errors name their kind and their number, from 1."""
    return [_record(f"{path}, {kind} ", number, value) for number, value in enumerate(values, start=1)]


def _record(place: str, number: int, value: object) -> SourceRecord:
    if not isinstance(value, dict):
        raise DatasetError(f"{place}{number}: expected a JSON object, found {show_value(value)}")
    return SourceRecord(place, number, value)
