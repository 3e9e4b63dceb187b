"""Read what the attributes of a span say about retrieval, in any convention.

Several conventions may describe the same span; the first that has a part gives it, so that nothing counts twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.datasets.traffic.spans import (
    REDACTED,
    Feedback,
    FeedbackKind,
    IdRule,
    ServedDocument,
    Span,
    SpanKind,
    TruncatedError,
    collect_list,
    find_documents,
    find_query,
    parse_text,
    read_documents,
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
_USER_KEYS = ("user.id", "enduser.id", "langfuse.user.id", "user_id")
_SESSION_KEYS = ("session.id", "gen_ai.conversation.id", "langfuse.session.id", "session_id", "thread_id")
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


def fill_span(span: Span, attributes: Attributes, events: Sequence[Any], dropped: int, rules: Sequence[IdRule]) -> Span:
    """Add to a span of a known kind the query and the documents in its attributes, and say what is missing."""
    span.user, span.session = find_person(attributes)
    try:
        span.query = next(filter(None, (find_query(attributes[key]) for key in _QUERY_KEYS if key in attributes)), "")
    except TruncatedError:
        span.problem = "truncated"
    if span.query == REDACTED:
        span.query, span.problem = "", "redacted"
    try:
        span.documents = _find_served(attributes, events, span.kind, rules)
        if span.kind == "reranker":
            span.candidates = _find_candidates(attributes, rules)
    except TruncatedError:
        span.problem = span.problem or "truncated"
    if span.documents is None and REDACTED in map(attributes.get, _OUTPUT_KEYS):
        span.problem = span.problem or "redacted"
    if dropped or any(document.rule == "unrecorded" for document in span.documents or ()):
        span.problem = span.problem or "dropped"
    return span


def _find_served(
    attributes: Attributes, events: Sequence[Any], kind: SpanKind, rules: Sequence[IdRule]
) -> list[ServedDocument] | None:
    rows: Sequence[Any] = collect_list(attributes, _LISTS[kind], "document.")
    if any("id" in row for row in rows if row):
        return read_documents(rows, rules)
    outputs = (find_documents(attributes[key]) for key in _OUTPUT_KEYS if key in attributes)
    output = next((rows for rows in outputs if rows is not None), None)
    if rows and output is not None and len(output) == len(rows):  # an instrumentation that gives ids only here
        pairs = zip(rows, output, strict=True)
        rows = [{**other, **(row or {})} if isinstance(other, Mapping) else row for row, other in pairs]
    elif not rows and output is not None:
        rows = output
    elif not rows:
        hits = [_attributes_of(event) for event in events if isinstance(event, Mapping) and _is_hit(event)]
        rows = [{name.removeprefix(f"{_HIT_EVENT}."): value for name, value in hit.items()} for hit in hits]
        if not rows:
            return None
    return read_documents(rows, rules)


def _find_candidates(attributes: Attributes, rules: Sequence[IdRule]) -> list[ServedDocument] | None:
    if rows := collect_list(attributes, "reranker.input_documents", "document."):
        return read_documents(rows, rules)
    inputs = (find_documents(attributes[key]) for key in _INPUT_KEYS if key in attributes)
    listed = next((rows for rows in inputs if rows is not None), None)
    return None if listed is None else read_documents(listed, rules)


def _is_hit(event: Mapping[str, Any]) -> bool:
    return event.get("name") == _HIT_EVENT


def _attributes_of(event: Mapping[str, Any]) -> Attributes:
    attributes = event.get("attributes")
    return attributes if isinstance(attributes, Mapping) else {}


def find_person(attributes: Attributes) -> tuple[str, str]:
    """Return the user and the session in attributes, "" for none."""
    return _first_text(attributes, _USER_KEYS), _first_text(attributes, _SESSION_KEYS)


def _first_text(attributes: Attributes, keys: Sequence[str]) -> str:
    return next((str(value) for key in keys if (value := attributes.get(key)) not in (None, "", REDACTED)), "")


def iter_feedback(
    attributes: Attributes, events: Sequence[Any], trace: bytes, span: bytes, link: tuple[bytes, bytes] | None
) -> Iterator[Feedback]:
    """Yield the feedback in the attributes and events of a span; a link of the span names what is judged."""
    target = link or (trace, span)
    if any(key.startswith(_JUDGED) for key in attributes):
        for prefix, place in (("", target), ("trace.", (target[0], b""))):
            for kind in ("annotation", "evaluation"):
                for row in filter(None, collect_list(attributes, f"{prefix}{kind}s", f"{kind}.")):
                    source = str(row.get("annotator_kind", ""))
                    key = f"{row.get('name')} {row.get('identifier', '')}"
                    yield build_feedback(*place, row.get("name"), row.get("score"), row.get("label"), source, key)
    for event in events:
        if isinstance(event, Mapping) and event.get("name") == f"{_EVALUATION}.result":
            yield read_evaluation(_attributes_of(event), trace, span)


def read_evaluation(attributes: Attributes, trace: bytes, span: bytes) -> Feedback:
    """Return the feedback of an event `gen_ai.evaluation.result`."""
    name, value, label = (attributes.get(f"{_EVALUATION}.{part}") for part in ("name", "score.value", "score.label"))
    return build_feedback(trace, span, name, value, label, "api", str(attributes.get("gen_ai.response.id", "")))


def build_feedback(
    trace: bytes, span: bytes, name: object, value: object, label: object, source: str, key: str = ""
) -> Feedback:
    """Return feedback with a number or a label; a text in place of a number is a label. Raises `ValueError`."""
    if not name:
        raise ValueError("feedback without a name")
    if isinstance(value, str):
        value, label = None, label or value
    number = float(value) if isinstance(value, int | float) else None  # also a boolean
    return Feedback(trace, span, str(name), number, str(label or ""), _FEEDBACK_KINDS.get(source.lower(), "api"), key)


def decode_mlflow(attributes: Attributes) -> dict[str, Any]:
    """Return the attributes of a span of MLflow, each of which is JSON in a text."""
    return {key: parse_text(value) if isinstance(value, str) else value for key, value in attributes.items()}
