"""The form in which the spans of all formats are read, and how ids, times and documents in them are understood.

Nothing here depends on a format.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from array import array
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal

import orjson

from retrievers.strict_values import find_line_break
from runner.datasets.files import NO_FIELDS

SpanKind = Literal["retriever", "reranker", ""]
IdRule = Literal["id", "metadata", "source", "text"]
"""Where the id of a served document comes from."""
ID_RULES: tuple[IdRule, ...] = ("id", "metadata", "source", "text")
FeedbackKind = Literal["person", "model", "code", "api"]
"""Who gave feedback; `api`: a program that does not say for whom."""

UNRECORDED = "unrecorded:"
"""The beginning of the id of a document whose attributes were dropped; it keeps its rank."""
REDACTED = "__REDACTED__"

_DEEPEST = 10_000
"""The lowest rank in a list of documents; a higher index is damage."""
_BEGINS_JSON = re.compile(r'\s*(?:\{\s*["}]|\[\s*["{\[\]])')
_QUERY_KEYS = ("query", "question", "input", "query_str", "search_query", "text", "q")
_LIST_KEYS = ("documents", "output", "outputs", "results", "hits", "nodes", "source_documents", "matches")
_TEXT_KEYS = ("content", "page_content", "text", "body")
_ID_KEYS = ("id", "_id", "id_", "node_id")
_METADATA_ID_KEYS = ("doc_id", "document_id", "chunk_id", "id")
_SOURCE_KEYS = ("source", "doc_uri", "url", "file_path")
_PART_KEYS = ("chunk", "chunk_index", "page")


class TruncatedError(ValueError):
    """A text is JSON that was cut."""


@dataclass(slots=True)
class Span:
    """A span, of which only one with a `kind` has all fields; times are nanoseconds since 1970, 0 if unknown.

    `hits` are None if they were not recorded, else a ranking as `ServedDocuments.pack` returns it, as are the
    `candidates` of a reranker. `problem` is why something is missing: redacted, truncated or dropped. `version` orders
    repetitions of the same span, `weight` is the number of spans that a sampled one stands for, and `context` are
    attributes of the span, its resource and its trace.
    """

    trace: bytes
    id: bytes
    parent: bytes = b""
    kind: SpanKind = ""
    query: str = ""
    hits: bytes | None = None
    candidates: bytes | None = None
    start_ns: int = 0
    end_ns: int = 0
    error: str = ""
    problem: str = ""
    user: str = ""
    session: str = ""
    version: str = ""
    weight: float = 1.0
    context: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)


@dataclass(slots=True)
class Feedback:
    """A judgment of a span, or of a whole trace if `span` is empty; later ones with the same `key` replace it.

    `value` is a number, or None if only a label was given.
    """

    trace: bytes
    span: bytes
    name: str
    value: float | None
    label: str
    kind: FeedbackKind
    key: str = ""


def normalise_id(value: object) -> bytes:
    """Return the id of a trace or span as bytes, the same for hex, base64 and UUIDs; empty for none."""
    if not isinstance(value, str) or not value:
        return b""
    plain = value.removeprefix("tr-").removeprefix("0x")
    plain = plain.replace("-", "") if len(plain) == 36 else plain
    with suppress(ValueError):
        if len(plain) in (16, 32):
            return bytes.fromhex(plain)
        if len(plain) in (12, 24) and plain.endswith("="):
            return b64decode(plain, validate=True)
    return value.encode(errors="replace")


def parse_time(value: object) -> int:
    """Return a time in nanoseconds since 1970 from a number of any unit or a text, which is UTC without a zone.

    Returns 0 for none; raises `ValueError`.
    """
    if value is None or value == "":
        return 0
    if isinstance(value, str):
        if value.isascii() and value.isdecimal():
            return int(value) if len(value) == 19 else parse_time(int(value))
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1e6) * 1000
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63:
        raise ValueError(f"{str(value)[:40]} is not a time")
    scale = 1 if value >= 1e17 else 1_000 if value >= 1e14 else 1_000_000 if value >= 1e11 else 1_000_000_000
    return int(value * scale)


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 (any JSON)
    """Return the content of JSON, in which numbers may be NaN; raises `ValueError`."""
    try:
        return orjson.loads(text)
    except ValueError as error:
        try:
            return json.loads(text)  # which knows NaN
        except (ValueError, RecursionError):
            raise ValueError(str(error)) from None


def parse_text(text: str) -> Any:  # noqa: ANN401 (any JSON)
    """Return the content of a text that looks like JSON, else the text; raises `TruncatedError`."""
    try:
        return parse_json(text) if _BEGINS_JSON.match(text) else text
    except ValueError:
        raise TruncatedError from None


def find_query(value: object, depth: int = 3) -> str:
    """Return the query in the input of a function: a text, the field that is called so, or the only text.

    Returns "" if there is none; raises `TruncatedError`.
    """
    if isinstance(value, str):
        parsed = parse_text(value)
        return value.strip() if isinstance(parsed, str) else find_query(parsed, depth - 1)
    if isinstance(value, dict) and depth:
        named = next((value[name] for name in _QUERY_KEYS if value.get(name)), None)
        if named is not None:
            return find_query(named, depth - 1)
        texts = [text for text in value.values() if isinstance(text, str) and text]
        nested = [inner for inner in value.values() if isinstance(inner, dict)]
        return texts[0].strip() if len(texts) == 1 else find_query(nested[0], depth - 1) if len(nested) == 1 else ""
    if isinstance(value, list) and len(value) == 1 and depth:
        return find_query(value[0], depth - 1)
    return ""


def find_documents(value: object, depth: int = 3) -> Sequence[Any] | None:
    """Return the list of documents in the output of a function, None if there is none; raises `TruncatedError`."""
    if isinstance(value, str):
        parsed = parse_text(value)
        return None if isinstance(parsed, str) else find_documents(parsed, depth - 1)
    if isinstance(value, dict) and depth:
        named = [value[name] for name in _LIST_KEYS if isinstance(value.get(name), list | dict | str)]
        named = named or [inner for inner in value.values() if isinstance(inner, list)]
        return find_documents(named[0], depth - 1) if named else None
    if isinstance(value, list):
        is_batch = len(value) == 1 and isinstance(value[0], list) and all(isinstance(row, dict) for row in value[0])
        return value[0] if is_batch else value
    return None


def collect_list(attributes: Mapping[str, Any], prefix: str, inner: str) -> list[dict[str, Any] | None]:
    """Return the objects that attributes such as PREFIX.0.INNER.id hold, by index; None where an index is missing.

    The value at PREFIX may be the list itself. Raises `ValueError` for an index that no list has.
    """
    whole = attributes.get(prefix)
    if isinstance(whole, list):
        return [{name.removeprefix(inner): value for name, value in row.items()} for row in whole]
    rows: dict[int, dict[str, Any]] = {}
    for key in attributes:
        if (place := _split_key(key, prefix, inner)) is not None:
            index, head, tail = place
            row = rows.setdefault(index, {})
            if tail:
                row.setdefault(head, {})[tail] = attributes[key]
            else:
                row[head] = attributes[key]
    if rows and max(rows) >= _DEEPEST:
        raise ValueError(f"a list has the index {max(rows)}")
    return [rows.get(index) for index in range(max(rows) + 1)] if rows else []


@lru_cache(maxsize=1 << 14)  # the attributes of all spans have few names
def _split_key(key: str, prefix: str, inner: str) -> tuple[int, str, str] | None:
    """Return the index, the field and the rest of the path in a key such as PREFIX.0.INNER.id; None for another key."""
    if not key.startswith(f"{prefix}."):
        return None
    index, _, name = key[len(prefix) + 1 :].partition(".")
    head, _, tail = name.removeprefix(inner).partition(".")
    return (int(index), head, tail) if index.isascii() and index.isdecimal() else None


class ServedDocuments:
    """Numbers the documents in rankings: `numbers` by id, `texts` (the newest, "" if unknown) and `sources` by number.

    `rules` say where the id of a document may come from, by preference, and `sources` where it came from.
    """

    def __init__(self, rules: Sequence[IdRule]) -> None:
        self._rules = rules
        self.numbers: dict[str, int] = {}
        self.texts: list[str] = []
        self.sources: list[str] = []

    def pack(self, rows: Sequence[Any]) -> bytes:
        """Return a ranking of documents in any form: numbers (int32; -1: not recorded), then scores (float32, or NaN).

        A row that is None stands for a document that was not recorded.
        """
        numbers, scores = array("i"), array("f")
        for row in rows:
            identifier, rule, score, text = self._read(row)
            number = self.numbers.setdefault(identifier, len(self.numbers)) if identifier else -1
            if number == len(self.texts):
                self.texts.append(text)
                self.sources.append(rule)
            elif text and identifier:
                self.texts[number] = text
            numbers.append(number)
            scores.append(score)
        return numbers.tobytes() + scores.tobytes()

    def _read(self, row: Any) -> tuple[str, str, float, str]:  # noqa: ANN401 (any JSON)
        """Return the id of a document, "" if none was recorded, the rule that gave it, its score and its text."""
        if isinstance(row, dict) and self._rules[0] == "id":  # by far the most frequent form
            first, score, text = row.get("id"), row.get("score"), row.get("content")
            has_id = isinstance(first, str) and first.isprintable() and first != ""
            if has_id and isinstance(score, float) and math.isfinite(score) and isinstance(text, str):
                return str(first), "id", score, text
        if isinstance(row, list | tuple) and len(row) == 2 and not isinstance(row[1], list | dict):
            identifier, rule, _, text = self._read(row[0])
            return identifier, rule, _parse_score(row[1]), text
        if row is None:
            return "", "", math.nan, ""
        if isinstance(row, str):
            row = {"content": row}
        if not isinstance(row, dict):
            raise ValueError(f"a document is {str(row)[:40]}")
        wrapper = "document" if "document" in row else "node"
        if isinstance(row.get(wrapper), dict):
            row = {**row[wrapper], **{name: value for name, value in row.items() if name != wrapper}}
        text = next((row[name] for name in _TEXT_KEYS if isinstance(row.get(name), str)), "")
        metadata = parse_object(row.get("metadata")) or row
        score = _parse_score(metadata.get("score") if row.get("score") is None else row["score"])
        ids = ((_find_id(rule, row, metadata, text), rule) for rule in self._rules)
        return (*next(filter(lambda pair: pair[0], ids), ("", "")), score, text)


def list_numbers(hits: bytes) -> list[int]:
    """Return the numbers of the documents in a packed ranking."""
    return list(memoryview(hits)[: len(hits) // 2].cast("i"))


def _find_id(rule: IdRule, row: Mapping[str, Any], metadata: Mapping[str, Any], text: str) -> str:
    if rule == "id":
        return _first(row, _ID_KEYS)
    if rule == "metadata":
        return _first(metadata, _METADATA_ID_KEYS) or _first(row, _METADATA_ID_KEYS)
    if rule == "source":
        source, part = _first(metadata, _SOURCE_KEYS), _first(metadata, _PART_KEYS)
        return f"{source}#{part}" if source and part else source
    digest = hashlib.sha256(normalise_text(text).encode(errors="replace")).hexdigest()  # changes when the text does
    return f"text:{digest[:16]}" if text else ""


def _first(row: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first field that is an id, as text; "" if there is none."""
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value and find_line_break(value) is None:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, float) and value.is_integer():  # in Parquet, a column with gaps
            return str(int(value))
    return ""


def _parse_score(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return math.nan
    return float(value)


def normalise_text(text: str) -> str:
    """Return a text in lower case with single spaces, by which queries are the same."""
    return " ".join(text.casefold().split())


@lru_cache(maxsize=1 << 16)
def hash_name(name: str, salt: str) -> str:
    """Return a pseudonym of a user, session or tenant: a keyed hash of 12 hex digits; "" for none."""
    if not name:
        return ""
    return hashlib.blake2b(name.encode(errors="replace"), key=salt.encode()[:64], digest_size=6).hexdigest()


def parse_object(value: object) -> Mapping[str, Any]:
    """Return an object, which in Parquet and CSV is JSON in a text; {} for anything else."""
    with suppress(TruncatedError):
        value = parse_text(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) else {}


def find_attribute(context: Mapping[str, Any], name: str) -> str:
    """Return an attribute, or a field of the metadata among the attributes, as text; "" for none."""
    value = context.get(name)
    if value is None and (about := context.get("metadata")):
        value = parse_object(about).get(name)
    if value is None:
        value = context.get(f"langfuse.trace.metadata.{name}", context.get(f"metadata.{name}"))
    return str(value).strip('"') if isinstance(value, str | int | float) else ""
