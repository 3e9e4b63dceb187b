"""Recognise the records of exports by their keys, and read each as spans and feedback.

The formats are those of OpenTelemetry (OTLP JSON, and what its SDK prints), MLflow, Langfuse, LangSmith and Phoenix.
They differ in the names of few fields: all spans are read by `_read_span`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from runner.datasets.traffic.attributes import (
    build_feedback,
    decode_mlflow,
    fill_span,
    find_kind,
    find_person,
    iter_feedback,
    read_annotation,
    read_evaluation,
)
from runner.datasets.traffic.spans import Feedback, ServedDocuments, Span, normalise_id, parse_object, parse_time

Record = Mapping[str, Any]
Item = Span | Feedback | Exception
"""What a record contains; an exception is a part of it that is damaged."""

_DAMAGE = (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError)
"""What damaged content raises, wherever the damage is."""

_TRACE = ("traceId", "trace_id", "id")
_SPAN = ("spanId", "span_id", "id")
_PARENT = ("parentSpanId", "parent_span_id", "parent_id", "parent_observation_id", "parent_run_id")
_START, _END = ((f"{name}TimeUnixNano", f"{name}_time_unix_nano", f"{name}_time") for name in ("start", "end"))
_JUDGED = ("spanId", "span_id", "observation_id", "run_id")
_NO_SCORES = {"input", "output", "metadata", "tags", "comments"}
"""The columns of Langfuse's interface that may hold a list and are not scores."""
_FAILED = (2, "STATUS_CODE_ERROR", "ERROR")


def read_record(record: Record, documents: ServedDocuments) -> Iterator[Item] | None:
    """Return the spans and feedback in a record; None if no format has such a record."""
    read = next((read for keys, read in _READERS if all(key in record for key in keys)), None)
    return None if read is None else _guard(partial(read, record, documents))


def _guard(read: Callable[[], Iterator[Item]]) -> Iterator[Item]:
    try:
        yield from read()
    except _DAMAGE as error:
        yield error


def _first(record: Record, names: Sequence[str]) -> Any:  # noqa: ANN401 (any JSON)
    return next((record[name] for name in names if record.get(name) is not None), None)


def _find_place(record: Record, names: Sequence[str] = _JUDGED) -> tuple[bytes, bytes]:
    """Return the ids of the trace and the span that a record is about."""
    return normalise_id(_first(record, _TRACE[:2])), normalise_id(_first(record, names))


def _read_span(record: Record, attributes: Record, about: Record, documents: ServedDocuments) -> Iterator[Item]:
    """Yield a span and the feedback in it; `about` are attributes of its resource or trace."""
    if "mlflow.spanType" in attributes or "start_time_unix_nano" in record:
        attributes = decode_mlflow(attributes)
    context = {**about, **attributes}
    span = Span(
        normalise_id(_first(record, _TRACE)), normalise_id(_first(record, _SPAN)),
        normalise_id(_first(record, _PARENT)), find_kind(attributes, str(record.get("name") or "")),
        error=_find_error(record, attributes), version=str(record.get("updated_at") or ""),
    )  # fmt: skip
    if not span.id:
        raise ValueError("a span without an id")
    span.user, span.session = find_person(context)
    events = record.get("events")
    events = [] if events is None else list(events)
    if span.kind:
        span.start_ns, span.end_ns = parse_time(_first(record, _START)), parse_time(_first(record, _END))
        span.context, span.weight = context, _read_weight(record.get("traceState"))
        fill_span(span, attributes, events, int(record.get("droppedAttributesCount") or 0) > 0, documents)
    yield span
    links = [_find_place(link.get("context") or link) for link in record.get("links") or ()]
    yield from iter_feedback(attributes, events, span, links[0] if len(links) == 1 else None)


def _find_error(record: Record, attributes: Record) -> str:
    """Return what went wrong, in one line; "" if nothing did."""
    given = record.get("status")
    status: Record = given if isinstance(given, Mapping) else {"code": given}
    prefix = "langfuse.observation"
    codes = (
        status.get("code"),
        status.get("status_code"),
        record.get("status_code"),
        attributes.get(f"{prefix}.level"),
    )
    messages = (
        record.get("error"), status.get("message"), status.get("description"), record.get("status_message"),
        attributes.get(f"{prefix}.status_message"),
    )  # fmt: skip
    if not record.get("error") and not any(code in _FAILED for code in codes):
        return ""
    return str(next(filter(None, messages), "")).strip().rpartition("\n")[2] or "error"


