"""Write the files of synthesis: accepted and rejected queries, the corpus of chunks, rejected chunks, and a summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runner.datasets.anchoring import CONTEXT
from runner.datasets.chunk_files import ChunkTable
from runner.datasets.saving import save
from runner.datasets.spans import SPANS, format_span
from runner.datasets.synthetic import BESIDE, join_chunks, name_query
from runner.features.synthesize.base import Chunks
from runner.features.synthesize.pipeline import Candidate, SynthesisResult

REJECTED_CHUNKS, REJECTED = ".rejected_chunks.jsonl", ".rejected.jsonl"
"""The suffixes of the files next to the queries."""

JsonObject = Mapping[str, Any]


def write(output: Path, result: SynthesisResult, summary: JsonObject) -> None:
    """Write all files next to each other."""
    chunks = result.chunks
    files = {
        BESIDE: (_chunk_row(chunks, position) for position in range(len(chunks))),
        SPANS: _iter_spans(result),
        REJECTED_CHUNKS: _iter_rejections(result),
        REJECTED: (_query_row(chunks, candidate) for candidate in result.candidates if not candidate.verdict.accepted),
        "": (_query_row(chunks, candidate) for candidate in result.accepted),
    }
    save(output, files, summary)


def _query_row(chunks: Chunks, candidate: Candidate) -> JsonObject:
    """Return a query as a row of `synthetic_ground_truth.jsonl`, with the reason if it was rejected."""
    goldens, verdict = candidate.request.bundle.goldens, candidate.verdict
    metrics = dict(verdict.metrics)
    relevance = metrics.pop("ragas_context_relevance", None)
    validation = {
        "query_type": candidate.request.query_type,
        "evaluation": verdict.evaluation,
        "bm25_margin": metrics.get("bm25_margin"),
        "ragas_context_relevance": relevance,
        "nonllm_metrics": metrics,
    }
    return {
        "query": candidate.draft.query,
        "expected_doc_ids": list(dict.fromkeys(chunks.doc_ids[golden] for golden in goldens)),
        "context_chunks": [
            {"doc_id": chunks.doc_ids[golden], "chunk_id": chunks.chunk_ids[golden], "chunk": chunks.texts[golden]}
            for golden in goldens
        ],
        "validation": validation if verdict.accepted else {**validation, "reason": verdict.reason},
    }


def _iter_spans(result: SynthesisResult) -> Iterator[JsonObject]:
    """Yield the answers of each query as spans of the documents that `dataset=synthetic` joins from the chunks.

    The text around them is that of all chunks, including rejected ones, as in the original documents.
    """
    source, chunks = result.source, result.chunks
    titles = list(chunks.titles) or [""] * len(chunks)
    documents, offsets = join_chunks(ChunkTable([*chunks.doc_ids], [*chunks.chunk_ids], titles, [*chunks.texts]))
    places = {key: place for place, key in enumerate(zip(source.doc_ids, source.chunk_ids, strict=True))}
    for number, (candidate, answers) in enumerate(zip(result.accepted, result.answers, strict=True), start=1):
        for golden, answer in zip(candidate.request.bundle.goldens, answers, strict=True):
            document, chunk, offset = chunks.doc_ids[golden], chunks.texts[golden], offsets[golden]
            text = documents.texts[documents.positions[document]]
            place = places[document, chunks.chunk_ids[golden]]
            before = [_text_beside(source, place, -1), chunk[: answer.start]]
            after = [chunk[answer.end :], _text_beside(source, place, 1)]
            span = format_span(name_query(number), document, 1, text, offset + answer.start, offset + answer.end)
            yield {
                **span,
                "before": "\n\n".join(filter(None, before))[-CONTEXT:],
                "after": "\n\n".join(filter(None, after))[:CONTEXT],
            }


def _text_beside(chunks: Chunks, place: int, step: int) -> str:
    """Return the text of the chunk before or after another of the same document, "" if there is none."""
    other = place + step
    is_beside = 0 <= other < len(chunks.texts) and chunks.doc_ids[other] == chunks.doc_ids[place]
    return chunks.texts[other] if is_beside else ""


def _chunk_row(chunks: Chunks, position: int) -> JsonObject:
    title = {"title": chunks.titles[position]} if chunks.titles and chunks.titles[position] else {}
    key = {"doc_id": chunks.doc_ids[position], "chunk_id": chunks.chunk_ids[position]}
    return {**key, **title, "chunk": chunks.texts[position]}


def _iter_rejections(result: SynthesisResult) -> Iterator[JsonObject]:
    for rejection in result.rejected:
        yield {
            "doc_id": result.source.doc_ids[rejection.position],
            "chunk_id": result.source.chunk_ids[rejection.position],
            "reason": rejection.reason,
            "found": rejection.evidence,
        }
