"""Encodes the documents of a sweep on all of its workers, in shards, before its combinations are evaluated.

Each worker takes shards that no other worker is encoding. Shards in the store are not encoded again, so a killed sweep
can resume. If a worker dies, another one takes over its current shard.
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
from retrievers.work import WorkKind
from runner.evaluation.bench import Bench
from runner.evaluation.experiment import Experiment
from runner.store.base import WorkStore
from runner.sweep.plan import works_of

if TYPE_CHECKING:
    from retrievers.encoders.base import Encoder

T = TypeVar("T")

FEWEST = 2
"""The smallest number of missing shards to distribute."""


@dataclass(frozen=True)
class DocumentEncoding:
    """The digests of missing shards, for one of the experiments with the same encoder and documents."""

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
        shards = [key for key in _iter_keys(work) if key.kind.sharded]
        missing = frozenset(bench.store.find_missing(shards))
        if len(missing) >= FEWEST:
            encodings.setdefault(missing, DocumentEncoding(combination, encoding[combination], missing))
    return list(encodings.values())


def encode_missing(encoding: DocumentEncoding, bench: Bench) -> None:
    """Encode missing shards that no other process is encoding, until none is left."""
    corpus, store = bench.dataset(encoding.experiment).corpus, _MissingOnly(bench.store, encoding.missing)
    for encoder in iter_encoders(encoding.experiment.retriever):
        encoder.embed(corpus, store)


def iter_encoders(settings: object) -> Iterator[Encoder]:
    """Yield the encoders of a retriever and of its parts that encode documents in shards."""
    from retrievers.encoders.base import Encoder, PlannedEncoder  # most sweeps do not need it

    if isinstance(settings, Encoder) and isinstance(settings, PlannedEncoder):
        yield settings
    for part in iter_parts(settings):
        yield from iter_encoders(part)


def _iter_keys(work: Work) -> Iterator[Key]:
    yield work.key
    for needed in work.needs:
        yield from _iter_keys(needed)


class _MissingOnly:
    """A store that writes missing entries to another store, and returns empty arrays to save memory."""

    def __init__(self, store: WorkStore, missing: Collection[str]) -> None:
        self._store, self._missing = store, missing
        self._nothing: Arrays = defaultdict(lambda: np.zeros((0, 0), dtype=np.float32))

    def arrays(self, key: Key, build: Callable[[], Arrays]) -> Arrays:
        if not key.kind.sharded:
            return self._store.arrays(key, build)
        if key.digest in self._missing:
            self._store.arrays(key, build)
        return self._nothing

    def arrays_unless_busy(self, key: Key, build: Callable[[], Arrays]) -> Arrays | None:
        if key.digest not in self._missing:
            return self._nothing
        return None if self._store.arrays_unless_busy(key, build) is None else self._nothing

    def list_keys(self, *kinds: WorkKind) -> list[Key]:
        return self._store.list_keys(*kinds)

    def borrow(self, key: Key, share: float) -> Arrays | None:
        return self._store.borrow(key, share)

    def share(self, key: Key, make: Callable[[], T]) -> T:
        return self._store.share(key, make)
