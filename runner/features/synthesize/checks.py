"""Check chunks: queries are only generated from chunks of a suitable length that are not near-duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass as settings

from runner.features.synthesize.base import Chunks
from runner.features.synthesize.limits import tokens

BLOCK = 2048
"""The number of chunks per block; only similarities between two blocks are in memory at a time."""


@settings(frozen=True, config={"extra": "forbid"})
class Checks:
    """Bounds of a chunk's tokens, and the cosine with an earlier chunk from which it is a near-duplicate."""

    min_tokens: int = Field(default=5, ge=1)
    max_tokens: int = Field(default=5000, ge=1)
    duplicate_similarity: float = Field(default=0.98, gt=0, le=1)

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens={self.min_tokens}: should be at most max_tokens={self.max_tokens}")
        return self


@dataclass(frozen=True)
class Rejection:
    """A rejected chunk, by its position, with the reason and the evidence as text."""

    position: int
    reason: str
    evidence: str = ""


def filter_chunks(checks: Checks, chunks: Chunks) -> tuple[NDArray[np.int64], list[Rejection]]:
    """Return the positions of the chunks that pass, and the rejections of the others, both in order."""
    rejected: dict[int, Rejection] = {}
    directed = np.linalg.norm(chunks.vectors, axis=1) > 0
    for position, text in enumerate(chunks.texts):
        if not text.strip():
            rejected[position] = Rejection(position, "empty")
            continue
        length = len(tokens(text))
        if length < checks.min_tokens:
            rejected[position] = Rejection(position, "too short", f"{length} tokens, below {checks.min_tokens}")
        elif length > checks.max_tokens:
            rejected[position] = Rejection(position, "too long", f"{length} tokens, above {checks.max_tokens}")
        elif not directed[position]:
            rejected[position] = Rejection(position, "no direction", "the encoder does not know any of its words")
    left = np.array([p for p in range(len(chunks)) if p not in rejected], dtype=np.int64)
    originals = _originals(chunks.vectors[left], checks.duplicate_similarity)
    for place in np.flatnonzero(originals >= 0).tolist():
        position, original = int(left[place]), int(left[originals[place]])
        evidence = f"as {chunks.chunk_ids[original]!r} of {chunks.doc_ids[original]!r}"
        rejected[position] = Rejection(position, "near-duplicate", evidence)
    return left[originals < 0], [rejected[position] for position in sorted(rejected)]


def _originals(vectors: NDArray[np.float32], similarity: float) -> NDArray[np.int64]:
    """Return the first kept near-duplicate of each vector, -1 for a vector that is kept itself.

    Vectors (n x d) have length 1. They are compared in blocks, so that memory grows with n, not with its square.
    """
    originals = np.full(len(vectors), -1, dtype=np.int64)
    kept: list[NDArray[np.int64]] = []  # positions, in blocks
    for start in range(0, len(vectors), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(vectors)))
        for before in kept:
            open_ = block[originals[block] < 0]
            alike = vectors[open_] @ vectors[before].T >= similarity
            hit = alike.any(axis=1)
            originals[open_[hit]] = before[alike[hit].argmax(axis=1)]
        open_ = block[originals[block] < 0]
        alike = np.triu(vectors[open_] @ vectors[open_].T >= similarity, 1)
        for i in np.flatnonzero(alike.any(axis=1)).tolist():
            # A rejected chunk is not an original. Otherwise only the first of a chain of chunks would be kept, each
            # similar to the one before it, although the last may differ from the first in every sentence.
            if originals[open_[i]] < 0:
                later = open_[alike[i]]
                originals[later[originals[later] < 0]] = open_[i]
        if (new := block[originals[block] < 0]).size:
            kept.append(new)
    return originals