def _read_weight(state: object) -> float:
    """Return how many spans a sampled one stands for: th is the share that was dropped, as a fraction in hex."""
    for part in state.split(",") if isinstance(state, str) else ():
        key, _, fields = part.strip().partition("=")
        threshold = dict(field.partition(":")[::2] for field in fields.split(";")).get("th", "") if key == "ot" else ""
        if threshold:
            return 1 / (1 - int(threshold, 16) / 16.0 ** len(threshold))
    return 1.0


def _read_otlp(record: Record, documents: ServedDocuments) -> Iterator[Item]:
    for batch in record["resourceSpans"]:
        resource = _decode_attributes((batch.get("resource") or {}).get("attributes"))
        for scope in batch.get("scopeSpans") or ():
            for span in scope.get("spans") or ():
                yield from _guard(partial(_read_otlp_span, span, resource, documents))


def _read_otlp_span(span: Record, resource: Record, documents: ServedDocuments) -> Iterator[Item]:
    events = [
        {**event, "attributes": _decode_attributes(event.get("attributes"))} for event in span.get("events") or ()
    ]
    yield from _read_span({**span, "events": events}, _decode_attributes(span.get("attributes")), resource, documents)


def _read_otlp_logs(record: Record, documents: ServedDocuments) -> Iterator[Item]:
    for batch in record["resourceLogs"]:
        for scope in batch.get("scopeLogs") or ():
            for log in scope.get("logRecords") or ():
                if log.get("eventName") == "gen_ai.evaluation.result":
                    yield read_evaluation(_decode_attributes(log.get("attributes")), _find_place(log))


def _decode_attributes(listed: Any) -> dict[str, Any]:  # noqa: ANN401 (any JSON)
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
    if kind in ("intValue", "doubleValue"):
        return int(content) if kind == "intValue" else float(content)
    if kind == "arrayValue":
        return [_decode_value(inner) for inner in content.get("values") or ()]
    return _decode_attributes(content.get("values")) if kind == "kvlistValue" else content


def _read_plain(record: Record, documents: ServedDocuments, about: Record | None = None) -> Iterator[Item]:
    """Read a span of Phoenix, over REST or from a data frame, of MLflow, or one that OpenTelemetry's SDK prints."""
    prefix = "attributes."
    span = {name.removeprefix("context."): value for name, value in record.items()} | dict(record.get("context") or {})
    attributes = dict(record.get("attributes") or {}) | {
        name.removeprefix(prefix): value
        for name, value in record.items()
        if name.startswith(prefix) and value is not None
    }
    attributes.setdefault("openinference.span.kind", record.get("span_kind"))
    resource = (record.get("resource") or {}).get("attributes") or {}
    yield from _read_span(span, attributes, {**resource, **(about or {})}, documents)


def _read_phoenix_annotation(record: Record, documents: ServedDocuments) -> Iterator[Item]:
    result = record.get("result") or {name: record.get(f"result.{name}") for name in ("score", "label")}
    name = record.get("annotation_name") or record.get("name")
    yield read_annotation({**record, **result, "name": name}, (b"", normalise_id(record["span_id"])))


def _read_mlflow(record: Record, documents: ServedDocuments) -> Iterator[Item]:
    info, spans = record["info"], record["data"]["spans"]
    trace = _first(info, ("trace_id", "request_id"))
    about = {**(info.get("tags") or {}), **(info.get("trace_metadata") or info.get("request_metadata") or {})}
    if not spans:
        raise ValueError(f"no spans; they are in {about.get('mlflow.trace.spansLocation', 'another place')}")
    for span in spans:
        yield from _guard(partial(_read_mlflow_span, span, trace, documents, about))
    for assessment in info.get("assessments") or ():
        if assessment.get("valid") != 0 and "feedback" in assessment:
            yield build_feedback(
                _find_place({"trace_id": trace, "span_id": assessment.get("span_id")}),
                assessment.get("assessment_name"), (assessment["feedback"] or {}).get("value"),
                (assessment.get("source") or {}).get("source_type"), assessment.get("assessment_id"),
            )  # fmt: skip


