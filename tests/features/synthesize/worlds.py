"""Small chunks with vectors, and a generator of simple queries for tests of the code around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from runner.features.synthesize.base import Bundle, Chunks, Draft, Request
from runner.features.synthesize.pipeline import Candidate
from runner.features.synthesize.validation import QueryVerdict
from runner.llm.journal import Journal

TYPES = frozenset({"keyword", "long", "comparison"})


def create_chunks(vectors: Sequence[Sequence[float]] | NDArray[np.float32], doc_ids: Sequence[str] = ()) -> Chunks:
    """Return chunks with these vectors at length 1, by default one per document."""
    given = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    n = len(given)
    texts = [f"chunk number {i} tells about the matter w{i} and nothing else" for i in range(n)]
    documents = list(doc_ids) or [f"d{i}" for i in range(n)]
    return Chunks(documents, [str(i) for i in range(n)], texts, (), given / np.where(lengths > 0, lengths, 1))


def make_candidate(query: str, kind: str, goldens: tuple[int, ...], reason: str = "", **metrics: float) -> Candidate:
    """Return a query for gold chunks, accepted unless there is a reason to reject it."""
    verdict = QueryVerdict(not reason, reason, metrics, "nonllm")
    return Candidate(Request(Bundle(goldens, (1,)), kind, 7), Draft(query), verdict)


def scatter_chunks(n: int, documents: int, seed: int = 0, width: int = 8) -> Chunks:
    """Return chunks with vectors in all directions, dealt out to documents."""
    vectors = np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32)
    return create_chunks(vectors, [f"d{i % documents}" for i in range(n)])


def write_chunks(path: Path, rows: Iterable[dict[str, Any]]) -> str:
    """Write a file of chunks and return its path."""
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return str(path)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of JSON lines."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def list_rows(chunks: Chunks) -> list[dict[str, Any]]:
    """Return chunks as a file has them."""
    return [
        {"doc_id": d, "chunk_id": c, "chunk": t, "embedding": v.tolist()}
        for d, c, t, v in zip(chunks.doc_ids, chunks.chunk_ids, chunks.texts, chunks.vectors, strict=True)
    ]


@dataclass(frozen=True)
class StubGenerator:
    """Writes a query from each request, none for `barren` chunks, and raises at the call after `patience`."""

    barren: frozenset[int] = frozenset()
    possible_types: frozenset[str] = TYPES
    types: tuple[str, ...] | None = None
    patience: int = field(default=1_000_000, repr=False)
    calls: list[Request] = field(default_factory=list, repr=False)

    def drafts(self, chunks: Chunks, requests: Iterable[Request], journal: Journal) -> Iterator[tuple[int, Draft]]:
        """Yield drafts, the last first."""
        for position, request in reversed(list(enumerate(requests))):
            if len(self.calls) >= self.patience:
                raise KeyboardInterrupt
            self.calls.append(request)
            first = request.bundle.goldens[0]
            query = f"{request.query_type} w{first} {request.seed % 1000}"
            yield position, Draft("", "barren") if first in self.barren else Draft(query)


def write_reply(question: str, system: str) -> str:
    """Answer as a capable model does: the requested query in its own words, with some words around it."""
    passages = re.findall(r"\[Passage \d+\]\n(.*?)(?=\n\n|\Z)", question, re.DOTALL)
    if "Rate the passages" in question or "How well would these" in question:
        return "2"
    if "Use no other knowledge" in question:
        return f"They say that {passages[0]}"
    a, b, c, d = list(dict.fromkeys(re.findall(r"[a-z]{5,}", passages[0].lower())))[1:8:2]
    other = " ".join(passages[1].lower().split()[3:6])
    replies = {
        "question about an idea": f"**Why does {a} {b} need {c} to work with {d}?**",
        "copied character by character": f'"{re.split("(?<=[.]) ", passages[0])[0]}"',
        "web search engine": f"{a} {b} {c} {d}",
        "words that are not in the passages": f"<think>It has {a}.</think>\n\nWhat keeps {c} going without {d}?",
        "one short answer": f"Query: What is the number that {a} {b} has for {c} of {d}?",
        "terms and identifiers": f"`{a} {c} {d}`",
        "with a slip": f"{a[:-2]}{a[-1]}{a[-2]} {b} {c} {d}",
        "a need told at length": f"Sure! Here is a query:\n\nI have been at {a} for a while and do not see how {b} "
        f"goes with {c}; is there anything on what {d} is for, and on when one would do without it?",
        "one ordinary question": f"1. how do {a} {b} and {c} go together with {d}",
        "shortest query": f"{a} {d}",
        "compares what": f"What sets {a} {b} apart from {other}?",
    }
    return next(reply for phrase, reply in replies.items() if phrase in question)
