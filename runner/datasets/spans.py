"""Read gold spans: passages of documents that answer queries, whatever the chunks are.

A line of JSON has `query_id`, `doc_id` and a passage: a `quote`, the offsets `start` and `end` of its characters, or
`lines`, the first and the last. Nothing here depends on chunks or measures.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from retrievers.base import Corpus
from runner.datasets import files
from runner.datasets.anchoring import (
    CONTEXT,
    Anchor,
    Method,
    Quote,
    find_all,
    find_lines,
    find_quote,
    hash_text,
    list_lines,
    lose,
)
from runner.datasets.base import DatasetError, Qrel
from runner.datasets.files import SourceRecord
from runner.datasets.words import word_starts

logger = logging.getLogger("runner.datasets")

SPANS = ".spans.jsonl"
"""The suffix of the file of spans next to a generated dataset."""

_SHOWN = 3


@dataclass(frozen=True)
class GoldSpan:
    """A passage of a document that answers a query, as recorded; it has a quote, offsets or lines.

    `digest` identifies the text of the document when the span was recorded. `location` names its line in the file, for
    messages.
    """

    query: str
    document: str
    grade: int = 1
    quote: Quote | None = None
    offsets: tuple[int, int] | None = None
    lines: tuple[int, int] | None = None
    digest: str | None = None
    location: str = ""

    @property
    def name(self) -> str:
        """Return what identifies the span among those of its query."""
        if self.offsets is not None:
            return f"{self.document}[{self.offsets[0]}:{self.offsets[1]}]"
        if self.lines is not None:
            return f"{self.document}[lines {self.lines[0]}-{self.lines[1]}]"
        text = self.quote.text if self.quote else ""
        return (
            f"{self.document}[{text!r}]" if len(text) <= 40 else f"{self.document}[{text[:40]!r}... {hash_text(text)}]"
        )


@dataclass(frozen=True)
class AnchoredSpan:
    """A span with its place in the present text of its document."""

    span: GoldSpan
    anchor: Anchor


def read_spans(path: Path) -> list[GoldSpan]:
    """Read a file of spans; raises `DatasetError`, which names the line and the field."""
    spans = [parse_span(record, record.identifier("query_id")) for record in files.json_lines(path)]
    if not spans:
        raise DatasetError(f"{path}: the file has no spans")
    return spans


def parse_span(record: SourceRecord, query: str) -> GoldSpan:
    """Return the span of a query that a record describes."""
    known = record.fields
    grade = record.grade("grade") if "grade" in known else 1
    if grade < 1:
        raise record.fault(f"'grade' is {grade}; a span is gold, so its grade must be at least 1")
    offsets = None
    if known.get("start") is not None or known.get("end") is not None:
        start, end = (_parse_integer(record, name, known.get(name)) for name in ("start", "end"))
        if not 0 <= start < end:
            raise record.fault(f"'start' is {start} and 'end' is {end}; expected 0 <= start < end")
        offsets = start, end
    lines = _parse_lines(record) if known.get("lines") is not None else None
    text = record.text("quote") if known.get("quote") is not None else ""
    if not text.strip() and offsets is None and lines is None:
        raise record.fault(
            f"the span has no location; add 'quote', 'start' and 'end', or 'lines'; the fields are {', '.join(known)}"
        )
    quote = Quote(
        text,
        start=offsets[0] if offsets else None,
        before=record.text("before") if "before" in known else None,
        after=record.text("after") if "after" in known else None,
        occurrences=_parse_integer(record, "occurrences", known["occurrences"]) if "occurrences" in known else None,
        digest=record.text("document_hash") if "document_hash" in known else None,
    )
    document, own = record.identifier("doc_id", "document_id"), quote if text.strip() else None
    return GoldSpan(query, document, grade, own, offsets, lines, quote.digest, record.location)


def _parse_lines(record: SourceRecord) -> tuple[int, int]:
    listed = record.fields["lines"]
    if not isinstance(listed, list) or len(listed) != 2:
        raise record.fault(f"'lines' is {listed!r:.60}; expected the numbers of the first and the last line")
    first, last = (_parse_integer(record, "lines", number) for number in listed)
    if not 1 <= first <= last:
        raise record.fault(f"'lines' is {listed}; expected 1 <= first <= last")
    return first, last


def _parse_integer(record: SourceRecord, name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise record.fault(f"{name!r} is {value!r:.60}; expected a whole number")
    return value


def anchor_spans(spans: Iterable[GoldSpan], corpus: Corpus, least: float) -> list[AnchoredSpan]:
    """Return spans with their places in the documents of a corpus; fuzzy matches are at least `least` similar.

    A span of a document that the corpus lacks is lost.
    """
    return [AnchoredSpan(span, _anchor(span, corpus, least)) for span in spans]


def _anchor(span: GoldSpan, corpus: Corpus, least: float) -> Anchor:
    position = corpus.positions.get(span.document)
    if position is None:
        return lose("the corpus has no such document" if span.document else "no document contains it")
    text = corpus.texts[position]
    anchor = _find(span, text, least)
    if not anchor.is_lost and not len(word_starts(text[anchor.start : anchor.end])):
        return lose("the passage contains no word")
    return anchor


def _find(span: GoldSpan, text: str, least: float) -> Anchor:
    if span.quote is not None:
        quote = span.quote
        if quote.start is None and span.lines is not None and not (line := find_lines(text, *span.lines)).is_lost:
            first = [at for at in find_all(quote.text, text) if line.start <= at < line.end]
            quote = Quote(quote.text, first[0] if len(first) == 1 else None, quote.before, quote.after)
        return find_quote(quote, text, least)
    if span.digest is not None and span.digest != hash_text(text):
        return lose("the document has changed since the span was recorded, and the span has no quote")
    method: Method = "unchecked" if span.digest is None else "exact"
    if span.offsets is not None:
        start, end = span.offsets
        if end > len(text):
            return lose(f"the document has only {len(text)} characters")
        return Anchor(start, end, method)
    anchor = find_lines(text, *(span.lines or (1, 1)))
    return anchor if anchor.is_lost else replace(anchor, method=method)


def list_span_qrels(spans: Iterable[AnchoredSpan]) -> list[Qrel]:
    """Return the judgments of whole documents: the highest grade of a query's spans in each.

    A lost span is a document of its own, which the corpus lacks, so that `unknown_judged` applies to it.
    """
    grades: dict[tuple[str, str], int] = {}
    for anchored in spans:
        document = anchored.span.name if anchored.anchor.is_lost else anchored.span.document
        key = anchored.span.query, document
        grades[key] = max(grades.get(key, 0), anchored.span.grade)
    return [(query, document, grade) for (query, document), grade in grades.items()]


def check_spans(spans: Sequence[AnchoredSpan], name: str, unknown_judged: str) -> None:
    """Log how spans were found; raise `DatasetError` if some are lost and may not be."""
    counts = Counter(anchored.anchor.method for anchored in spans)
    lost = [anchored for anchored in spans if anchored.anchor.is_lost]
    examples = "; ".join(describe_anchor(anchored) for anchored in lost[:_SHOWN])
    if lost and unknown_judged == "error":
        raise DatasetError(
            f"{name}: {len(lost):,} of {len(spans):,} spans were not found in their documents, for example "
            f"{examples}. Correct the file, or set dataset.unknown_judged=keep to count them as gold that cannot be "
            "found, or dataset.unknown_judged=drop to leave them out"
        )
    if lost:
        effect = "count as gold that cannot be found" if unknown_judged == "keep" else "are left out"
        logger.warning(
            "%s: %s of %s spans were not found in their documents and %s, for example %s",
            name, f"{len(lost):,}", f"{len(spans):,}", effect, examples,
        )  # fmt: skip
    if n := counts["unchecked"]:
        logger.warning(
            "%s: %s of %s spans have neither a quote nor a document_hash, so an edit of their document would not be "
            "noticed; export format=spans writes both",
            name, f"{n:,}", f"{len(spans):,}",
        )  # fmt: skip
    uncertain = sorted(
        (anchored for anchored in spans if is_uncertain(anchored)), key=lambda anchored: anchored.anchor.score
    )
    if uncertain:
        methods = ", ".join(f"{n:,} {m}" for m, n in counts.items() if m not in ("exact", "unchecked", "lost"))
        logger.warning(
            "%s: %s of %s spans were not matched exactly (%s), the least similar: %s. export format=spans lists them",
            name, f"{len(uncertain):,}", f"{len(spans):,}", methods, describe_anchor(uncertain[0]),
        )  # fmt: skip


def is_uncertain(anchored: AnchoredSpan) -> bool:
    """Return whether a span was found, but not by an exact and unambiguous match."""
    return anchored.anchor.method not in ("exact", "unchecked", "lost")


def describe_anchor(anchored: AnchoredSpan) -> str:
    """Return how a span was found, or why it is lost, in words."""
    span, anchor = anchored.span, anchored.anchor
    place = f"{span.location}, " if span.location else ""
    reason = f" ({anchor.reason})" if anchor.reason else ""
    score = "" if anchor.is_lost else f" with score {anchor.score:.2f}"
    return f"{place}query {span.query!r} in {span.name}: {anchor.method}{score}{reason}"


def format_span(query: str, document: str, grade: int, text: str, start: int, end: int) -> dict[str, Any]:
    """Return a span as a line of a file, with all that is needed to find it again after edits."""
    quote = text[start:end]
    return {
        "query_id": query,
        "doc_id": document,
        "grade": grade,
        "start": start,
        "end": end,
        "lines": list(list_lines(text, start, end)),
        "quote": quote,
        "before": text[max(0, start - CONTEXT) : start],
        "after": text[end : end + CONTEXT],
        "occurrences": len(find_all(quote, text)),
        "document_hash": hash_text(text),
    }


def report_spans(spans: Sequence[AnchoredSpan]) -> dict[str, Any]:
    """Return how many spans were found by each method, and all that were lost or not matched exactly."""
    doubtful = [anchored for anchored in spans if anchored.anchor.method != "exact"]
    return {
        "spans": len(spans),
        "methods": dict(Counter(anchored.anchor.method for anchored in spans)),
        "lost_or_inexact": [
            {
                "query_id": anchored.span.query,
                "doc_id": anchored.span.document,
                "method": anchored.anchor.method,
                "score": round(anchored.anchor.score, 4),
                "start": anchored.anchor.start,
                "end": anchored.anchor.end,
                "reason": anchored.anchor.reason,
                "quote": anchored.span.quote.text if anchored.span.quote else None,
                "location": anchored.span.location,
            }
            for anchored in sorted(doubtful, key=lambda anchored: anchored.anchor.score)
        ],
    }


def describe_spans(spans: Sequence[AnchoredSpan]) -> Iterator[str]:
    """Yield how many spans were found by each method, and what is left out."""
    counts = Counter(anchored.anchor.method for anchored in spans)
    yield f"{len(spans):,} spans: {', '.join(f'{n:,} {method}' for method, n in counts.most_common())}"
    if lost := [anchored for anchored in spans if anchored.anchor.is_lost]:
        answered = {anchored.span.query for anchored in spans if not anchored.anchor.is_lost}
        without = len({anchored.span.query for anchored in lost} - answered)
        yield (
            f"{len(lost):,} spans were not found and are left out, and with them {without:,} queries that have no "
            f"other; for example {describe_anchor(lost[0])}. spans.report.json lists them"
        )


def iter_rows(spans: Iterable[AnchoredSpan], corpus: Corpus) -> Iterator[Mapping[str, Any]]:
    """Yield the spans that were found as lines of a file, with their present places."""
    for anchored in spans:
        if not anchored.anchor.is_lost:
            text = corpus.texts[corpus.positions[anchored.span.document]]
            place = anchored.anchor.start, anchored.anchor.end
            yield format_span(anchored.span.query, anchored.span.document, anchored.span.grade, text, *place)
