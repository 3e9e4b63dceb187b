"""Read files of exported spans, whatever their format, one record at a time; what is broken is counted and named."""

from __future__ import annotations

import gc
import json
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from shutil import copyfile
from typing import Any

import orjson

from retrievers.runs.run_formats import strip_compression
from runner.datasets import files
from runner.datasets.base import DatasetError
from runner.datasets.delimited import find_dialect, iter_csv
from runner.datasets.rows import iter_parquet
from runner.datasets.traffic.formats import read_record
from runner.datasets.traffic.searches import Traffic, TrafficCollector
from runner.datasets.traffic.spans import IdRule

_SQLITE, _PARQUET = b"SQLite format 3\0", b"PAR1"
_PAGES = ("data", "traces", "spans", "runs", "scores", "batch", "results")
"""The keys under which pages of interfaces list records."""
_WHOLE = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs", "info", "observations", "run_type")

Described = Callable[[Mapping[str, object]], Mapping[str, str]]


def read_traffic(
    paths: Iterable[Path], rules: Sequence[IdRule], describe: Described, hide: Callable[[str], str]
) -> Traffic:
    """Read files and join their spans; a file with damage gets a line in `Traffic.damage`, and the rest counts.

    Raises `DatasetError` if no file has a span or feedback.
    """
    with _keep_objects():
        return _read_traffic(paths, TrafficCollector(describe, hide), rules)


@contextmanager
def _keep_objects() -> Iterator[None]:
    """Stop the search for garbage, which has none to find here and would visit all that was read again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read_traffic(paths: Iterable[Path], collector: TrafficCollector, rules: Sequence[IdRule]) -> Traffic:
    damage, broken, unknown, requests = list[str](), 0, 0, dict[str, Any]()
    for path in paths:
        problems, others = list[str](), list[str]()
        for place, record in _guard(path, problems):
            _add_record(place, record, collector, rules, requests, problems, others)
        if problems:
            more = f"; {len(problems) - 1:,} more in this file" if len(problems) > 1 else ""
            damage.append(f"{problems[0]}{more}")
        elif others:
            damage.append(f"{others[0]}: not a span, feedback or score in a known format; {len(others):,} in this file")
        broken, unknown = broken + len(problems), unknown + len(others)
    problems = []
    for name, record in requests.items():
        _add_record(f"run {name}", record, collector, rules, {}, problems, [])
    traffic = collector.join()
    traffic.broken, traffic.unknown, traffic.damage = broken + len(problems), unknown, [*damage, *problems]
    if not traffic.spans and not traffic.feedback:
        raise DatasetError(damage[0] if damage else f"{', '.join(map(str, paths))}: no spans")
    return traffic


def _add_record(
    place: str,
    record: object,
    collector: TrafficCollector,
    rules: Sequence[IdRule],
    requests: dict[str, Any],
    problems: list[str],
    others: list[str],
) -> None:
    """Add what a record contains to the collector, else to the problems, the other records or the requests.

    Requests of LangSmith's SDK about the same run, the first and the last state of it, are merged.
    """
    if isinstance(record, Mapping) and "verb" in record and isinstance(body := record.get("body"), Mapping):
        given = {name: value for name, value in body.items() if value not in (None, {}, [])}
        requests[str(body.get("id"))] = {**requests.get(str(body.get("id")), {}), **given}
        return
    items = read_record(record, rules) if isinstance(record, Mapping) else None
    if items is None:
        others.append(place)
    for item in items or ():
        if isinstance(item, Exception):
            problems.append(f"{place}: damaged ({_describe_error(item)})")
        else:
            collector.add(item)


def _describe_error(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:100]


def _guard(path: Path, problems: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the records of a file with their places; what cannot be read is added to the problems."""
    try:
        yield from _iter_records(path, problems)
    except DatasetError as error:
        problems.append(str(error))
    except (OSError, sqlite3.Error) as error:
        problems.append(f"{path}: cannot be read ({error})")


def _iter_records(path: Path, problems: list[str]) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as file:
        start = file.read(16)
    ending = Path(strip_compression(path.name)).suffix.lower()
    if not start:
        problems.append(f"{path}: the file is empty")
    elif start.startswith(_PARQUET):
        yield from ((row.location, row.fields) for row in iter_parquet(path, rows=8_192))
    elif start == _SQLITE:
        yield from _iter_store(path)
    elif ending in (".csv", ".tsv"):
        yield from ((row.location, row.fields) for row in iter_csv(path, find_dialect(path, ",")))
    elif ending in (".pb", ".binpb"):
        yield from _iter_requests(path)
    else:
        yield from _iter_json(path, problems)


