"""Late interaction as a reranker: the MaxSim of a query with each candidate (`retrievers.vectors.max_sim`)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cache, partial
from threading import Lock
from typing import ClassVar

from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.encoders.backends import describe_backend
from retrievers.encoders.base import Vectors, time_alone
from retrievers.encoders.multi_vector import RESULTS_VERSION as MODEL_VERSION
from retrievers.encoders.multi_vector import MultiVectorModel
from retrievers.rerankers.base import Rerank
from retrievers.rerankers.pair_scores import Pair, PairScorer, PairScores
from retrievers.store import Key, Store
from retrievers.vectors.max_sim import score_max_sim
from retrievers.work import LIVE_PAIR_MODEL

RESULTS_VERSION = f"late-interaction reranker 1, {MODEL_VERSION}"

_MOST_BYTES = 1 << 30
"""How many bytes of candidates' vectors are in memory; those used last stay."""


@settings(frozen=True, config={"extra": "forbid"}, repr=False)
class LateInteractionReranker(MultiVectorModel):
    """Settings of late interaction as a reranker: those of its model.

    The vectors of candidates are kept in memory for the queries to come, and scores in the store. Tokens are pooled if
    `pool_factor` is above 1.
    """

    access: ClassVar[Access] = Access("models", names=("model",))
    MADE_BY: ClassVar[str] = MultiVectorModel.__module__

    def open(self, store: Store) -> Rerank:
        """Return the function that scores; it opens the model for the first new pair."""
        names = ("pool_factor", "max_length", "query_prompt", "document_prompt")
        parts: dict[str, object] = {"model": self.identity, **{name: repr(getattr(self, name)) for name in names}}
        parts |= describe_backend(self.backend, self.precision)
        live = Key.of(LIVE_PAIR_MODEL, __name__, device=self.device, batch_tokens=self.batch_tokens, **parts)
        model = cache(lambda: store.share(live, partial(_LoadedMaxSim, self, store)))
        return PairScorer(__name__, parts, lambda pairs: model().score(pairs))


class _LoadedMaxSim:
    """An open model with the vectors of texts seen lately. It encodes for one thread at a time."""

    def __init__(self, encoder: MultiVectorModel, store: Store) -> None:
        self._encoder, self._model = encoder, encoder.open_once(store)()
        self._vectors: OrderedDict[str, Vectors] = OrderedDict()
        self._bytes, self._alone = 0, Lock()

    def score(self, pairs: Sequence[Pair]) -> PairScores:
        """Return the score of each pair, 0 if one of the two is blank, its share of the seconds of all, and its tokens.

        The tokens of a pair are those of its query and of its text; either may be cut.
        """
        queries, texts = dict.fromkeys(query for query, _ in pairs), dict.fromkeys(text for _, text in pairs)
        with self._alone:
            began = time.perf_counter()
            # In one thread, as queries of a retriever are: the last digits depend on the number of threads.
            encoded, _ = time_alone(list(queries), lambda alone: self._encoder.encode(self._model, "query", alone)[0])
            vectors = dict(zip(queries, encoded, strict=True))
            if new := [text for text in texts if text not in self._vectors]:
                self._keep(new, self._encoder.encode_documents(self._model, new))
            scores = [self._score_one(vectors[query], self._vectors[text]) for query, text in pairs]
            self._drop(texts)
            share = (time.perf_counter() - began) / len(pairs)
            of_query = dict(
                zip(queries, self._encoder.measure_lengths(self._model, "query", list(queries)), strict=True)
            )
            of_text = dict(zip(texts, self._encoder.measure_lengths(self._model, "document", list(texts)), strict=True))
        lengths = [of_query[query].join(of_text[text]) for query, text in pairs]
        return {pair: (score, share, *length) for pair, score, length in zip(pairs, scores, lengths, strict=True)}

    @staticmethod
    def _score_one(query: Vectors, document: Vectors) -> float:
        return score_max_sim(query, document) if len(query) and len(document) else 0.0

    def _keep(self, texts: Sequence[str], matrices: Sequence[Vectors]) -> None:
        for text, matrix in zip(texts, matrices, strict=True):
            self._vectors[text] = matrix
            self._bytes += matrix.nbytes

    def _drop(self, texts: Iterable[str]) -> None:
        """Drop the vectors used longest ago, beyond the limit."""
        for text in texts:
            self._vectors.move_to_end(text)
        while self._bytes > _MOST_BYTES:
            _, matrix = self._vectors.popitem(last=False)
            self._bytes -= matrix.nbytes
