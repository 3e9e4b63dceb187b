"""The interface of encoders, and encoding by the role of texts: documents in shards, queries one by one.

An encoder is a value: its settings. `embed` turns it and a corpus into vectors, and into a function that turns queries
into vectors of the same space, whether the encoder was trained before or is fitted on the corpus.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from retrievers.encoders.shards import check_encoded, embed_in_shards, split_shards
from retrievers.search import Work
from retrievers.store import Arrays, Key, Store

if TYPE_CHECKING:
    from retrievers.base import Corpus

T = TypeVar("T")
Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]
Role = Literal["query", "document"]

MAPPED_SHARD = 65_536
"""How many vectors of a matrix are read at a time."""


@dataclass(frozen=True, eq=False)
class Embedded:
    """The vectors of a corpus, and the function that turns queries into vectors of the same space.

    `documents` has the vectors in order, in shards of rows. `queries` returns one row per query, independent of the
    other queries, and the seconds that each took alone (NaN if not measured). A row of zeros is a text without a
    direction: a blank text, or one without words known to the encoder.
    """

    documents: Sequence[Vectors]
    queries: Callable[[Sequence[str], Store], tuple[Vectors, NDArray[np.float32]]]


@dataclass(frozen=True, eq=False)
class MappedVectors(Sequence[Vectors]):
    """The vectors of documents in a matrix of any numbers, which may be a file that is larger than memory.

    They are read in shards of float32. `rows` has the row of each document, None if documents and rows have one order.
    """

    matrix: NDArray[Any]
    rows: NDArray[np.int64] | None

    def __len__(self) -> int:
        """Return the number of shards."""
        return -(-self.documents // MAPPED_SHARD)

    def __getitem__(self, shard: int) -> Vectors:  # type: ignore[override]  # no slices
        """Return the vectors of a shard."""
        if not 0 <= shard < len(self):
            raise IndexError(shard)
        return self.read(slice(shard * MAPPED_SHARD, (shard + 1) * MAPPED_SHARD))

    @property
    def documents(self) -> int:
        """Return the number of documents."""
        return len(self.matrix if self.rows is None else self.rows)

    def read(self, documents: slice | NDArray[np.integer[Any]]) -> Vectors:
        """Return the vectors of documents at these positions."""
        rows = documents if self.rows is None else self.rows[documents]
        return np.asarray(self.matrix[rows], dtype=np.float32)


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
        key = build_key("query", texts).with_check(check_encoded, len(texts))
        kept = store.arrays(key, lambda: encode_alone(texts, partial(encode, "query")))
        return kept["vectors"], kept["seconds"]

    documents = embed_in_shards(corpus.contents(), partial(encode, "document"), partial(build_key, "document"), store)
    return Embedded(documents, queries)


def plan_by_role(
    corpus: Corpus, queries: Sequence[str], build_key: Callable[[Role, Sequence[str]], Key], live: Key
) -> tuple[Work, ...]:
    """Return the encoding of each shard of documents, then that of the queries, as work that needs the open model."""
    keys = [build_key("document", part) for part in split_shards(corpus.contents())]
    opening = (Work(live),)
    return tuple(Work(key, opening) for key in (*keys, build_key("query", queries)))


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
