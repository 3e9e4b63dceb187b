"""The interface of encoders, and encoding in shards for documents and one by one for queries.

An encoder is a value: its settings. `embed` turns it and a corpus into vectors, and into a function that turns queries
into vectors of the same space, whether the encoder was trained before or is fitted on the corpus.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from retrievers.base import Corpus
from retrievers.search import Work
from retrievers.store import Arrays, Key, SharedStore, Store

T = TypeVar("T")
Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]
Role = Literal["query", "document"]

SHARD = 256
"""How many documents are embedded and stored together; a killed run loses at most as many."""

REPORT_INTERVAL_S = 5.0
"""The shortest time between two progress messages."""

_STRIDE = (5**0.5 - 1) / 2
"""The share of the remaining shards to skip after a busy one: the golden ratio spreads any number of processes."""

TRIAL, LONG = 8, 128
"""How many documents are encoded to estimate the duration, and the fewest documents for which it is estimated."""

logger = logging.getLogger("retrievers")


@dataclass(frozen=True, eq=False)
class Embedded:
    """The vectors of a corpus, and the function that turns queries into vectors of the same space.

    `documents` has the vectors in order, in shards of rows. `queries` returns one row per query, independent of the
    other queries, and the seconds that each took alone (NaN if not measured). A row of zeros is a text without a
    direction: a blank text, or one without words known to the encoder.
    """

    documents: Sequence[Vectors]
    queries: Callable[[Sequence[str], Store], tuple[Vectors, NDArray[np.float32]]]


@runtime_checkable
class Encoder(Protocol):
    """Settings of an encoder, as a frozen value whose repr is its identity."""

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        """Return the vectors of the corpus; expensive work goes through the store."""
        ...


@runtime_checkable
class PlannedEncoder(Protocol):
    """An encoder that can list its work for a corpus and queries without doing it."""

    def plan(self, corpus: Corpus, queries: Sequence[str], store: Store) -> Sequence[Work]:
        """Return the work of `embed` and its `queries`; objects that plans share go through the store."""
        ...


def embed_by_role(
    corpus: Corpus,
    build_key: Callable[[Role, Sequence[str]], Key],
    encode: Callable[[Role, Sequence[str]], Vectors],
    store: Store,
) -> Embedded:
    """Return the vectors of a corpus by a pre-trained model, stored in shards; those of queries are stored together."""

    def queries(texts: Sequence[str], store: Store) -> tuple[Vectors, NDArray[np.float32]]:
        kept = store.arrays(build_key("query", texts), lambda: encode_alone(texts, partial(encode, "query")))
        return kept["vectors"], kept["seconds"]

    documents = embed_in_shards(corpus.contents(), partial(encode, "document"), partial(build_key, "document"), store)
    return Embedded(documents, queries)


def plan_by_role(
    corpus: Corpus, queries: Sequence[str], build_key: Callable[[Role, Sequence[str]], Key], live: Key
) -> tuple[Work, ...]:
    """Return the encoding of each shard of documents, then that of the queries, as work that needs the open model."""
    keys = [build_key("document", part) for part in split_shards(corpus.contents())]
    opening = (Work("open model", live),)
    return tuple(Work("embed", key, opening) for key in (*keys, build_key("query", queries)))


def split_shards(texts: Iterable[str]) -> Iterator[Sequence[str]]:
    """Yield texts in the shards in which they are embedded and stored."""
    documents = list(texts)
    for start in range(0, len(documents), SHARD):
        yield documents[start : start + SHARD]


def embed_in_shards(
    texts: Iterable[str], encode: Encode, key: Callable[[Sequence[str]], Key], store: Store
) -> list[Vectors]:
    """Return the vectors of documents in shards, each stored under the key of its texts (`encode_in_shards`)."""
    shards = encode_in_shards(texts, lambda part: {"vectors": encode(part)}, key, store)
    return [shard["vectors"] for shard in shards]


def encode_in_shards(
    texts: Iterable[str],
    encode: Callable[[Sequence[str]], Arrays],
    key: Callable[[Sequence[str]], Key],
    store: Store,
) -> list[Arrays]:
    """Return the arrays of an encoder for documents, in shards, each stored under the key of its texts.

    A killed run resumes at its last shard, equal shards are embedded once, and processes that embed the same documents
    at the same time share the shards. The logger "retrievers" announces long work with an estimate before the first
    shard, then reports progress.
    """
    documents, done, fresh = list(texts), 0, 0
    began = reported = time.monotonic()

    def build(part: Sequence[str]) -> Arrays:
        nonlocal began, fresh
        if not fresh and len(documents) - done > LONG:
            _announce(documents[done:], encode)
            began = time.monotonic()
        fresh += len(part)
        return encode(part)

    parts = list(split_shards(documents))
    shards: dict[int, Arrays] = {}
    for position, arrays in _share_parts(parts, key, build, store):
        shards[position] = arrays
        now, done = time.monotonic(), done + len(parts[position])
        if fresh and done < len(documents) and now - reported >= REPORT_INTERVAL_S:
            reported, left = now, _format_duration((now - began) / fresh * (len(documents) - done))
            logger.info("embedded %s of %s documents, about %s left", f"{done:,}", f"{len(documents):,}", left)
    return [shards[position] for position in range(len(parts))]


def _share_parts(
    parts: Sequence[Sequence[str]],
    key: Callable[[Sequence[str]], Key],
    build: Callable[[Sequence[str]], Arrays],
    store: Store,
) -> Iterator[tuple[int, Arrays]]:
    """Yield the position and the arrays of each part; processes that encode the same parts at a time share the work.

    A part that another process is encoding is left for later, and the next part to try is far from it.
    """
    later: list[int] = []
    if isinstance(store, SharedStore):
        waiting = deque(range(len(parts)))
        while waiting:
            position = waiting.popleft()
            arrays = store.arrays_unless_busy(key(parts[position]), partial(build, parts[position]))
            if arrays is not None:
                yield position, arrays
            else:
                later.append(position)
                waiting.rotate(-round(len(waiting) * _STRIDE))
    else:
        later.extend(range(len(parts)))
    for position in later:
        yield position, store.arrays(key(parts[position]), partial(build, parts[position]))


def _announce(documents: Sequence[str], encode: Callable[[Sequence[str]], Arrays]) -> None:
    """Log how many documents will be embedded and how long that may take, estimated from a few of them."""
    logger.info("embedding %s documents", f"{len(documents):,}")
    encode(documents[:1])  # opens the model, which is not timed
    start = time.monotonic()
    trial = documents[:: len(documents) // TRIAL][:TRIAL]
    encode(trial)
    total = _format_duration((time.monotonic() - start) / len(trial) * len(documents))
    logger.info("embedding %s documents, about %s", f"{len(documents):,}", total)


def encode_alone(texts: Sequence[str], encode: Encode) -> Arrays:
    """Return the vectors of queries, each encoded alone in one thread, and their seconds.

    The last digits of a vector depend on the other texts of the batch and the number of threads; encoded alone in one
    thread, a query always has the same vector. More threads would save little, and would wait long on a busy machine.
    """
    rows, seconds = time_alone(texts, encode)
    vectors = np.concatenate(rows) if rows else np.zeros((0, 0), dtype=np.float32)
    return {"vectors": vectors, "seconds": seconds}


def time_alone(texts: Sequence[str], encode: Callable[[Sequence[str]], T]) -> tuple[list[T], NDArray[np.float32]]:
    """Return the result of an encoder for each text, encoded alone in one thread, and the seconds that each took."""
    seconds = np.empty(len(texts), dtype=np.float32)
    results: list[T] = []
    with threadpool_limits(1):
        for position, text in enumerate(texts):
            start = time.perf_counter()
            results.append(encode([text]))
            seconds[position] = time.perf_counter() - start
    return results, seconds


def _format_duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
