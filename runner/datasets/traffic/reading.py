"""Read files of exported spans, whatever their format, one record at a time; what is broken is counted and named."""

from __future__ import annotations

import gc
import sqlite3
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from io import BytesIO
from itertools import chain
from pathlib import Path
from shutil import copyfile
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import orjson

from retrievers.runs.run_formats import strip_compression
from runner.datasets import files
from runner.datasets.base import DatasetError
from runner.datasets.delimited import find_dialect, iter_csv
from runner.datasets.rows import iter_parquet
from runner.datasets.traffic.formats import read_record
from runner.datasets.traffic.searches import Traffic, TrafficCollector
from runner.datasets.traffic.spans import parse_json

_SQLITE, _PARQUET, _ZSTD = b"SQLite format 3\0", b"PAR1", b"\x28\xb5\x2f\xfd"
_PAGES = ("data", "traces", "spans", "runs", "scores", "batch", "results")
"""The keys under which pages of interfaces list records."""
_WHOLE = ("resourceSpans", "resourceLogs", "info", "observations", "run_type")


def read_traffic(places: Sequence[Path | str], collector: TrafficCollector) -> Traffic:
    """Read files or servers and join their spans; damage gets a line each in `Traffic.damage`, and the rest counts.

    Raises `DatasetError` if none has a span or feedback.
    """
    was_on = gc.isenabled()
    gc.disable()  # the search for garbage has none to find, and would visit all that was read again and again
    try:
        return _read_traffic(places, collector)
    finally:
        if was_on:
            gc.enable()


def _read_traffic(places: Sequence[Path | str], collector: TrafficCollector) -> Traffic:
    problems, others = defaultdict[Path | str, list[str]](list), defaultdict[Path | str, list[str]](list)
    for path, place, record in _merge_requests(_iter_places(places)):
        items = read_record(record, collector.documents) if isinstance(record, Mapping) else None
        if isinstance(record, Exception):
            items = iter([record])
        elif items is None:
            others[path].append(place)
        for item in items or ():
            if isinstance(item, DatasetError):
                problems[path].append(str(item))
            elif isinstance(item, Exception):
                reason = " ".join(f"{type(item).__name__}: {item}".split())[:100]
                problems[path].append(f"{place}: damaged ({reason})")
            else:
                collector.add(item)
    traffic = collector.join()
    traffic.broken, traffic.unknown = (sum(map(len, lines.values())) for lines in (problems, others))
    traffic.damage = [line for path in places for line in _describe_damage(problems[path], others[path])]
    if not traffic.spans and not traffic.feedback:
        raise DatasetError(next(iter(traffic.damage), f"{', '.join(map(str, places))}: no spans"))
    return traffic


