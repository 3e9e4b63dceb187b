"""Encode the documents of a sweep on all of its workers, in shards, before its combinations are evaluated.

Each worker takes shards that no other one is encoding. What is in the store is not encoded again, so a sweep that was
killed resumes. A worker that dies loses its current shard, which another one takes over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from retrievers.base import iter_parts
from retrievers.search import Work
from retrievers.store import Arrays, Key
from runner.evaluation import Bench
from runner.experiment import Experiment
from runner.store.base import WorkStore
from runner.sweep.plan import works_of

if TYPE_CHECKING:
    from retrievers.encoders.base import Encoder

T = TypeVar("T")

FEWEST = 2
"""The number of missing shards from which they are distributed."""


@dataclass(frozen=True)
class DocumentEncoding:
    """The shards that are missing, by digest, for an experiment and others with the same encoder and documents."""

    combination: str
    experiment: Experiment
    missing: frozenset[str]


def find_encodings(experiments: Mapping[str, Experiment], bench: Bench) -> list[DocumentEncoding]:
    """Return the encodings of documents that experiments need and the store lacks, each once.

    Experiments whose rankings are in the store need none.
    """
    encoding = {c: e for c, e in experiments.items() if any(True for _ in iter_encoders(e.retriever))}
    works = works_of(encoding, bench)
    lacking = bench.store.find_missing([work.key for work in works.values()])
    encodings: dict[frozenset[str], DocumentEncoding] = {}
    for combination, work in works.items():
        if work.key.digest not in lacking:
            continue
        shards = [key for key in _iter_keys(work) if key.kind.startswith("document ")]
        missing = frozenset(bench.store.find_missing(shards))
        if len(missing) >= FEWEST:
            encodings.setdefault(missing, DocumentEncoding(combination, encoding[combination], missing))
    return list(encodings.values())


def encode_missing(encoding: DocumentEncoding, bench: Bench) -> None:
    """Encode shards that no other process is encoding, until none is missing."""
    corpus, store = bench.dataset(encoding.experiment).corpus, _MissingOnly(bench.store, encoding.missing)
    for encoder in iter_encoders(encoding.experiment.retriever):
        encoder.embed(corpus, store)


def iter_encoders(settings: object) -> Iterator[Encoder]:
    """Yield the encoders of a retriever and of its parts that encode documents in shards."""
    from retrievers.encoders.base import Encoder, PlannedEncoder  # only here, as most sweeps need none

    if isinstance(settings, Encoder) and isinstance(settings, PlannedEncoder):
        yield settings
    for part in iter_parts(settings):
        yield from iter_encoders(part)


def _iter_keys(work: Work) -> Iterator[Key]:
    yield work.key
    for needed in work.needs:
        yield from _iter_keys(needed)


class _MissingOnly:
    """A store that keeps missing entries in another one, and gives empty arrays, which need no memory, for all."""

    def __init__(self, store: WorkStore, missing: Collection[str]) -> None:
        self._store, self._missing = store, missing
        self._nothing: Arrays = defaultdict(lambda: np.zeros((0, 0), dtype=np.float32))

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        if key.digest in self._missing:
            self._store.arrays(key, build)
        return self._nothing

    def arrays_unless_busy(self, key: Key, build: Callable[[], Arrays]) -> Arrays | None:
        if key.digest not in self._missing:
            return self._nothing
        return None if self._store.arrays_unless_busy(key, build) is None else self._nothing

    def share(self, key: Key, make: Callable[[], T]) -> T:
        return self._store.share(key, make)
