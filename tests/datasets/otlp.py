"""Small files of spans in OTLP JSON, as OpenInference writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

START = 1_795_830_778_000_000_000
"""28 November 2026, in ISO week 48, in nanoseconds since 1970."""


def value(content: object) -> dict[str, Any]:
    """Return a value as OTLP JSON writes it."""
    if isinstance(content, bool):
        return {"boolValue": content}
    if isinstance(content, int):
        return {"intValue": str(content)}
    if isinstance(content, float):
        return {"doubleValue": content}
    if isinstance(content, list):
        return {"arrayValue": {"values": [value(inner) for inner in content]}}
    if isinstance(content, dict):
        return {"kvlistValue": {"values": attributes(content)}}
    return {"stringValue": content}


def attributes(content: dict[str, object]) -> list[dict[str, Any]]:
    """Return attributes as OTLP JSON writes them."""
    return [{"key": name, "value": value(inner)} for name, inner in content.items()]


def span(
    number: int,
    content: dict[str, object],
    parent: int = 0,
    trace: int = 0,
    seconds: float = 0,
    ms: float = 5,
    error: str = "",
    **more: object,
) -> dict[str, Any]:
    """Return a span; without a trace, it has one of its own."""
    start = START + int(seconds * 1e9)
    return {
        "traceId": f"{trace or number:032x}",
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": "step",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + int(ms * 1e6)),
        "attributes": attributes(content),
        "status": {"code": 2, "message": error} if error else {},
        **more,
    }


def documents(prefix: str, ids: Iterable[str]) -> dict[str, object]:
    """Return the attributes of a list of documents, with falling scores and a text for each."""
    return {
        f"{prefix}.{rank}.document.{name}": content
        for rank, identifier in enumerate(ids)
        for name, content in (("id", identifier), ("score", 1.0 - rank / 10), ("content", f"text of {identifier}"))
    }


def retrieval(query: str, *ids: str) -> dict[str, object]:
    """Return the attributes of a span of retrieval."""
    return {
        "openinference.span.kind": "RETRIEVER",
        "input.value": query,
        **documents("retrieval.documents", ids),
    }


def reranking(query: str, candidates: Iterable[str], ids: Iterable[str]) -> dict[str, object]:
    """Return the attributes of a span of reranking."""
    return {
        "openinference.span.kind": "RERANKER",
        "reranker.query": query,
        **documents("reranker.input_documents", candidates),
        **documents("reranker.output_documents", ids),
    }


def thumb(value: float, kind: str = "HUMAN") -> dict[str, object]:
    """Return the attributes of feedback on a span."""
    given = {"name": "helpful", "score": value, "annotator_kind": kind}
    return {f"annotations.0.annotation.{name}": content for name, content in given.items()}


def batch(*spans: dict[str, Any], **resource: object) -> dict[str, Any]:
    """Return spans as one batch of OTLP."""
    return {"resourceSpans": [{"resource": {"attributes": attributes(resource)}, "scopeSpans": [{"spans": [*spans]}]}]}


def write_spans(path: Path, *spans: dict[str, Any], **resource: object) -> str:
    """Write a file with a line for each span, and return its path."""
    path.write_text("".join(json.dumps(batch(one, **resource)) + "\n" for one in spans), encoding="utf-8")
    return str(path)
