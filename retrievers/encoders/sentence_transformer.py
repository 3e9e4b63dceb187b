"""Vectors of pre-trained models, through sentence-transformers.

All vectors go through the store: the model is opened, and torch imported, only for a new text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus, RetrieverError
from retrievers.encoders.base import Embedded, Vectors, embed_in_shards, encode_alone, split_shards
from retrievers.encoders.pretrained import (
    Backend,
    check_library,
    identify_model,
    open_model,
    replace_surrogates,
    set_max_length,
)
from retrievers.search import Work
from retrievers.store import Key, Store, fingerprint

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Role = Literal["query", "document"]

_MADE_BY = (__name__, "retrievers.encoders.pretrained")


@settings(frozen=True, config={"extra": "forbid"})
class SentenceTransformerEncoder:
    """Settings of a sentence-transformers model.

    `model` is a folder, or a name on the Hugging Face hub, at a `revision`. `max_length` is in tokens; null is the
    model's own. A prompt is put before every text; null is the one saved with the model, if any. `dimensions` keeps the
    first dimensions only (Matryoshka embeddings), before `normalize`. With a null `device` the fastest available one is
    used.
    """

    model: str = "all-MiniLM-L6-v2"
    revision: str | None = None
    max_length: int | None = Field(default=None, ge=1)
    query_prompt: str | None = None
    document_prompt: str | None = None
    dimensions: int | None = Field(default=None, ge=1)
    normalize: bool = True
    backend: Backend = "torch"
    device: str | None = Field(default=None, repr=False)
    batch_size: int = Field(default=16, ge=1, repr=False)

    def __post_init__(self) -> None:
        check_library()

    def __repr__(self) -> str:
        """Return the settings and the identity of the model, which changes with the files in its folder."""
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
        return f"{type(self).__name__}({', '.join(shown)}, identity={identify_model(self.model, self.revision)!r})"

    def embed(self, corpus: Corpus, store: Store) -> Embedded:
        """Return the vectors of the corpus; shards that the store lacks are encoded."""
        # Opened for the first new text, as separate work that is not timed as encoding.
        model = cache(lambda: store.share(self._live_key(), partial(_open, self)))
        document_key, query_key = self._key_of("document"), self._key_of("query")

        def documents(texts: Sequence[str]) -> Vectors:
            return _encode(self, model(), "document", texts)

        def queries(texts: Sequence[str], store: Store) -> tuple[Vectors, NDArray[np.float32]]:
            kept = store.arrays(query_key(texts), lambda: encode_alone(texts, partial(_encode, self, model(), "query")))
            return kept["vectors"], kept["seconds"]

        return Embedded(embed_in_shards(corpus.contents(), documents, document_key, store), queries)

    def plan(self, corpus: Corpus, queries: Sequence[str], store: Store) -> Sequence[Work]:
        """Return the encoding of each shard and of the queries as work; opens the model only if one is not stored."""

        def works() -> tuple[Work, ...]:
            document_key, query_key = self._key_of("document"), self._key_of("query")
            keys = [*map(document_key, split_shards(corpus.contents())), query_key(queries)]
            opening = (Work("open model", self._live_key()),)
            return tuple(Work("embed", key, opening) for key in keys)

        parts = {**corpus.key_parts, "queries": fingerprint(*queries), "encoder": self}
        return store.share(Key.of("encoding planned", _MADE_BY, **parts), works)

    def _live_key(self) -> Key:
        options = {"max_length": self.max_length, "backend": self.backend, "device": self.device}
        return Key.of("live model", _MADE_BY, model=identify_model(self.model, self.revision), **options)

    def _key_of(self, role: Role) -> Callable[[Sequence[str]], Key]:
        """Return the function from texts in a role to the key of their vectors, without the other role's prompt."""
        parts = {name: getattr(self, name) for name in ("max_length", "dimensions", "normalize", "backend")}
        made_by = (*_MADE_BY, encode_alone.__module__) if role == "query" else _MADE_BY
        parts |= {"model": identify_model(self.model, self.revision), "prompt": repr(getattr(self, f"{role}_prompt"))}

        def key(texts: Sequence[str]) -> Key:
            size = {"rows": len(texts), "characters": sum(map(len, texts))}
            return Key.of(f"{role} vectors", made_by, texts=fingerprint(*texts), **size, **parts)

        return key


def _open(encoder: SentenceTransformerEncoder) -> SentenceTransformer:
    """Open the model and encode a word, so that the first text takes no longer than others."""
    from sentence_transformers import SentenceTransformer

    model = open_model(SentenceTransformer, encoder.model, encoder.revision, encoder.device, encoder.backend)
    set_max_length(model, encoder.model, encoder.max_length)
    model.encode(["word"], show_progress_bar=False)
    return model


def _encode(
    encoder: SentenceTransformerEncoder, model: SentenceTransformer, role: Role, texts: Sequence[str]
) -> Vectors:
    """Return one row per text, zeros for a blank one."""
    vectors = (model.encode_query if role == "query" else model.encode_document)(
        [replace_surrogates(text) for text in texts],
        prompt=encoder.query_prompt if role == "query" else encoder.document_prompt,
        truncate_dim=encoder.dimensions,
        normalize_embeddings=encoder.normalize,
        batch_size=encoder.batch_size,
        show_progress_bar=False,
    ).astype(np.float32, copy=False)
    if encoder.dimensions and encoder.dimensions > vectors.shape[1]:
        raise RetrieverError(
            f"dimensions={encoder.dimensions}: the vectors of {encoder.model} have only {vectors.shape[1]} dimensions"
        )
    vectors[[not text.strip() for text in texts]] = 0
    if not np.isfinite(vectors).all():
        raise RetrieverError(f"model={encoder.model}: the model returned NaN or infinite values")
    return vectors