def _describe_damage(problems: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    """Yield the line about a file, if it needs one."""
    if problems:
        yield f"{problems[0]}; {len(problems) - 1:,} more in this file" if len(problems) > 1 else problems[0]
    elif others:
        yield f"{others[0]}: not a span, feedback or score in a known format; {len(others):,} in this file"


_Record = tuple[Path | str, str, Any]
"""The file or server, the place there, and a record or the error of one that cannot be read."""


def _merge_requests(records: Iterable[_Record]) -> Iterator[_Record]:
    """Yield records, of which the requests of LangSmith's SDK about the same run become one."""
    runs = dict[str, _Record]()
    for path, place, record in records:
        if isinstance(record, Mapping) and "verb" in record and isinstance(body := record.get("body"), Mapping):
            _, _, run = runs.setdefault(str(body.get("id")), (path, place, {}))
            run.update({name: value for name, value in body.items() if value not in (None, {}, [])})
        else:
            yield path, place, record
    yield from runs.values()


def _iter_places(places: Iterable[Path | str]) -> Iterator[_Record]:
    for path in places:
        try:
            records = _iter_records(path) if isinstance(path, Path) else _iter_server(path)
            yield from ((path, place, record) for place, record in records)
        except DatasetError as error:
            yield path, "", error
        except (OSError, sqlite3.Error) as error:
            what = (
                "a SQLite database without traces of MLflow" if isinstance(error, sqlite3.Error) else "cannot be read"
            )
            yield path, "", DatasetError(f"{path}: {what} ({error})")


def _iter_records(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as file:
        start = file.read(16)
    ending = Path(strip_compression(path.name)).suffix.lower()
    if not start:
        raise DatasetError(f"{path}: the file is empty")
    if start.startswith(_PARQUET):
        yield from ((row.location, row.fields) for row in iter_parquet(path, rows=8_192))
    elif start == _SQLITE:
        yield from _iter_store(path)
    elif ending in (".csv", ".tsv"):
        yield from ((row.location, row.fields) for row in iter_csv(path, find_dialect(path, ",")))
    elif ending in (".pb", ".binpb") or start[4:8] == _ZSTD:
        yield from _iter_requests(path)
    else:
        yield from _iter_json(path)


def _iter_json(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the records of JSON lines, or of one document over several lines."""
    lines = files.lines(path)
    rows = [next(lines, (0, b""))]
    try:
        parse_json(rows[0][1])
    except ValueError:
        rows += lines
        with suppress(ValueError):
            whole = parse_json(b"".join(line for _, line in rows))
            yield from _unwrap(str(path), whole)
            return
        if rows[0][1].strip() in (b"[", b"{"):
            del rows[1:]
    for number, line in chain(rows, lines):
        try:
            yield from _unwrap(f"{path}:{number}", parse_json(line))
        except (ValueError, RecursionError) as error:
            yield "", DatasetError(f"{path}:{number}: not JSON ({error})")


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
    """Yield the requests of a file in protobuf or JSON: one, or several, each after its length in four bytes."""
    import pyarrow
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # it has no types
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    with files.open_file(path) as file:
        content = file.read()
    head = 4 if len(content) > 4 and int.from_bytes(content[:4], "big") <= len(content) - 4 else 0
    begin, number = 0, 0
    while begin < len(content):
        number += 1
        size = int.from_bytes(content[begin : begin + head], "big") if head else len(content)
        place, request = f"{path}, request {number}", content[begin + head : begin + head + size]
        begin += head + size
        try:
            if head and begin > len(content):
                raise ValueError("the file ends within it")
            if request.startswith(_ZSTD):
                request = pyarrow.input_stream(BytesIO(request), compression="zstd").read()
            is_json = request.startswith(b"{")
            value = parse_json(request) if is_json else MessageToDict(ExportTraceServiceRequest.FromString(request))
        except (DecodeError, ValueError, OSError) as error:
            raise DatasetError(f"{place}: not OTLP in protobuf ({error})") from None
        yield from _unwrap(place, value)


_STORE = """
SELECT request_id, json_object(
    'tags', (SELECT json_group_object(key, value) FROM trace_tags t WHERE t.request_id = i.request_id),
    'trace_metadata',
    (SELECT json_group_object(key, value) FROM trace_request_metadata m WHERE m.request_id = i.request_id),
    'assessments', (
        SELECT json_group_array(json_object(
            'assessment_id', assessment_id, 'assessment_name', name, 'span_id', span_id, 'valid', valid,
            'source', json_object('source_type', source_type),
            'feedback', json_object('value', iif(json_valid(value), json(value), NULL))
        )) FROM (
            SELECT * FROM assessments WHERE trace_id = i.request_id AND assessment_type = 'feedback'
            ORDER BY created_timestamp
        )
    )
)
FROM trace_info i ORDER BY timestamp_ms, request_id
"""
"""What MLflow's store has about each trace, as MLflow writes it in JSON."""


def _iter_store(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the traces of an MLflow store in a copy, with what its log holds: MLflow itself would migrate a store."""
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("", "-wal"):
            if (file := path.with_name(path.name + ending)).exists():
                copyfile(file, Path(folder) / f"store{ending}")
        with closing(sqlite3.connect(Path(folder) / "store")) as database:
            content = "SELECT content FROM spans WHERE trace_id = ? ORDER BY start_time_unix_nano"
            for trace, text in database.execute(_STORE):
                info = orjson.loads(text)
                spans = [_parse_content(text) for (text,) in database.execute(content, (trace,))]
                data = {"spans": spans or _read_artifact(info["tags"])}
                yield f"{path}, trace {trace}", {"info": {"trace_id": trace, **info}, "data": data}


def _parse_content(text: str) -> Any:  # noqa: ANN401 (any JSON)
    try:
        return orjson.loads(text)
    except (ValueError, TypeError):
        return None  # counts as damaged


def _read_artifact(tags: Mapping[str, str]) -> Sequence[Any]:
    """Return the spans of a trace of MLflow that are in a folder of artifacts on this machine."""
    location = urlsplit(tags.get("mlflow.artifactLocation") or "")
    file = Path(url2pathname(location.path)) / "traces.json"
    content = parse_json(file.read_bytes()) if location.scheme in ("", "file") and file.is_file() else {}
    return content.get("spans") or []


def _iter_server(address: str) -> Iterator[tuple[str, Any]]:
    """Yield the traces of an MLflow server, from a process in which the tracking room loads MLflow."""
    command = [sys.executable, "-m", "runner.tracking.traces", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 (own module)
        for number, line in enumerate(process.stdout or (), start=1):
            record = orjson.loads(line)
            yield f"{address}, trace {number}", DatasetError(record["error"]) if "error" in record else record
    if process.returncode:
        raise DatasetError(f"{address}: traces cannot be read (exit code {process.returncode})")
