"""Recognise the records of exports by their keys, and read each as spans and feedback.

The formats are those of OpenTelemetry (OTLP JSON, and what its SDK prints), MLflow, Langfuse, LangSmith and Phoenix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from runner.datasets.traffic.attributes import (
    build_feedback,
    decode_mlflow,
    fill_span,
    find_kind,
    find_person,
    iter_feedback,
    read_evaluation,
)
from runner.datasets.traffic.spans import Feedback, IdRule, Span, normalise_id, parse_object, parse_time

Record = Mapping[str, Any]
Item = Span | Feedback | Exception
"""What a record contains; an exception is a part of it that is damaged."""

_DAMAGE = (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError)
"""What damaged content raises, wherever the damage is."""


def read_record(record: Record, rules: Sequence[IdRule]) -> Iterator[Item] | None:
    """Return the spans and feedback in a record; None if no format has such a record."""
    read = next((read for keys, read in _READERS if all(key in record for key in keys)), None)
    return None if read is None else _guard(lambda: read(record, rules))


def _guard(read: Callable[[], Iterator[Item]]) -> Iterator[Item]:
    try:
        yield from read()
    except _DAMAGE as error:
        yield error


def _read_otlp(record: Record, rules: Sequence[IdRule]) -> Iterator[Item]:
    for batch in _either(record, "resourceSpans", "resource_spans"):
        resource = _decode_attributes((batch.get("resource") or {}).get("attributes"))
        for scope in _either(batch, "scopeSpans", "scope_spans"):
            for span in scope.get("spans") or ():
                yield from _guard(lambda span=span, resource=resource: _read_otlp_span(span, resource, rules))  # type: ignore[misc]  # bound at once


def _read_otlp_span(span: Record, resource: Record, rules: Sequence[IdRule]) -> Iterator[Item]:
    attributes = _decode_attributes(span.get("attributes"))
    events = [_decode_event(event) for event in span.get("events") or ()]
    links = [
        (normalise_id(_field(link, "traceId")), normalise_id(_field(link, "spanId")))
        for link in span.get("links") or ()
    ]
    status = span.get("status") or {}
    yield from _read_attributes(
        _Envelope(
            normalise_id(_field(span, "traceId")), normalise_id(_field(span, "spanId")),
            normalise_id(_field(span, "parentSpanId")), str(span.get("name") or ""),
            _field(span, "startTimeUnixNano"), _field(span, "endTimeUnixNano"),
            str(status.get("message") or "error") if status.get("code") in (2, "STATUS_CODE_ERROR") else "",
            links[0] if len(links) == 1 else None, int(_field(span, "droppedAttributesCount") or 0),
            _read_weight(_field(span, "traceState")),
        ),
        attributes, events, {**resource, **attributes}, rules,
    )  # fmt: skip


@dataclass(slots=True)
class _Envelope:
    """What a span has besides attributes and events."""

    trace: bytes
    id: bytes
    parent: bytes
    name: str
    start: object
    end: object
    error: str
    link: tuple[bytes, bytes] | None = None
    dropped: int = 0
    weight: float = 1.0


def _read_attributes(
    envelope: _Envelope, attributes: Record, events: Sequence[Any], context: Record, rules: Sequence[IdRule]
) -> Iterator[Item]:
    if not envelope.id:
        raise ValueError("a span without an id")
    if "mlflow.spanType" in attributes:
        attributes = decode_mlflow(attributes)
    kind = find_kind(attributes, envelope.name)
    error = envelope.error
    if not error and attributes.get("langfuse.observation.level") == "ERROR":
        error = str(attributes.get("langfuse.observation.status_message") or "error")
    span = Span(envelope.trace, envelope.id, envelope.parent, kind, error=error, weight=envelope.weight)
    if kind:
        span.start_ns, span.end_ns, span.context = parse_time(envelope.start), parse_time(envelope.end), context
        fill_span(span, attributes, events, envelope.dropped, rules)
    else:
        span.user, span.session = find_person(attributes)
    yield span
    yield from iter_feedback(attributes, events, span.trace, span.id, envelope.link)


def _read_weight(state: object) -> float:
    """Return how many spans a sampled one stands for: th is the share that was dropped, as a fraction in hex."""
    for part in state.split(",") if isinstance(state, str) else ():
        key, _, fields = part.strip().partition("=")
        threshold = dict(field.partition(":")[::2] for field in fields.split(";")).get("th", "") if key == "ot" else ""
        if threshold:
            return 1 / (1 - int(threshold, 16) / 16.0 ** len(threshold))
    return 1.0


def _read_otlp_logs(record: Record, rules: Sequence[IdRule]) -> Iterator[Item]:
    for batch in _either(record, "resourceLogs", "resource_logs"):
        for scope in _either(batch, "scopeLogs", "scope_logs"):
            for log in _either(scope, "logRecords", "log_records"):
                if _field(log, "eventName") == "gen_ai.evaluation.result":
                    place = (normalise_id(_field(log, "traceId")), normalise_id(_field(log, "spanId")))
                    yield read_evaluation(_decode_attributes(log.get("attributes")), *place)


def _field(record: Record, name: str) -> Any:  # noqa: ANN401 (any JSON)
    """Return a field of OTLP JSON, whose name may be in snake case."""
    return record[name] if name in record else record.get(_to_snake(name))


@lru_cache(maxsize=1024)
def _to_snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _either(record: Record, *names: str) -> Sequence[Any]:
    return next((record[name] for name in names if record.get(name)), ())


def _decode_event(event: Record) -> Record:
    return {"name": event.get("name"), "attributes": _decode_attributes(event.get("attributes"))}


def _decode_attributes(listed: Any) -> dict[str, Any]:  # noqa: ANN401 (any JSON)
    if isinstance(listed, Mapping):
        return dict(listed)
    return {
        item["key"]: value["stringValue"]
        if (value := item.get("value")) and "stringValue" in value
        else _decode_value(value)
        for item in listed or ()
    }


def _decode_value(value: Any) -> Any:  # noqa: ANN401 (any JSON)
    """Return an AnyValue of OTLP as a value of Python."""
    if not value:
        return None
    ((kind, content),) = value.items()
    if kind in ("stringValue", "string_value", "boolValue", "bool_value", "bytesValue", "bytes_value"):
        return content
    if kind in ("intValue", "int_value"):
        return int(content)
    if kind in ("doubleValue", "double_value"):
        return float(content)
    if kind in ("arrayValue", "array_value"):
        return [_decode_value(inner) for inner in content.get("values") or ()]
    return {inner["key"]: _decode_value(inner.get("value")) for inner in content.get("values") or ()}


def _read_phoenix(record: Record, rules: Sequence[IdRule]) -> Iterator[Item]:
    """Read a span of Phoenix, from its REST interface or a data frame, or one that the SDK of OpenTelemetry prints."""
    ids = record.get("context") or {name: record.get(f"context.{name}") for name in ("trace_id", "span_id")}
    prefix = "attributes."
    attributes = dict(record.get("attributes") or {}) | {
        key.removeprefix(prefix): value for key, value in record.items() if key.startswith(prefix) and value is not None
    }
    attributes.setdefault("openinference.span.kind", record.get("span_kind"))
    status = record.get("status") or {}
    failed = "ERROR" in (record.get("status_code"), status.get("status_code"))
    message = record.get("status_message") or status.get("description") or "error"
    links = [
        (normalise_id(link["context"]["trace_id"]), normalise_id(link["context"]["span_id"]))
        for link in record.get("links") or ()
    ]
    resource = (record.get("resource") or {}).get("attributes") or {}
    events = record.get("events")
    yield from _read_attributes(
        _Envelope(
            normalise_id(ids["trace_id"]), normalise_id(ids["span_id"]), normalise_id(record.get("parent_id")),
            str(record.get("name") or ""), record.get("start_time"), record.get("end_time"),
            str(message) if failed else "", links[0] if len(links) == 1 else None,
        ),
        attributes, [] if events is None else list(events), {**resource, **attributes}, rules,
    )  # fmt: skip


def _read_phoenix_annotation(record: Record, rules: Sequence[IdRule]) -> Iterator[Item]:
    result = record.get("result") or {name: record.get(f"result.{name}") for name in ("score", "label")}
    name, source = record.get("annotation_name") or record.get("name"), str(record.get("annotator_kind") or "")
    key = f"{name} {record.get('identifier') or ''}"
    yield build_feedback(
        b"", normalise_id(record["span_id"]), name, result.get("score"), result.get("label"), source, key
    )


def _read_mlflow(record: Record, rules: Sequence[IdRule]) -> Iterator[Item]:
    info, spans = record["info"], record["data"]["spans"]
    trace = normalise_id(info.get("trace_id") or info.get("request_id"))
    about = dict(info.get("trace_metadata") or info.get("request_metadata") or {})
    context = {**(info.get("tags") or {}), **about}
    if not spans:
        raise ValueError(f"no spans; they are in {context.get('mlflow.trace.spansLocation', 'another place')}")
    for span in spans:
        yield from _guard(lambda span=span: _read_mlflow_span(span, trace, context, rules))  # type: ignore[misc]  # bound at once
    for assessment in info.get("assessments") or ():
        if assessment.get("valid") is not False and "feedback" in assessment:
            source = assessment.get("source") or {}
            yield build_feedback(
                trace, normalise_id(assessment.get("span_id")), assessment.get("assessment_name"),
                (assessment["feedback"] or {}).get("value"), None, str(source.get("source_type") or ""),
                str(assessment.get("assessment_id") or ""),
            )  # fmt: skip


def _read_mlflow_span(span: Record, trace: bytes, context: Record, rules: Sequence[IdRule]) -> Iterator[Item]:
    ids, status = span.get("context") or span, span.get("status") or {}
    code = span.get("status_code") or (status.get("code") if isinstance(status, Mapping) else status)
    attributes = dict(span.get("attributes") or {})
    attributes.setdefault("user.id", context.get("mlflow.trace.user"))
    attributes.setdefault("session.id", context.get("mlflow.trace.session"))
    yield from _read_attributes(
        _Envelope(
            trace, normalise_id(ids["span_id"]), normalise_id(span.get("parent_span_id") or span.get("parent_id")),
            str(span.get("name") or ""), span.get("start_time_unix_nano") or span.get("start_time"),
            span.get("end_time_unix_nano") or span.get("end_time"),
            str(span.get("status_message") or "error") if code in ("STATUS_CODE_ERROR", "ERROR") else "",
        ),
        attributes, span.get("events") or [], {**context, **attributes}, rules,
    )  # fmt: skip


_LANGFUSE_COLUMNS = {
    "id", "type", "name", "environment", "level", "input", "output", "metadata", "tags", "release", "comments", "model",
    "usage", "cost", "version", "bookmarked", "public", "latency",
}  # fmt: skip


def _read_langfuse(record: Record, rules: Sequence[IdRule]) -> Iterator[Item]:
    row = {_to_snake(name): value for name, value in record.items()}
    context = {**row, **parse_object(row.get("metadata"))}
    attributes = {
        "langfuse.observation.type": row["type"], "langfuse.observation.input": row.get("input"),
        "langfuse.observation.output": row.get("output"), "user.id": row.get("user_id"),
        "session.id": row.get("session_id"),
    }  # fmt: skip
    failed = row.get("level") == "ERROR"
    trace, span = normalise_id(row.get("trace_id")), normalise_id(row["id"])
    envelope = _Envelope(
        trace, span, normalise_id(row.get("parent_observation_id")), str(row.get("name") or ""),
        row.get("start_time"), row.get("end_time"), str(row.get("status_message") or "error") if failed else "",
    )  # fmt: skip
    given = {name: value for name, value in attributes.items() if value not in (None, "")}
    for item in _read_attributes(envelope, given, [], context, rules):
        if isinstance(item, Span):
            item.version = str(row.get("updated_at") or "")
        yield item
    if "traceId" in record:  # an export of the interface has a column for each score
        for name, values in record.items():
            if isinstance(values, list) and _to_snake(name) not in _LANGFUSE_COLUMNS and values:
                yield from (build_feedback(trace, span, name, value, None, "api", name) for value in values)


def _read_langfuse_score(record: Record, rules: Sequence[IdRule]) -> Iterator[Item]:
    row = {_to_snake(name): value for name, value in record.items()}
    is_number = row.get("data_type") in ("NUMERIC", "BOOLEAN", None, "")
    value = row.get("value")
    if isinstance(value, str):
        value = float(value)
    label = None if is_number else row.get("string_value")
    place = (normalise_id(row.get("trace_id")), normalise_id(row.get("observation_id")))
    yield build_feedback(
        *place,
        row["name"],
        value if is_number else None,
        label,
        str(row.get("source") or "api"),
        str(row.get("id") or ""),
    )


def _read_langfuse_trace(record: Record, rules: Sequence[IdRule]) -> Iterator[Item]:
    shared = {"traceId": record.get("id"), "userId": record.get("userId"), "sessionId": record.get("sessionId")}
    for row in record["observations"]:
        yield from _read_langfuse({**shared, **row}, rules)
    for row in record.get("scores") or ():
        yield from _read_langfuse_score({"traceId": record.get("id"), **row}, rules)


def _read_langsmith(record: Record, rules: Sequence[IdRule]) -> Iterator[Item]:
    kind, name = str(record["run_type"]), str(record.get("name") or "")
    metadata = parse_object(parse_object(record.get("extra")).get("metadata"))
    is_reranker = "rerank" in name.lower() and kind != "llm"
    attributes = {
        "openinference.span.kind": "reranker" if is_reranker else kind, "input.value": record.get("inputs"),
        "output.value": record.get("outputs"), "user.id": metadata.get("user_id"),
        "session.id": metadata.get("session_id") or metadata.get("thread_id"),
    }  # fmt: skip
    given = {key: value for key, value in attributes.items() if value not in (None, "", {}, "{}")}
    error = str(record.get("error") or "").strip()
    envelope = _Envelope(
        normalise_id(record.get("trace_id") or record["id"]), normalise_id(record["id"]),
        normalise_id(record.get("parent_run_id")), name, record.get("start_time"), record.get("end_time"),
        error.splitlines()[-1] if error else "",
    )  # fmt: skip
    yield from _read_attributes(envelope, given, [], {**metadata, **record}, rules)


def _read_langsmith_feedback(record: Record, rules: Sequence[IdRule]) -> Iterator[Item]:
    source = parse_object(record.get("feedback_source"))
    score = record.get("score")
    value = record.get("value") if score is None else score
    place = (normalise_id(record.get("trace_id")), normalise_id(record.get("run_id")))
    yield build_feedback(
        *place, record["key"], value, None, str(source.get("type") or "api"), str(record.get("id") or "")
    )


_READERS: Sequence[tuple[tuple[str, ...], Callable[[Record, Sequence[IdRule]], Iterator[Item]]]] = (
    (("resourceSpans",), _read_otlp),
    (("resource_spans",), _read_otlp),
    (("resourceLogs",), _read_otlp_logs),
    (("resource_logs",), _read_otlp_logs),
    (("info", "data"), _read_mlflow),
    (("run_type", "id"), _read_langsmith),
    (("key", "run_id"), _read_langsmith_feedback),
    (("observations", "id"), _read_langfuse_trace),
    (("context.span_id",), _read_phoenix),
    (("context", "start_time"), _read_phoenix),
    (("annotation_name", "span_id"), _read_phoenix_annotation),
    (("annotator_kind", "span_id"), _read_phoenix_annotation),
    (("type", "id", "trace_id"), _read_langfuse),
    (("type", "id", "traceId"), _read_langfuse),
    (("name", "value", "trace_id"), _read_langfuse_score),
    (("name", "value", "traceId"), _read_langfuse_score),
)
"""How to read a record, by the keys that show its format."""
