"""What every encoder shares: what it makes of a corpus, work kept shard by shard, and queries encoded one by one.

An encoder is a value: its settings. `embed` turns it and a corpus into vectors, and into a way to turn queries into
vectors of the same space; an encoder that is fitted on the corpus and one that was trained before look the same.
Nothing here knows how a text becomes a vector.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from retrievers.base import Corpus
from retrievers.search import Work
from retrievers.store import Arrays, Key, Store

Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]

SHARD = 256
"""How many documents are embedded and kept together: what a run that is killed loses at most."""

TOLD_EVERY = 5.0
"""The least seconds between two lines about a long encoding."""

TRIAL, LONG = 8, 128
"""How many documents are encoded to estimate the duration, and from how many on an estimate is worth that."""

logger = logging.getLogger("retrievers")


@dataclass(frozen=True, eq=False)
class Embedded:
    """A corpus as vectors, and the way to turn queries into vectors of the same space.

    `documents` are the corpus's vectors, in order, in shards of rows. `queries` returns one row a query, the same
    whatever else is asked, and the seconds that each took alone (NaN where that was not measured). A row of zeros is a
    text without a direction: a blank one, or one of which the encoder knows no word.
    """

    documents: Sequence[Vectors]
    queries: Callable[[Sequence[str], Store], tuple[Vectors, NDArray[np.float32]]]


@runtime_checkable
class Encoder(Protocol):
    """Settings of a way to turn texts into vectors, as a frozen value whose repr is its identity."""

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        """Return the corpus as vectors; whatever is costly to make again goes through the store."""
        ...


@runtime_checkable
class PlannedEncoder(Protocol):
    """An encoder that can say what work it has with a corpus and queries without doing any."""

    def plan(self, corpus: Corpus, queries: Sequence[str], store: Store) -> Sequence[Work]:
        """Return the works that `embed` and its `queries` are; what is worth sharing goes through the store."""
        ...


def split_shards(texts: Iterable[str]) -> Iterator[Sequence[str]]:
    """Yield texts in the shards in which they are embedded and kept."""
    documents = list(texts)
    for start in range(0, len(documents), SHARD):
        yield documents[start : start + SHARD]


def embed_in_shards(
    texts: Iterable[str], encode: Encode, key: Callable[[Sequence[str]], Key], store: Store
) -> list[Vectors]:
    """Return the vectors of documents in shards, each kept under the key of its texts.

    A killed run resumes at its last shard, and equal shards are embedded once. The logger "retrievers" announces long
    work with an estimate before the first shard, then reports progress.
    """
    documents, shards, done, fresh = list(texts), [], 0, 0
    began = told = time.monotonic()

    def build(part: Sequence[str]) -> Arrays:
        nonlocal began, fresh
        if not fresh and len(documents) - done > LONG:
            _announce(documents[done:], encode)
            began = time.monotonic()
        fresh += len(part)
        return {"vectors": encode(part)}

    for part in split_shards(documents):
        shards.append(store.arrays(key(part), partial(build, part))["vectors"])
        now, done = time.monotonic(), done + len(part)
        if fresh and done < len(documents) and now - told >= TOLD_EVERY:
            told, left = now, _format_duration((now - began) / fresh * (len(documents) - done))
            logger.info("embedded %s of %s documents, about %s left", f"{done:,}", f"{len(documents):,}", left)
    return shards


def _announce(documents: Sequence[str], encode: Encode) -> None:
    """Log how many documents are about to be embedded and how long that may take, by a trial of a few of them."""
    logger.info("embedding %s documents", f"{len(documents):,}")
    encode(documents[:1])  # opens the model, which is not part of the rate
    start = time.monotonic()
    trial = documents[:: len(documents) // TRIAL][:TRIAL]
    encode(trial)
    total = _format_duration((time.monotonic() - start) / len(trial) * len(documents))
    logger.info("embedding %s documents, about %s", f"{len(documents):,}", total)


def encode_alone(texts: Sequence[str], encode: Encode) -> Arrays:
    """Return the vectors of queries, each encoded alone, and the seconds that each took.

    The last digits of a vector depend on what is encoded with it, and by how many threads: alone and by one, a query
    has the same vector whatever else is asked. By more threads it would gain little, and on a busy machine wait long.
    """
    seconds = np.empty(len(texts), dtype=np.float32)
    rows: list[Vectors] = []
    with threadpool_limits(1):
        for position, text in enumerate(texts):
            start = time.perf_counter()
            rows.append(encode([text]))
            seconds[position] = time.perf_counter() - start
    vectors = np.concatenate(rows) if rows else np.zeros((0, 0), dtype=np.float32)
    return {"vectors": vectors, "seconds": seconds}


def _format_duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
