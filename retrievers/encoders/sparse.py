"""Weights of terms by learned sparse models (SPLADE, inference-free models), through sentence-transformers.

The weights of all terms go through the store, whatever a search leaves out: pruning encodes nothing again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass as settings

from retrievers.encoders.base import Role, time_alone
from retrievers.encoders.model_settings import PromptedModel
from retrievers.encoders.pretrained import check_trained
from retrievers.encoders.shards import check_encoded, encode_in_shards
from retrievers.errors import RetrieverError
from retrievers.store import Arrays, Store
from retrievers.vectors.term_weights import TermWeights, join_weights
from retrievers.work import DOCUMENT_TERM_WEIGHTS, QUERY_TERM_WEIGHTS, WorkKind

if TYPE_CHECKING:
    from sentence_transformers import SparseEncoder

    from retrievers.base import Corpus

RESULTS_VERSION = "sparse model 1"

_POOLED_TOKENS = 128
"""How many tokens are pooled at a time, each with a number for every term: more take more memory and are slower."""


@settings(frozen=True, config={"extra": "forbid"}, repr=False)
class SparseModel(PromptedModel):
    """Settings of a learned sparse model, which `SparseEncoder` of sentence-transformers opens."""

    WORK: ClassVar[Mapping[Role, WorkKind]] = {"document": DOCUMENT_TERM_WEIGHTS, "query": QUERY_TERM_WEIGHTS}

    def weigh_documents(self, corpus: Corpus, store: Store) -> list[TermWeights]:
        """Return the weights of documents in shards; those that the store lacks are encoded."""
        model = self._open_once(store)
        shards = encode_in_shards(
            corpus.contents(),
            lambda part: self._encode(model(), "document", part).to_arrays(),
            partial(self.build_key, "document"),
            store,
        )
        return [TermWeights.of(shard) for shard in shards]

    def weigh_queries(
        self, queries: Sequence[str], store: Store, live: Store
    ) -> tuple[TermWeights, NDArray[np.float32]]:
        """Return the weights of queries, each encoded alone, and the seconds of each; `live` keeps the open model."""
        model = self._open_once(live)

        def build() -> Arrays:
            weights, seconds = time_alone(queries, partial(self._encode, model(), "query"))
            return {**join_weights(weights).to_arrays(), "seconds": seconds}

        kept = store.arrays(self.build_key("query", queries).with_check(check_encoded, len(queries)), build)
        return TermWeights.of(kept), kept["seconds"]

    def _open_once(self, store: Store) -> Callable[[], SparseEncoder]:
        """Return a function that opens the model, through the store, when it is first called."""
        return cache(lambda: self.open_model(store))

    def _open(self, store: Store) -> SparseEncoder:
        """Open the model and encode a word, so that the first text takes no longer than others."""
        from sentence_transformers import SparseEncoder
        from sentence_transformers.sparse_encoder.modules import SpladePooling

        model = self.open_with(SparseEncoder, store)
        check_trained(
            model, self.model, self.revision, "SparseAutoEncoder",
            "a learned sparse model such as SPLADE, or search by this model's vectors with retriever=dense",
        )  # fmt: skip
        for module in model.modules():
            if isinstance(module, SpladePooling) and module.chunk_size is None:
                module.chunk_size = _POOLED_TOKENS
        model.encode_query(["word"], show_progress_bar=False)
        model.encode_document(["word"], show_progress_bar=False)
        return model

    def _encode(self, model: SparseEncoder, role: Role, texts: Sequence[str]) -> TermWeights:
        """Return the weights of texts, none for a blank one."""
        encode_batch: Any = model.encode_query if role == "query" else model.encode_document

        def encode(batch: Sequence[str], **options: object) -> list[TermWeights]:
            matrix = encode_batch(batch, **options).coalesce()
            (rows, terms), weights = matrix.indices().numpy(), matrix.values().numpy().astype(np.float32, copy=False)
            if not np.isfinite(weights).all() or (weights < 0).any():
                raise RetrieverError(
                    f"model={self.model}: the model returned weights that are negative, NaN or infinite; choose a "
                    "model whose weights are 0 or more"
                )
            kept = (weights > 0) & np.array([bool(text.strip()) for text in batch], dtype=np.bool_)[rows]
            offsets = np.zeros(len(batch) + 1, dtype=np.int64)
            np.cumsum(np.bincount(rows[kept], minlength=len(batch)), out=offsets[1:])
            joined = TermWeights(matrix.shape[1], offsets, terms[kept].astype(np.int32), weights[kept])
            return [joined.select(position) for position in range(len(batch))]

        return join_weights(self.encode_texts(model, role, texts, encode, save_to_cpu=True))
