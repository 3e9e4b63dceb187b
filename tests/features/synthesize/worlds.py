"""Small chunks with vectors, and a generator that writes what it is told, for tests of what is around it."""

from __future__ import annotations

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


def chunks_of(vectors: Sequence[Sequence[float]] | NDArray[np.float32], doc_ids: Sequence[str] = ()) -> Chunks:
    """Return chunks with these vectors, at length 1, one a document unless it is said whose they are."""
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


def scattered(n: int, documents: int, seed: int = 0, width: int = 8) -> Chunks:
    """Return chunks with vectors in all directions, dealt out to documents."""
    vectors = np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32)
    return chunks_of(vectors, [f"d{i % documents}" for i in range(n)])


def write_chunks(path: Path, rows: Iterable[dict[str, Any]]) -> str:
    """Write a file of chunks and return its path."""
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return str(path)


def rows_of(chunks: Chunks) -> list[dict[str, Any]]:
    """Return chunks as a file has them."""
    return [
        {"doc_id": d, "chunk_id": c, "chunk": t, "embedding": v.tolist()}
        for d, c, t, v in zip(chunks.doc_ids, chunks.chunk_ids, chunks.texts, chunks.vectors, strict=True)
    ]


@dataclass(frozen=True)
class Teller:
    """Makes a query of what was wanted, none of chunks that are `barren`, and raises at the call after `patience`."""

    barren: frozenset[int] = frozenset()
    possible_types: frozenset[str] = TYPES
    types: tuple[str, ...] | None = None
    patience: int = field(default=1_000_000, repr=False)
    asked: list[Request] = field(default_factory=list, repr=False)

    def drafts(self, chunks: Chunks, wanted: Iterable[Request], journal: Journal) -> Iterator[tuple[int, Draft]]:
        """Yield drafts, the last first."""
        for position, want in reversed(list(enumerate(wanted))):
            if len(self.asked) >= self.patience:
                raise KeyboardInterrupt
            self.asked.append(want)
            first = want.bundle.goldens[0]
            query = f"{want.query_type} w{first} {want.seed % 1000}"
            yield position, Draft("", "barren") if first in self.barren else Draft(query)