def _iter_json(path: Path, problems: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the records of JSON lines, or of one document over several lines."""
    lines = files.lines(path)
    number, line = next(lines, (0, b""))
    try:
        first = _parse(line)
    except ValueError as error:
        rest = list(chain([line], (other for _, other in lines)))
        try:
            yield from _unwrap(str(path), _parse(b"".join(rest)))
        except ValueError:
            if line.strip() in (b"[", b"{") or len(rest) == 1:
                problems.append(f"{path}:{number}: not JSON ({error})")
                return
            yield from _iter_lines(path, enumerate(rest, start=number), problems)
        return
    yield from _unwrap(f"{path}:{number}", first)
    yield from _iter_lines(path, lines, problems)


def _iter_lines(path: Path, lines: Iterable[tuple[int, bytes]], problems: list[str]) -> Iterator[tuple[str, Any]]:
    for number, line in lines:
        try:
            value = _parse(line)
        except ValueError as error:
            problems.append(f"{path}:{number}: not JSON ({error})")
        else:
            yield from _unwrap(f"{path}:{number}", value)


def _parse(line: bytes) -> Any:  # noqa: ANN401 (any JSON)
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        try:
            return json.loads(line)  # which knows NaN
        except (ValueError, RecursionError):
            raise ValueError(str(error)) from None


def _unwrap(place: str, value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (any JSON)
    """Yield the records in a list, or in a page of an interface."""
    if isinstance(value, dict) and not any(key in value for key in _WHOLE):
        value = next((value[key] for key in _PAGES if isinstance(value.get(key), list)), value)
    if isinstance(value, list):
        for inner in value:
            yield from _unwrap(place, inner)
    else:
        yield place, value


def _iter_requests(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the requests of a file in protobuf: one, or several, each after its length in four bytes."""
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # it has no types
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    with files.open_file(path) as file:
        content = file.read()
    place, number = 0, 0
    has_lengths = len(content) > 4 and struct.unpack(">I", content[:4])[0] <= len(content) - 4
    while place < len(content):
        number += 1
        size = struct.unpack(">I", content[place : place + 4])[0] if has_lengths and place + 4 <= len(content) else -1
        begin = place + 4 if has_lengths else 0
        place = begin + size if has_lengths else len(content)
        try:
            if has_lengths and (size < 0 or place > len(content)):
                raise ValueError("the file ends within it")
            request = ExportTraceServiceRequest.FromString(content[begin:place])
        except (DecodeError, ValueError) as error:
            raise DatasetError(f"{path}, request {number}: not OTLP in protobuf ({error})") from None
        yield f"{path}, request {number}", MessageToDict(request)


@contextmanager
def _open_store(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite store for reading, without changing a file: MLflow itself would migrate it.

    If the newest content is still in the log beside it, a copy of both is opened.
    """
    log = path.with_name(f"{path.name}-wal")
    with tempfile.TemporaryDirectory() as folder:
        if log.exists() and log.stat().st_size:
            copy = Path(folder) / "store.db"
            copyfile(path, copy)
            copyfile(log, copy.with_name("store.db-wal"))
            address = copy.as_uri()
        else:
            address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as database:
            yield database


def _iter_store(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the traces of an MLflow store as MLflow writes them in JSON."""
    with _open_store(path) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "trace_info" not in tables or "spans" not in tables:
            raise DatasetError(f"{path}: a SQLite database without traces of MLflow (tables trace_info and spans)")
        for (trace,) in database.execute("SELECT request_id FROM trace_info ORDER BY timestamp_ms, request_id"):
            content = database.execute(
                "SELECT content FROM spans WHERE trace_id = ? ORDER BY start_time_unix_nano", (trace,)
            )
            info = {
                "trace_id": trace,
                "tags": _read_pairs(database, "trace_tags", trace, tables),
                "trace_metadata": _read_pairs(database, "trace_request_metadata", trace, tables),
                "assessments": list(_iter_assessments(database, trace)) if "assessments" in tables else [],
            }
            spans = [_parse_content(text) for (text,) in content]
            yield f"{path}, trace {trace}", {"info": info, "data": {"spans": spans}}


def _parse_content(text: str) -> Any:  # noqa: ANN401 (any JSON)
    try:
        return orjson.loads(text)
    except (ValueError, TypeError):
        return None  # counts as damaged


def _read_pairs(database: sqlite3.Connection, table: str, trace: str, tables: set[str]) -> dict[str, str]:
    if table not in tables:
        return {}
    return dict(database.execute(f"SELECT key, value FROM {table} WHERE request_id = ?", (trace,)))  # noqa: S608 (a constant)


def _iter_assessments(database: sqlite3.Connection, trace: str) -> Iterator[dict[str, Any]]:
    rows = database.execute(
        "SELECT assessment_id, name, span_id, source_type, value, valid FROM assessments WHERE trace_id = ? AND "
        "assessment_type = 'feedback' ORDER BY created_timestamp",
        (trace,),
    )
    for identifier, name, span, source, value, valid in rows:
        yield {
            "assessment_id": identifier, "assessment_name": name, "span_id": span, "valid": bool(valid),
            "source": {"source_type": source}, "feedback": {"value": _parse_content(value)},
        }  # fmt: skip
