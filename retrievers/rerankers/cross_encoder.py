"""Cross-encoders of sentence-transformers: a model reads a query and a document together and scores the pair."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache, partial
from threading import Lock
from typing import ClassVar

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.encoders.backends import describe_backend
from retrievers.encoders.batches import encode_in_batches
from retrievers.encoders.cuts import measure_lengths
from retrievers.encoders.model_settings import PretrainedModel
from retrievers.encoders.pretrained import replace_surrogates
from retrievers.errors import RetrieverError
from retrievers.rerankers.base import Rerank
from retrievers.rerankers.pair_scores import Pair, PairScorer, PairScores
from retrievers.store import Key, Store
from retrievers.work import LIVE_MODEL

RESULTS_VERSION = "cross-encoder 1"


@settings(frozen=True, config={"extra": "forbid"}, repr=False)
class CrossEncoderReranker(PretrainedModel):
    """Settings of a cross-encoder. The score of a pair is its logit, which does not saturate.

    `max_length` is in tokens of query and document together. Batches may have pairs of several queries.
    """

    access: ClassVar[Access] = Access("models", names=("model",))

    model: str = "cross-encoder/ms-marco-MiniLM-L6-v2"
    max_length: int | None = Field(default=None, ge=8)

    def open(self, store: Store) -> Rerank:
        """Return the function that scores; it opens the model for the first new pair."""
        parts: dict[str, object] = {"model": self.identity, "max_length": self.max_length}
        parts |= describe_backend(self.backend, self.precision)
        live = Key.of(LIVE_MODEL, __name__, device=self.device, **parts)
        model = cache(lambda: store.share(live, partial(_LoadedCrossEncoder, self, store)))
        return PairScorer(__name__, parts, lambda pairs: model().score(pairs, self.batch_tokens))


class _LoadedCrossEncoder:
    """An open model. It scores for one thread at a time, because its tokenizer is not thread-safe."""

    def __init__(self, settings: CrossEncoderReranker, store: Store) -> None:
        """Open the model and score a pair, so that the first query takes no longer than others."""
        from sentence_transformers import CrossEncoder

        model = settings.open_with(CrossEncoder, store)
        if model.num_labels != 1:
            raise RetrieverError(
                f"model={settings.model}: returns {model.num_labels} scores for each pair; choose a model that "
                "returns one"
            )
        self._name, self._model, self._alone = settings.model, model, Lock()
        self.score([("word", "word")], None)

    def score(self, pairs: Sequence[Pair], batch_tokens: int | None) -> PairScores:
        """Return the score of each pair, its share of the seconds of its batch, and its tokens, read or not."""
        from torch.nn import Identity

        def predict(batch: Sequence[Pair]) -> list[tuple[float, float]]:
            start = time.perf_counter()
            scores = self._model.predict(
                batch, batch_size=len(batch), activation_fn=Identity(), show_progress_bar=False
            ).tolist()
            share = (time.perf_counter() - start) / len(batch)
            return [(score, share) for score in scores]

        cleaned = [(replace_surrogates(query), replace_surrogates(text)) for query, text in pairs]
        with self._alone:
            scores = encode_in_batches(predict, cleaned, batch_tokens, self._model)
        for (query, _), (score, _) in zip(pairs, scores, strict=True):
            if not np.isfinite(score):
                raise RetrieverError(
                    f"model={self._name}: the model returned NaN or infinite scores, for example for the query "
                    f"{query!r}"
                )
        lengths = measure_lengths(self._model, cleaned)
        return {pair: (*score, *length) for pair, score, length in zip(pairs, scores, lengths, strict=True)}
