"""A vector for each token of a text, by late-interaction models (ColBERT), through sentence-transformers.

The vectors of all tokens go through the store; pooled ones are computed from them, so that pooling encodes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import psutil
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.encoders.base import Role, Vectors, time_alone
from retrievers.encoders.model_settings import PromptedModel
from retrievers.encoders.pretrained import check_trained, replace_surrogates
from retrievers.encoders.shards import check_encoded, encode_in_shards
from retrievers.errors import RetrieverError
from retrievers.search import Work
from retrievers.store import Arrays, Key, Store
from retrievers.work import DOCUMENT_TOKEN_VECTORS, POOLED_TOKEN_VECTORS, QUERY_TOKEN_VECTORS, WorkKind

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder

    from retrievers.base import Corpus

RESULTS_VERSION = "multi-vector model 1"

_SAMPLE = 64
"""How many documents are cut into tokens to estimate the memory that a corpus needs."""


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """The vectors of the tokens of texts: for text i, the rows `offsets[i]` to `offsets[i + 1]`; none if blank."""

    offsets: NDArray[np.int64]
    vectors: Vectors

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, text: int) -> Vectors:
        return self.vectors[self.offsets[text] : self.offsets[text + 1]]

    @cached_property
    def largest_norm(self) -> float:
        """Return the largest norm of a vector, 0 without any."""
        return float(np.sqrt(np.einsum("ij,ij->i", self.vectors, self.vectors).max(initial=0)))

    @classmethod
    def join(cls, matrices: Sequence[Vectors]) -> TokenVectors:
        """Return the vectors of texts, given a matrix for each."""
        offsets = np.zeros(len(matrices) + 1, dtype=np.int64)
        np.cumsum([len(matrix) for matrix in matrices], out=offsets[1:])
        width = max((matrix.shape[1] for matrix in matrices), default=0)
        filled = [matrix for matrix in matrices if len(matrix)]
        return cls(offsets, np.concatenate([np.zeros((0, width), dtype=np.float32), *filled]))


@settings(frozen=True, config={"extra": "forbid"}, repr=False)
class MultiVectorModel(PromptedModel):
    """Settings of a late-interaction model, which `MultiVectorEncoder` of sentence-transformers opens.

    `pool_factor` merges similar tokens of a document, so that about one in that many is left (Clavié et al. 2024); 1
    keeps all.
    """

    WORK: ClassVar[Mapping[Role, WorkKind]] = {"document": DOCUMENT_TOKEN_VECTORS, "query": QUERY_TOKEN_VECTORS}

    pool_factor: float = Field(default=1.0, ge=1, allow_inf_nan=False)

    def embed_documents(self, corpus: Corpus, store: Store) -> TokenVectors:
        """Return the vectors of documents; raises `RetrieverError` if they do not fit in memory."""
        model, texts = self.open_once(store), list(corpus.contents())
        check = cache(lambda: self._check_memory(texts, model()))

        def encode(part: Sequence[str]) -> Arrays:
            check()
            vectors = TokenVectors.join(self.encode(model(), "document", part))
            return {"offsets": vectors.offsets, "vectors": vectors.vectors}

        def pool(part: Sequence[str]) -> Arrays:
            shard = store.arrays(self.build_key("document", part), lambda: encode(part))
            whole = TokenVectors(shard["offsets"], shard["vectors"])
            vectors = TokenVectors.join([self._pool(whole[row]) for row in range(len(whole))])
            return {"offsets": vectors.offsets, "vectors": vectors.vectors}

        if self.pool_factor == 1:
            stored = encode_in_shards(texts, encode, partial(self.build_key, "document"), store)
        else:
            stored = encode_in_shards(
                texts, pool, lambda part: self._build_pooled_key(self.build_key("document", part)), store
            )
        shards = [TokenVectors(shard["offsets"], shard["vectors"]) for shard in stored]
        self._check_size(sum(shard.vectors.nbytes for shard in shards), len(texts))
        return TokenVectors.join([shard[row] for shard in shards for row in range(len(shard))])

    def embed_queries(
        self, queries: Sequence[str], store: Store, live: Store
    ) -> tuple[TokenVectors, NDArray[np.float32]]:
        """Return the vectors of queries, each encoded alone, and the seconds of each; `live` keeps the open model."""
        model = self.open_once(live)

        def build() -> Arrays:
            rows, seconds = time_alone(queries, lambda texts: self.encode(model(), "query", texts)[0])
            vectors = TokenVectors.join(rows)
            return {"offsets": vectors.offsets, "vectors": vectors.vectors, "seconds": seconds}

        kept = store.arrays(self.build_key("query", queries).with_check(check_encoded, len(queries)), build)
        return TokenVectors(kept["offsets"], kept["vectors"]), kept["seconds"]

    def plan_encoding(self, corpus: Corpus, queries: Sequence[str], store: Store) -> Sequence[Work]:
        """Return the encoding of each shard of documents, its pooling if any, and that of queries as work."""
        *shards, of_queries = super().plan_encoding(corpus, queries, store)
        if self.pool_factor != 1:
            shards = [Work(self._build_pooled_key(shard.key), (shard,)) for shard in shards]
        return *shards, of_queries

    def open_once(self, store: Store) -> Callable[[], MultiVectorEncoder]:
        """Return a function that opens the model, through the store, when it is first called."""
        return cache(lambda: self.open_model(store))

    def encode(self, model: MultiVectorEncoder, role: Role, texts: Sequence[str]) -> list[Vectors]:
        """Return a matrix for each text, whose rows are the vectors of its tokens; none for a blank text."""
        encode = model.encode_query if role == "query" else model.encode_document
        encoded = self.encode_texts(model, role, texts, encode, convert_to_numpy=True)
        matrices: list[Vectors] = [np.asarray(matrix, dtype=np.float32) for matrix in encoded]
        if not all(np.isfinite(matrix).all() for matrix in matrices):
            raise RetrieverError(f"model={self.model}: the model returned NaN or infinite values")
        return [matrix if text.strip() else matrix[:0] for text, matrix in zip(texts, matrices, strict=True)]

    def encode_documents(self, model: MultiVectorEncoder, texts: Sequence[str]) -> list[Vectors]:
        """Return a matrix for each document, of its tokens or, with a factor above 1, of its pooled ones."""
        return [self._pool(matrix) for matrix in self.encode(model, "document", texts)]

    def _pool(self, matrix: Vectors) -> Vectors:
        if self.pool_factor == 1 or not len(matrix):
            return matrix
        import torch
        from sentence_transformers.multi_vector_encoder.modules import HierarchicalTokenPooling

        pooled: Vectors = (
            HierarchicalTokenPooling(self.pool_factor).pool([torch.from_numpy(np.array(matrix))])[0].numpy()
        )
        return pooled

    def _build_pooled_key(self, whole: Key) -> Key:
        """Return the key of the pooled vectors of documents, given that of the vectors of all their tokens."""
        return Key.of(POOLED_TOKEN_VECTORS, self.made_by, **dict(whole.parts), pool_factor=self.pool_factor)

    def _open(self, store: Store) -> MultiVectorEncoder:
        """Open the model and encode a word, so that the first text takes no longer than others."""
        from sentence_transformers import MultiVectorEncoder

        model = self.open_with(MultiVectorEncoder, store)
        check_trained(
            model, self.model, self.revision, "Dense",
            "a late-interaction model such as ColBERT, or search by this model's vectors with retriever=dense",
        )  # fmt: skip
        model.encode_query(["word"], show_progress_bar=False)
        return model

    def _check_memory(self, texts: Sequence[str], model: MultiVectorEncoder) -> None:
        """Check the memory that the vectors of texts need, estimated from a sample, before they are encoded."""
        sample = [text for text in texts[:: max(len(texts) // _SAMPLE, 1)] if text.strip()]
        tokens = [int(model.preprocess([replace_surrogates(text)])["attention_mask"].sum()) for text in sample]
        mean = sum(tokens) / max(len(tokens), 1) / self.pool_factor
        self._check_size(4 * mean * len(texts) * (model.get_embedding_dimension() or 0), len(texts))

    def _check_size(self, needed: float, n_documents: int) -> None:
        available = psutil.virtual_memory().available
        if needed > available:
            raise RetrieverError(
                f"model={self.model}: the vectors of the tokens of {n_documents:,} documents need "
                f"{needed / 2**30:,.1f} GiB of memory, but {available / 2**30:,.1f} GiB are available; rerank the hits "
                "of another retriever instead (retriever=reranked reranker=late_interaction), or "
                "raise pool_factor"
            )
