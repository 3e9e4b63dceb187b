"""Read what the attributes of a span say about retrieval, in any convention.

Several conventions may describe the same span; the first that has a part gives it, so that nothing counts twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from runner.datasets.traffic.spans import (
    REDACTED,
    Feedback,
    FeedbackKind,
    ServedDocuments,
    Span,
    SpanKind,
    TruncatedError,
    collect_list,
    find_documents,
    find_query,
    list_numbers,
    parse_json,
)

_KINDS: Mapping[str, SpanKind] = {
    "retriever": "retriever", "retrieval": "retriever", "retrieve": "retriever", "reranker": "reranker",
    "rerank": "reranker",
}  # fmt: skip
_KIND_KEYS = (
    "openinference.span.kind", "langfuse.observation.type", "mlflow.spanType", "traceloop.span.kind",
    "gen_ai.operation.name", "gen_ai.span.kind",
)  # fmt: skip
_QUERY_KEYS = (
    "gen_ai.retrieval.query.text", "gen_ai.retrieval.query", "reranker.query", "input.value",
    "langfuse.observation.input", "mlflow.spanInputs", "traceloop.entity.input", "gen_ai.rerank.query",
)  # fmt: skip
_OUTPUT_KEYS = (
    "gen_ai.retrieval.documents", "langfuse.observation.output", "mlflow.spanOutputs", "output.value",
    "traceloop.entity.output", "gen_ai.rerank.output_documents",
)  # fmt: skip
_INPUT_KEYS = ("mlflow.spanInputs", "langfuse.observation.input", "gen_ai.rerank.input_documents", "input.value")
_LISTS: Mapping[SpanKind, str] = {"retriever": "retrieval.documents", "reranker": "reranker.output_documents"}
_USER_KEYS = ("user.id", "enduser.id", "langfuse.user.id", "user_id", "mlflow.trace.user")
_SESSION_KEYS = (
    "session.id", "gen_ai.conversation.id", "langfuse.session.id", "session_id", "thread_id", "mlflow.trace.session",
)  # fmt: skip
_HIT_EVENT = "db.query.result"
_EVALUATION = "gen_ai.evaluation"
_JUDGED = ("annotations", "evaluations", "trace.annotations", "trace.evaluations")
_FEEDBACK_KINDS: Mapping[str, FeedbackKind] = {
    "human": "person", "annotation": "person", "app": "person", "llm": "model", "llm_judge": "model", "eval": "model",
    "evaluator": "model", "model": "model", "ai_judge": "model", "code": "code", "api": "api",
}  # fmt: skip

Attributes = Mapping[str, Any]


def find_kind(attributes: Attributes, name: str = "") -> SpanKind:
    """Return the kind of a span; a step that is called a reranker is one, where a convention has no such kind."""
    for key in _KIND_KEYS:
        value = attributes.get(key)
        if isinstance(value, str) and value:
            kind = _KINDS.get(value.strip('"').lower(), "")
            if kind and kind != "retriever":
                return kind
            if kind or key in ("langfuse.observation.type", "traceloop.span.kind"):
                return "reranker" if "rerank" in name.lower() else kind
    return "retriever" if "db.vector.query.top_k" in attributes else ""


def fill_span(
    span: Span, attributes: Attributes, events: Sequence[Any], dropped: bool, documents: ServedDocuments
) -> None:
    """Add to a span of a known kind the query and the rankings in its attributes, and say what is missing."""
    try:
        span.query = next(filter(None, (find_query(attributes[key]) for key in _QUERY_KEYS if key in attributes)), "")
    except TruncatedError:
        span.problem = "truncated"
    if span.query == REDACTED:
        span.query, span.problem = "", "redacted"
    try:
        if (rows := _find_served(attributes, events, span.kind)) is not None:
            span.hits = documents.pack(rows)
        if span.kind == "reranker":
            rows = collect_list(attributes, "reranker.input_documents", "document.")
            if rows or (rows := _find_first(attributes, _INPUT_KEYS)) is not None:
                span.candidates = documents.pack(rows)
    except TruncatedError:
        span.problem = span.problem or "truncated"
    if span.hits is None and REDACTED in map(attributes.get, _OUTPUT_KEYS):
        span.problem = span.problem or "redacted"
    if dropped or (span.hits and -1 in list_numbers(span.hits)):
        span.problem = span.problem or "dropped"


def _find_served(attributes: Attributes, events: Sequence[Any], kind: SpanKind) -> Sequence[Any] | None:
    """Return the documents that a span returned, in any form; None if they were not recorded."""
    rows: Sequence[Any] = collect_list(attributes, _LISTS[kind], "document.")
    if any("id" in row for row in rows if row):
        return rows
    output = _find_first(attributes, _OUTPUT_KEYS)
    if rows and output is not None and len(output) == len(rows):  # an instrumentation that gives ids only here
        pairs = zip(rows, output, strict=True)
        return [{**other, **(row or {})} if isinstance(other, Mapping) else row for row, other in pairs]
    if rows or output is not None:
        return rows or output
    hits = [_attributes_of(event) for event in events if isinstance(event, Mapping) and event.get("name") == _HIT_EVENT]
    return [{name.removeprefix(f"{_HIT_EVENT}."): value for name, value in hit.items()} for hit in hits] or None


def _find_first(attributes: Attributes, keys: Sequence[str]) -> Sequence[Any] | None:
    """Return the first list of documents in the values of some attributes."""
    lists = (find_documents(attributes[key]) for key in keys if key in attributes)
    return next((rows for rows in lists if rows is not None), None)


def _attributes_of(event: Mapping[str, Any]) -> Attributes:
    attributes = event.get("attributes")
    return attributes if isinstance(attributes, Mapping) else {}


def find_person(attributes: Attributes) -> tuple[str, str]:
    """Return the user and the session in attributes, "" for none."""
    user, session = (
        next((str(value) for key in keys if (value := attributes.get(key)) not in (None, "", REDACTED)), "")
        for keys in (_USER_KEYS, _SESSION_KEYS)
    )
    return user, session


def iter_feedback(
    attributes: Attributes, events: Sequence[Any], span: Span, link: tuple[bytes, bytes] | None
) -> Iterator[Feedback]:
    """Yield the feedback in the attributes and events of a span; a link of the span names what is judged."""
    target = link or (span.trace, span.id)
    if any(key.startswith(_JUDGED) for key in attributes):
        for prefix, place in (("", target), ("trace.", (target[0], b""))):
            for kind in ("annotation", "evaluation"):
                for row in filter(None, collect_list(attributes, f"{prefix}{kind}s", f"{kind}.")):
                    yield read_annotation(row, place)
    for event in events:
        if isinstance(event, Mapping) and event.get("name") == f"{_EVALUATION}.result":
            yield read_evaluation(_attributes_of(event), (span.trace, span.id))


def read_annotation(row: Attributes, place: tuple[bytes, bytes]) -> Feedback:
    """Return the feedback in an annotation of OpenInference."""
    name, source = row.get("name"), row.get("annotator_kind")
    return build_feedback(
        place, name, row.get("score"), source, f"{name} {row.get('identifier') or ''}", row.get("label")
    )


def read_evaluation(attributes: Attributes, place: tuple[bytes, bytes]) -> Feedback:
    """Return the feedback of an event `gen_ai.evaluation.result`."""
    name, value, label = (attributes.get(f"{_EVALUATION}.{part}") for part in ("name", "score.value", "score.label"))
    return build_feedback(place, name, value, "api", attributes.get("gen_ai.response.id"), label)


def build_feedback(
    place: tuple[bytes, bytes], name: object, value: object, source: object, key: object, label: object = None
) -> Feedback:
    """Return feedback on a trace and span with a number or a label; a text in place of a number is a label.

    Raises `ValueError`.
    """
    if not name:
        raise ValueError("feedback without a name")
    if isinstance(value, str):
        value, label = None, label or value
    number = float(value) if isinstance(value, int | float) else None  # also a boolean
    kind = _FEEDBACK_KINDS.get(str(source or "").lower(), "api")
    return Feedback(*place, str(name), number, str(label or ""), kind, str(key or ""))


def decode_mlflow(attributes: Attributes) -> dict[str, Any]:
    """Return the attributes of a span of MLflow, each of which is JSON in a text; one that was cut stays a text."""
    decoded = dict(attributes)
    for key, value in attributes.items():
        with suppress(ValueError):
            decoded[key] = parse_json(value) if isinstance(value, str) else value
    return decoded
