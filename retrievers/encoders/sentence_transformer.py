"""Vectors of pre-trained models, through sentence-transformers.

All vectors go through the store: the model is opened, and torch imported, only for a new text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.encoders.base import Embedded, Role, Vectors, embed_by_role
from retrievers.encoders.model_settings import PromptedModel
from retrievers.encoders.pretrained import is_bundled
from retrievers.errors import RetrieverError
from retrievers.search import Work
from retrievers.store import Store
from retrievers.work import DOCUMENT_VECTORS, QUERY_VECTORS, WorkKind

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from retrievers.base import Corpus

RESULTS_VERSION = "sentence transformer 1"


@settings(frozen=True, config={"extra": "forbid"}, repr=False)
class SentenceTransformerEncoder(PromptedModel):
    """Settings of a model that has a vector for each text.

    `dimensions` keeps the first dimensions only (Matryoshka embeddings), before `normalize`.
    """

    access: ClassVar[Access] = Access("models", names=("model",), is_bundled=is_bundled)
    WORK: ClassVar[Mapping[Role, WorkKind]] = {"document": DOCUMENT_VECTORS, "query": QUERY_VECTORS}

    model: str = "all-MiniLM-L6-v2"
    batch_tokens: int | None = Field(default=4096, ge=1, repr=False)
    dimensions: int | None = Field(default=None, ge=1)
    normalize: bool = True

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        """Return the vectors of the corpus; shards that the store lacks are encoded."""
        # Opened for the first new text, as separate work that is not timed as encoding.
        model = cache(lambda: self.open_model(store))
        return embed_by_role(corpus, self.build_key, lambda role, texts: self._encode(model(), role, texts), store)

    def plan(self, corpus: Corpus, queries: Sequence[str], store: Store) -> Sequence[Work]:
        """Return the encoding of each shard and of the queries as work; opens the model only if one is not stored."""
        return self.plan_encoding(corpus, queries, store)

    def list_parts(self, role: Role) -> dict[str, object]:
        """Return what the vectors of texts in a role depend on, besides the texts."""
        return {**super().list_parts(role), "dimensions": self.dimensions, "normalize": self.normalize}

    def _open(self, store: Store) -> SentenceTransformer:
        """Open the model and encode a word, so that the first text takes no longer than others."""
        from sentence_transformers import SentenceTransformer

        model = self.open_with(SentenceTransformer, store)
        model.encode(["word"], show_progress_bar=False)
        return model

    def _encode(self, model: SentenceTransformer, role: Role, texts: Sequence[str]) -> Vectors:
        """Return one row per text, zeros for a blank one."""
        encode = model.encode_query if role == "query" else model.encode_document
        options = {"truncate_dim": self.dimensions, "normalize_embeddings": self.normalize}
        rows = self.encode_texts(model, role, texts, encode, **options)
        vectors = np.stack(rows).astype(np.float32, copy=False)
        if self.dimensions and self.dimensions > vectors.shape[1]:
            raise RetrieverError(
                f"dimensions={self.dimensions}: the vectors of {self.model} have only {vectors.shape[1]} dimensions"
            )
        vectors[[not text.strip() for text in texts]] = 0
        if not np.isfinite(vectors).all():
            raise RetrieverError(f"model={self.model}: the model returned NaN or infinite values")
        return vectors
