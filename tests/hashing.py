"""An encoder that hashes texts, slowly enough that its vectors are stored, and that may kill its process."""

from __future__ import annotations

import os
import signal
import time
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus
from retrievers.encoders.base import Embedded, Vectors
from retrievers.encoders.shards import TRIAL, embed_in_shards, split_shards
from retrievers.search import Work
from retrievers.store import Key, Store, fingerprint
from retrievers.work import DOCUMENT_VECTORS
from runner.store.base import WORTH_KEEPING_S


@dataclass(frozen=True)
class Hashing:
    """Notes each shard that it encodes in `folder`, and kills the first `dies` processes that encode one."""

    folder: str = field(repr=False)
    dies: int = field(default=0, repr=False)

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        """Return the vectors of the corpus."""

        def queries(texts: Sequence[str], store: Store) -> tuple[Vectors, NDArray[np.float32]]:
            return hash_texts(texts), np.full(len(texts), np.nan, dtype=np.float32)

        return Embedded(embed_in_shards(corpus.contents(), self._encode, build_key, store), queries)

    def plan(self, corpus: Corpus, queries: Sequence[str], store: Store) -> Sequence[Work]:
        """Return the encoding of each shard as work."""
        return [Work(build_key(part)) for part in split_shards(corpus.contents())]

    def list_encoded(self) -> list[str]:
        """Return the shards that were encoded, each as often as that happened."""
        return sorted(path.name.partition(".")[0] for path in Path(self.folder).glob("*.encoded"))

    def _encode(self, texts: Sequence[str]) -> Vectors:
        if len(texts) <= TRIAL:  # to estimate the duration
            return hash_texts(texts)
        deaths = Path(self.folder) / f"{uuid.uuid4().hex}.death"
        if len(list(deaths.parent.glob("*.death"))) < self.dies:
            deaths.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(2 * WORTH_KEEPING_S)
        (deaths.parent / f"{fingerprint(*texts)}.{uuid.uuid4().hex}.encoded").touch()
        return hash_texts(texts)


def build_key(texts: Sequence[str]) -> Key:
    """Return the key of a shard."""
    return Key.of(DOCUMENT_VECTORS, __name__, texts=fingerprint(*texts))


def hash_texts(texts: Sequence[str]) -> Vectors:
    """Return a vector for each text."""
    seeds = [zlib.crc32(text.encode()) for text in texts]
    return np.array([np.random.default_rng(seed).random(8) for seed in seeds], dtype=np.float32).reshape(-1, 8)
