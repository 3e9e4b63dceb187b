"""Late interaction as a reranker: the MaxSim of a query with each candidate (`retrievers.max_sim`)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import fields
from functools import cache, partial
from threading import Lock

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.encoders.base import Vectors, time_alone
from retrievers.encoders.multi_vector import MultiVectorModel
from retrievers.encoders.pretrained import check_library, identify_model
from retrievers.max_sim import score_max_sim
from retrievers.rerankers.base import Rerank
from retrievers.rerankers.pair_scores import PairScorer, PairScores
from retrievers.store import Key, Store

_MADE_BY = (__name__, "retrievers.max_sim", "retrievers.encoders.multi_vector", "retrievers.encoders.pretrained")

_MOST_BYTES = 1 << 30
"""How many bytes of candidates' vectors are in memory; those used last stay."""


@settings(frozen=True, config={"extra": "forbid"})
class LateInteractionReranker:
    """Settings of late interaction as a reranker: those of `retrievers.late_interaction.LateInteraction`.

    The vectors of candidates are kept in memory for the queries to come, and scores in the store. Tokens are pooled if
    `pool_factor` is above 1.
    """

    model: str
    revision: str | None = None
    pool_factor: float = Field(default=1.0, ge=1, allow_inf_nan=False)
    max_length: int | None = Field(default=None, ge=1)
    query_prompt: str | None = None
    document_prompt: str | None = None
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
        names = ("pool_factor", "max_length", "query_prompt", "document_prompt")
        parts = {"model": identify_model(self.model, self.revision), **{n: repr(getattr(self, n)) for n in names}}
        live = Key.of("live pair model", _MADE_BY, device=self.device, **parts)
        encoder = MultiVectorModel(**{field.name: getattr(self, field.name) for field in fields(MultiVectorModel)})
        model = cache(lambda: store.share(live, partial(_LoadedMaxSim, encoder, store)))
        return PairScorer(_MADE_BY, parts, lambda query, texts: model().score(query, texts))


class _LoadedMaxSim:
    """An open model with the vectors of texts seen lately. It encodes for one thread at a time."""

    def __init__(self, encoder: MultiVectorModel, store: Store) -> None:
        self._encoder, self._model = encoder, encoder.open_once(store)()
        self._vectors: OrderedDict[str, Vectors] = OrderedDict()
        self._bytes, self._alone = 0, Lock()

    def score(self, query: str, texts: Sequence[str]) -> PairScores:
        """Return the score of the query with each text; 0 if one of them is blank."""
        with self._alone:
            began = time.perf_counter()
            # In one thread, as queries of a retriever are: the last digits depend on the number of threads.
            ((vectors,),), _ = time_alone([query], lambda texts: self._encoder.encode(self._model, "query", texts))
            if new := [text for text in texts if text not in self._vectors]:
                self._keep(new, self._encoder.encode_documents(self._model, new))
            matrices = [self._vectors[text] for text in texts]
            scores = [score_max_sim(vectors, matrix) if len(vectors) and len(matrix) else 0.0 for matrix in matrices]
            self._drop(texts)
            share = (time.perf_counter() - began) / len(texts)
        return {(query, text): (score, share) for text, score in zip(texts, scores, strict=True)}

    def _keep(self, texts: Sequence[str], matrices: Sequence[Vectors]) -> None:
        for text, matrix in zip(texts, matrices, strict=True):
            self._vectors[text] = matrix
            self._bytes += matrix.nbytes

    def _drop(self, texts: Sequence[str]) -> None:
        """Drop the vectors used longest ago, beyond the limit."""
        for text in texts:
            self._vectors.move_to_end(text)
        while self._bytes > _MOST_BYTES:
            _, matrix = self._vectors.popitem(last=False)
            self._bytes -= matrix.nbytes