def _read_mlflow_span(span: Record, trace: object, documents: ServedDocuments, about: Record) -> Iterator[Item]:
    ids = {**(span.get("context") or {}), "trace_id": trace}
    yield from _read_plain({**span, "context": ids}, documents, about)


def _read_langfuse(record: Record, documents: ServedDocuments) -> Iterator[Item]:
    row = {_to_snake(name): value for name, value in record.items()}
    named = {
        f"langfuse.observation.{name}": row.get(name) for name in ("type", "input", "output", "level", "status_message")
    }
    attributes = {name: value for name, value in named.items() if value not in (None, "")}
    yield from _read_span(row, attributes, {**row, **parse_object(row.get("metadata"))}, documents)
    if "traceId" in record:  # an export of the interface has a column for each score
        place = _find_place(row, _SPAN)
        for name, values in record.items():
            if isinstance(values, list) and _to_snake(name) not in _NO_SCORES:
                yield from (build_feedback(place, name, value, "api", name) for value in values)


@lru_cache(maxsize=1024)
def _to_snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _read_langfuse_score(record: Record, documents: ServedDocuments) -> Iterator[Item]:
    row = {_to_snake(name): value for name, value in record.items()}
    value = row.get("value")
    if row.get("data_type") not in ("NUMERIC", "BOOLEAN", None, ""):
        value = row.get("string_value")
    elif isinstance(value, str):
        value = float(value)
    yield build_feedback(_find_place(row), row["name"], value, row.get("source"), row.get("id"))


def _read_langfuse_trace(record: Record, documents: ServedDocuments) -> Iterator[Item]:
    shared = {"traceId": record.get("id"), "userId": record.get("userId"), "sessionId": record.get("sessionId")}
    for row in record["observations"]:
        yield from _guard(partial(_read_langfuse, {**shared, **row}, documents))
    for row in record.get("scores") or ():
        yield from _read_langfuse_score({"traceId": record.get("id"), **row}, documents)


def _read_langsmith(record: Record, documents: ServedDocuments) -> Iterator[Item]:
    kind, name = str(record["run_type"]), str(record.get("name") or "")
    named = {
        "openinference.span.kind": "reranker" if "rerank" in name.lower() and kind != "llm" else kind,
        "input.value": record.get("inputs"), "output.value": record.get("outputs"),
    }  # fmt: skip
    attributes = {key: value for key, value in named.items() if value not in (None, "", {}, "{}")}
    metadata = parse_object(parse_object(record.get("extra")).get("metadata"))
    about = {**record, "session_id": None, **metadata}  # a session of LangSmith is a project
    yield from _read_span(record, attributes, about, documents)


def _read_langsmith_feedback(record: Record, documents: ServedDocuments) -> Iterator[Item]:
    source = parse_object(record.get("feedback_source")).get("type")
    value = _first(record, ("score", "value"))
    yield build_feedback(_find_place(record), record["key"], value, source, record.get("id"))


_READERS: Sequence[tuple[tuple[str, ...], Callable[[Record, ServedDocuments], Iterator[Item]]]] = (
    (("resourceSpans",), _read_otlp),
    (("resourceLogs",), _read_otlp_logs),
    (("info", "data"), _read_mlflow),
    (("run_type", "id"), _read_langsmith),
    (("key", "run_id"), _read_langsmith_feedback),
    (("observations", "id"), _read_langfuse_trace),
    (("context.span_id",), _read_plain),
    (("context", "start_time"), _read_plain),
    (("span_id", "start_time_unix_nano"), _read_plain),
    (("annotation_name", "span_id"), _read_phoenix_annotation),
    (("annotator_kind", "span_id"), _read_phoenix_annotation),
    (("type", "id", "trace_id"), _read_langfuse),
    (("type", "id", "traceId"), _read_langfuse),
    (("name", "value", "trace_id"), _read_langfuse_score),
    (("name", "value", "traceId"), _read_langfuse_score),
)
"""How to read a record, by the keys that show its format."""
