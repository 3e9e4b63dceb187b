"""Late interaction: a vector for each token of documents and queries, compared by MaxSim, exactly.

The vectors of a corpus are in memory: some 100 kB a document. For larger corpora, rerank the hits of another retriever
(`retrievers.rerankers.late_interaction`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus, Rankings, create_empty_rankings
from retrievers.encoders.multi_vector import MultiVectorModel, TokenVectors
from retrievers.encoders.pretrained import check_library, identify_model
from retrievers.max_sim import rank_max_sim
from retrievers.search import TIMED_QUERIES, Work, build_rankings_key
from retrievers.store import NoStore, Store


@settings(frozen=True, config={"extra": "forbid"})
class LateInteraction:
    """Settings of late interaction, with a model that `MultiVectorEncoder` of sentence-transformers opens.

    `model` is a folder, or a name on the Hugging Face hub, at a `revision`. `pool_factor` merges similar tokens of a
    document, so that about one in that many is left (Clavié et al. 2024); 1 keeps all. `max_length` is in tokens; null
    is the model's own. A prompt is put before every text; null is the one saved with the model, if any. With a null
    `device` the fastest available one is used. A `batch_size` above 1 is faster on a GPU, and the last digits of a
    score then depend on its batch.
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

    @property
    def encoder(self) -> MultiVectorModel:
        """Return the settings of the model."""
        return MultiVectorModel(**{field.name: getattr(self, field.name) for field in fields(MultiVectorModel)})

    def index(self, corpus: Corpus, store: Store) -> LateInteractionSearcher:
        """Return a searcher; the tokens of documents are encoded unless the store has their vectors."""
        return LateInteractionSearcher(self, corpus, self.encoder.embed_documents(corpus, store), store)

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the vectors of documents and queries."""
        needs = tuple(self.encoder.plan(corpus, queries, store))
        return Work("search", build_rankings_key(self, corpus, queries, k), needs)


@dataclass(frozen=True, eq=False)
class LateInteractionSearcher:
    """Compares queries with the tokens of all documents. `live` keeps the open model between searches."""

    settings: LateInteraction
    corpus: Corpus
    documents: TokenVectors
    live: Store

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query, each searched alone; only the first ones count as timed."""
        vectors, encoding = self.settings.encoder.embed_queries(queries, store, self.live)
        rankings, seconds = create_empty_rankings(len(queries), k), encoding.copy()
        for row in range(len(queries)):
            if len(query := vectors[row]):
                began = time.perf_counter()
                best = rank_max_sim(query, self.documents, k, self.corpus.tie_order)
                rankings.documents[row], rankings.scores[row] = best.documents[0], best.scores[0]
                seconds[row] += time.perf_counter() - began
        seconds[TIMED_QUERIES:] = np.nan
        return Rankings(rankings.documents, rankings.scores, seconds)
