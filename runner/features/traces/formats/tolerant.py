"""Read JSON from files that may be larger than memory, truncated or damaged, and count what is skipped."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from pydantic_core import from_json

from runner.features.traces.formats.recording import DEEPEST, Recording, is_nested_deeper

_BLOCK = 1 << 18
_LONGEST = 1 << 25  # bytes of a line or an element; anything longer is not a trace
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"

_LEVELS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
# Everything up to a bracket, and the bracket; never one within a string, which ends at its line's end at the latest.
_BRACKET = re.compile(rb'((?:[^"{}\[\]]++|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?+)*+)([{}\[\]])', re.S)


class TolerantFile(io.RawIOBase):
    """A file, decompressed if gzipped, that ends where it can no longer be read; `fault` then gives the reason."""

    fault: str | None = None
    _file: io.BufferedReader | gzip.GzipFile | io.BytesIO = io.BytesIO()  # to close where opening failed

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        if self._file.peek(len(_GZIP)).startswith(_GZIP):
            self._file.close()
            self._file = gzip.open(path)  # noqa: SIM115  # closed by `close`

    def readable(self) -> bool:
        """Return True, as a buffered reader requires."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  # any writable buffer; the standard library has no type
        """Read the next part into a buffer, and return its size: 0 at the end."""
        try:
            content = self._file.read1(len(buffer))
        except (OSError, EOFError, zlib.error) as error:
            self.fault = str(error)
            return 0
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def read_lines(file: io.BufferedReader[Any], recording: Recording[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a file of JSON lines."""
    while line := file.readline(_LONGEST):
        if len(line) == _LONGEST and not line.endswith(b"\n"):
            recording.count_loss("lines that are too long")
            while line and not line.endswith(b"\n"):
                line = file.readline(_LONGEST)
        elif not line.isspace() and (record := _parse_object(line, "lines", recording)) is not None:
            yield record


def read_members(file: io.BufferedReader[Any], recording: Recording[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (member name, object) for the objects that are members of a JSON document or elements of its lists.

    A list is never held in memory as a whole. A damaged element costs only itself: brackets and strings show where the
    next one starts, and an unclosed string ends with its line.
    """
    content, scanned, begin, depth, name = b"", 0, -1, 0, ""
    outside = 0  # the depth around the object being read
    # Read as much again as is buffered, so that a long string is not scanned once for each block.
    while (block := file.read(max(_BLOCK, len(content)))) and len(content) < _LONGEST:
        content += block
        while token := _BRACKET.match(content, scanned):
            before, bracket = token.groups()
            scanned = token.end()
            if depth == 1 and begin < 0:
                name = before.rpartition(b'"')[0].rpartition(b'"')[2].decode("utf-8", "replace")
            if bracket == b"{" and depth and begin < 0:
                begin, outside = scanned - 1, depth
            depth += _LEVELS[bracket]
            if depth < 0:
                recording.count_loss("unmatched closing brackets")
                depth = 0
            if begin >= 0 and depth == outside:
                if (record := _parse_object(content[begin:scanned], "steps", recording)) is not None:
                    yield name, record
                begin = -1
        start = begin if begin >= 0 else scanned
        content, scanned, begin = content[start:], scanned - start, min(begin, 0)
    if depth or block:
        problem = "documents with steps that are too long" if block else "truncated or damaged documents"
        recording.count_loss(problem)


def _parse_object(content: bytes, kind: str, recording: Recording[Any]) -> Mapping[str, Any] | None:
    content = content.removeprefix(_BYTE_ORDER_MARK)
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        readable = content.decode("utf-8", "replace")
        value = _parse_leniently(readable)
        if isinstance(value, dict) and readable.encode() != content:
            recording.count_loss(f"{kind} with bytes that are not UTF-8")
    if not isinstance(value, dict):
        recording.count_loss(f"{kind} that are not JSON objects")
    elif content.count(b"{") + content.count(b"[") > DEEPEST and is_nested_deeper(value, DEEPEST):
        recording.count_loss(f"{kind} nested deeper than {DEEPEST}")
    else:
        return value
    return None


def _parse_leniently(content: str) -> object:
    """Parse what strict JSON rejects: control characters, NaN, and lone surrogates, which become "?"."""
    try:
        value = json.loads(content, strict=False)
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def restore(value: object, recording: Recording[Any]) -> Any:  # noqa: ANN401  # JSON
    """Return a value; for one that was cut to save space, return what its preview still contains."""
    if not (isinstance(value, dict) and "_corpus_truncated" in value):
        return value
    recording.count_loss("truncated values")
    try:
        return from_json(str(value.get("preview")).removesuffix("...[truncated]..."), allow_partial="trailing-strings")
    except ValueError:
        return None


def fields(value: object) -> Mapping[str, Any]:
    """Return an object's fields; an empty mapping for anything else."""
    return value if isinstance(value, dict) else {}


def elements(value: object) -> list[Any]:
    """Return a list's elements; an empty list for anything else."""
    return value if isinstance(value, list) else []


def objects(value: object, kind: str, recording: Recording[Any]) -> list[Mapping[str, Any]]:
    """Return the objects of a list that may be absent."""
    if value is None:
        return []
    if not isinstance(value, list):
        recording.count_loss(f"{kind} that are not a list")
        return []
    records: list[Mapping[str, Any]] = [element for element in value if isinstance(element, dict)]
    recording.count_loss(f"{kind} that are not objects", len(value) - len(records))
    return records


def text(content: object) -> str:
    """Return a result as text: a string unchanged, the text blocks of a list, and anything else as JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        blocks = (block.get("text") if isinstance(block, dict) else block for block in content)
        return "\n".join(block for block in blocks if isinstance(block, str))
    return json.dumps(content, ensure_ascii=False)


def total(usage: object, *names: str) -> int | None:
    """Return the sum of the named counts; None if there are none."""
    counts = [fields(usage).get(name) for name in names]
    usable = [count for count in counts if isinstance(count, int) and 0 <= count < 1 << 53]
    return sum(usable) if usable else None


def amount(value: object, scale: float = 1.0) -> float | None:
    """Return a non-negative number divided by a scale; None for anything else."""
    return value / scale if isinstance(value, int | float) and 0 <= value < 1 << 53 else None


def count_unknown(record: Mapping[str, Any], recording: Recording[Any]) -> None:
    """Count a record of an unknown kind, or one that marks a gap where records were left out."""
    trimmed = fields(record.get("extra")).get("trimmed") is True
    recording.count_loss("gaps of omitted steps" if trimmed else "steps of an unknown kind")
