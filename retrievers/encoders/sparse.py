"""Weights of terms by learned sparse models (SPLADE, inference-free models), through sentence-transformers.

The weights of all terms go through the store, whatever a search leaves out: pruning encodes nothing again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from retrievers.base import Corpus, RetrieverError
from retrievers.encoders.base import encode_in_shards, split_shards, time_alone
from retrievers.encoders.pretrained import check_trained, identify_model, open_model, replace_surrogates, set_max_length
from retrievers.search import Work
from retrievers.store import Arrays, Key, Store, fingerprint
from retrievers.term_weights import TermWeights, join_weights

if TYPE_CHECKING:
    from sentence_transformers import SparseEncoder

Role = Literal["query", "document"]

_POOLED_TOKENS = 128
"""How many tokens are pooled at a time, each with a number for every term: more take more memory and are slower."""

_MADE_BY = (__name__, "retrievers.term_weights", "retrievers.encoders.pretrained")


@dataclass(frozen=True)
class SparseModel:
    """Settings of a learned sparse model, as `retrievers.sparse.LearnedSparse` describes them."""

    model: str
    revision: str | None = None
    max_length: int | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    device: str | None = None
    batch_size: int = 1

    def weigh_documents(self, corpus: Corpus, store: Store) -> list[TermWeights]:
        """Return the weights of documents in shards; those that the store lacks are encoded."""
        model = self._open_once(store)
        shards = encode_in_shards(
            corpus.contents(),
            lambda part: self._encode(model(), "document", part).to_arrays(),
            partial(self._build_key, "document"),
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

        kept = store.arrays(self._build_key("query", queries), build)
        return TermWeights.of(kept), kept["seconds"]

    def plan(self, corpus: Corpus, queries: Sequence[str], store: Store) -> Sequence[Work]:
        """Return the encoding of each shard of documents, then that of the queries, as work."""

        def works() -> tuple[Work, ...]:
            keys = [self._build_key("document", part) for part in split_shards(corpus.contents())]
            opening = (Work("open model", self._build_live_key()),)
            return tuple(Work("embed", key, opening) for key in (*keys, self._build_key("query", queries)))

        parts = {**corpus.key_parts, "queries": fingerprint(*queries), **self.list_parts("query")}
        parts["document_prompt"] = repr(self.document_prompt)
        return store.share(Key.of("encoding planned", _MADE_BY, **parts), works)

    def list_parts(self, role: Role) -> dict[str, object]:
        """Return what the weights of texts in a role depend on, besides the texts."""
        prompt = repr(self.query_prompt if role == "query" else self.document_prompt)
        model = identify_model(self.model, self.revision)
        return {"model": model, "max_length": self.max_length, "prompt": prompt}

    def _build_key(self, role: Role, texts: Sequence[str]) -> Key:
        size = {"rows": len(texts), "characters": sum(map(len, texts))}
        made_by = (*_MADE_BY, "retrievers.encoders.base") if role == "query" else _MADE_BY
        return Key.of(f"{role} term weights", made_by, texts=fingerprint(*texts), **size, **self.list_parts(role))

    def _build_live_key(self) -> Key:
        options = {"max_length": self.max_length, "device": self.device}
        return Key.of("live model", _MADE_BY, model=identify_model(self.model, self.revision), **options)

    def _open_once(self, store: Store) -> Callable[[], SparseEncoder]:
        """Return a function that opens the model, through the store, when it is first called."""
        return cache(lambda: store.share(self._build_live_key(), self._open))

    def _open(self) -> SparseEncoder:
        """Open the model and encode a word, so that the first text takes no longer than others."""
        from sentence_transformers import SparseEncoder
        from sentence_transformers.sparse_encoder.modules import SpladePooling

        model = open_model(SparseEncoder, self.model, self.revision, self.device, "torch")
        check_trained(
            model, self.model, self.revision, "SparseAutoEncoder",
            "a learned sparse model such as SPLADE, or search by this model's vectors with retriever=dense",
        )  # fmt: skip
        set_max_length(model, self.model, self.max_length)
        for module in model.modules():
            if isinstance(module, SpladePooling) and module.chunk_size is None:
                module.chunk_size = _POOLED_TOKENS
        model.encode_query(["word"], show_progress_bar=False)
        model.encode_document(["word"], show_progress_bar=False)
        return model

    def _encode(self, model: SparseEncoder, role: Role, texts: Sequence[str]) -> TermWeights:
        """Return the weights of texts, none for a blank one."""
        matrix = (model.encode_query if role == "query" else model.encode_document)(
            [replace_surrogates(text) for text in texts],
            prompt=self.query_prompt if role == "query" else self.document_prompt,
            batch_size=self.batch_size,
            save_to_cpu=True,
            show_progress_bar=False,
        ).coalesce()
        (rows, terms), weights = matrix.indices().numpy(), matrix.values().numpy().astype(np.float32, copy=False)
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise RetrieverError(
                f"model={self.model}: the model returned weights that are negative, NaN or infinite; choose a model "
                "whose weights are 0 or more"
            )
        kept = (weights > 0) & np.array([bool(text.strip()) for text in texts], dtype=np.bool_)[rows]
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows[kept], minlength=len(texts)), out=offsets[1:])
        return TermWeights(matrix.shape[1], offsets, terms[kept].astype(np.int32), weights[kept])
