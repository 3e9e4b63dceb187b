"""Cross-encoders of sentence-transformers: a model reads a query and a document together and scores the pair."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields
from functools import cache, partial
from threading import Lock

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import RetrieverError
from retrievers.encoders.pretrained import (
    Backend,
    check_library,
    identify_model,
    open_model,
    replace_surrogates,
    set_max_length,
)
from retrievers.rerankers.base import Rerank
from retrievers.rerankers.pair_scores import PairScorer, PairScores
from retrievers.store import Key, Store

_MADE_BY = (__name__, "retrievers.rerankers.pair_scores", "retrievers.encoders.pretrained")


@settings(frozen=True, config={"extra": "forbid"})
class CrossEncoderReranker:
    """Settings of a cross-encoder. The score of a pair is its logit, which does not saturate.

    `model` is a folder, or a name on the Hugging Face hub, at a `revision`. `max_length` is in tokens of query and
    document together; null is the model's own. With a null `device` the fastest available one is used. A `batch_size`
    above 1 is faster on a GPU only, and the last digits of a score then depend on its batch.
    """

    model: str = "cross-encoder/ms-marco-MiniLM-L6-v2"
    revision: str | None = None
    max_length: int | None = Field(default=None, ge=8)
    backend: Backend = "torch"
    device: str | None = Field(default=None, repr=False)
    batch_size: int = Field(default=1, ge=1, repr=False)

    def __post_init__(self) -> None:
        check_library()

    def __repr__(self) -> str:
        """Return the settings and the identity of the model, which changes with the files in its folder."""
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
        return f"{type(self).__name__}({', '.join(shown)}, identity={identify_model(self.model, self.revision)!r})"

    def open(self, store: Store) -> Rerank:
        """Return the function that scores; it opens the model for the first new pair."""
        identity = identify_model(self.model, self.revision)
        parts = {"model": identity, "max_length": self.max_length, "backend": self.backend}
        live = Key.of("live model", _MADE_BY, device=self.device, **parts)
        model = cache(lambda: store.share(live, partial(_LoadedCrossEncoder, self)))
        return PairScorer(_MADE_BY, parts, lambda query, texts: model().score(query, texts, self.batch_size))


class _LoadedCrossEncoder:
    """An open model. It scores for one thread at a time, because its tokenizer is not thread-safe."""

    def __init__(self, settings: CrossEncoderReranker) -> None:
        """Open the model and score a pair, so that the first query takes no longer than others."""
        from sentence_transformers import CrossEncoder

        model = open_model(CrossEncoder, settings.model, settings.revision, settings.device, settings.backend)
        if model.num_labels != 1:
            raise RetrieverError(
                f"model={settings.model}: returns {model.num_labels} scores for each pair; choose a model that "
                "returns one"
            )
        set_max_length(model, settings.model, settings.max_length)
        self._name, self._model, self._alone = settings.model, model, Lock()
        self.score("word", ["word"], 1)

    def score(self, query: str, texts: Sequence[str], batch_size: int) -> PairScores:
        """Return the score of the query with each text."""
        from torch.nn import Identity

        pairs = [(replace_surrogates(query), replace_surrogates(text)) for text in texts]
        with self._alone:
            start = time.perf_counter()
            scores = self._model.predict(
                pairs, batch_size=batch_size, activation_fn=Identity(), show_progress_bar=False
            ).tolist()
            share = (time.perf_counter() - start) / len(texts)
        if not np.isfinite(scores).all():
            raise RetrieverError(
                f"model={self._name}: the model returned NaN or infinite scores, for example for the query {query!r}"
            )
        return {(query, text): (score, share) for text, score in zip(texts, scores, strict=True)}
