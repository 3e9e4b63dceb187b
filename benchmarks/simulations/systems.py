"""Pools of pairs that simulations of judging draw from: the first documents of 20 systems on a collection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import DATA
from retrievers.base import Retriever
from retrievers.composed.fusion import Hybrid
from retrievers.encoders.lsa import LSAEncoder
from retrievers.lexical.analyzer import Analyzer
from retrievers.lexical.bm25 import BM25
from retrievers.search import search_cached
from retrievers.store import MemoryStore
from retrievers.vectors.dense import Dense
from runner.datasets.beir import Beir
from runner.datasets.dataset import Dataset

DEPTH = 10
ANALYZERS = (Analyzer(), Analyzer(stemmer=None, stopwords=None))


@dataclass(frozen=True)
class JudgedPool:
    """Pairs with their true grades (N), and their ranks in each system.

    `ranks` (systems x N) count from 1, and are 0 if a system lacks the pair; `weights` are those of P@10. Pairs are
    sorted by query (`queries`, from 0).
    """

    queries: NDArray[np.int64]
    grades: NDArray[np.int64]
    ranks: NDArray[np.int64]

    @property
    def weights(self) -> NDArray[np.float64]:
        """Return the weight of each pair's relevance in the P@10 of each system (systems x N)."""
        return (self.ranks > 0) / (DEPTH * (self.queries.max() + 1))


def load_settings_pool(collection: str) -> JudgedPool:
    """Return the pool of 20 BM25 settings: five of k1, two of b, with and without stemming and stopwords."""
    dataset = Beir(path=str(DATA / collection)).load()
    systems = [
        BM25(analyzer=analyzer, k1=k1, b=b)
        for analyzer in ANALYZERS
        for k1, b in product(np.linspace(0.3, 3, 5).tolist(), (0.25, 0.75))
    ]
    return pool_documents(dataset, systems)


def draw_mixed_pools(collection: str, draws: int, depth: int = DEPTH) -> Iterator[JudgedPool]:
    """Yield pools of 20 systems that are drawn from 60: twelve of 40 BM25 settings, four of LSA, four hybrids."""
    dataset = Beir(path=str(DATA / collection)).load()
    lexical: list[Retriever] = [
        BM25(analyzer=analyzer, k1=k1, b=b)
        for analyzer in ANALYZERS
        for k1, b in product((0.3, 0.5, 0.9, 1.2, 2.5), (0.0, 0.25, 0.75, 1.0))
    ]
    latent: list[Retriever] = [
        Dense(encoder=LSAEncoder(dimensions=dimensions)) for dimensions in (16, 32, 64, 128, 256)
    ]
    hybrids: list[Retriever] = [
        Hybrid({"lexical": BM25(), "latent": part}, alpha=alpha)
        for part in latent[2:]
        for alpha in (0.15, 0.3, 0.5, 0.7, 0.85)
    ]
    hits = search_systems(dataset, [*lexical, *latent, *hybrids], depth)
    first, last = len(lexical), len(lexical) + len(latent)
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        kinds = ((0, first, 12), (first, last, 4), (last, len(hits), 4))
        chosen = [rng.choice(np.arange(start, end), size, replace=False) for start, end, size in kinds]
        yield pool_hits(dataset, hits[np.concatenate(chosen)])


def search_systems(dataset: Dataset, systems: Sequence[Retriever], depth: int) -> NDArray[np.int64]:
    """Return the first documents of each system for each query (systems x queries x depth)."""
    store = MemoryStore()
    rows = [search_cached(system, dataset.corpus, dataset.queries.inputs, depth, store).documents for system in systems]
    return np.stack(rows).astype(np.int64)


def pool_documents(dataset: Dataset, systems: Sequence[Retriever]) -> JudgedPool:
    """Return the pool of the first documents of some systems."""
    return pool_hits(dataset, search_systems(dataset, systems, DEPTH))


def pool_hits(dataset: Dataset, hits: NDArray[np.int64]) -> JudgedPool:
    """Return the pool of documents found by some systems (systems x queries x ranks)."""
    size = len(dataset.corpus) + len(dataset.judgments.unknown_documents)
    keys = hits + np.arange(hits.shape[1])[:, None] * size
    pairs = np.unique(keys[hits >= 0])
    ranks = np.zeros((len(hits), len(pairs)), dtype=np.int64)
    for system, (own, there) in enumerate(zip(keys, hits >= 0, strict=True)):
        ranks[system, np.searchsorted(pairs, own[there])] = np.nonzero(there)[1] + 1
    judged = dataset.judgments.queries.astype(np.int64) * size + dataset.judgments.documents
    at = np.minimum(np.searchsorted(judged, pairs), len(judged) - 1)
    grades = np.where(judged[at] == pairs, dataset.judgments.grades[at], 0).astype(np.int64)
    queries = np.unique(pairs // size, return_inverse=True)[1]
    return JudgedPool(queries, grades, ranks)
