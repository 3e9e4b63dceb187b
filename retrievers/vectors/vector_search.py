"""Search by vectors with any index: embed the queries, ask the index, compare it with the exact search.

An encoder supplies the vectors, an engine the index. An index is built once for each combination of corpus, encoder,
metric, build settings and version of the engine (`VectorSpace.build_key`); settings that apply at search time are not
part of its key. Approximate indexes report their recall of the exact ranking.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from retrievers.base import (
    NOTHING,
    Corpus,
    Rankings,
    Retriever,
    create_empty_rankings,
    fingerprint_queries,
    list_filters,
    rank,
)
from retrievers.encoders.base import Embedded, Encoder, PlannedEncoder, Vectors
from retrievers.encoders.cuts import CuttingModel
from retrievers.filters import Filter, group_by_selectivity
from retrievers.search import TIMED_QUERIES, Work, build_rankings_key, list_diagnosed_depths
from retrievers.store import Arrays, Key, NoStore, Store, check_rows
from retrievers.threads import map_threads
from retrievers.vectors.points import Nearest, Points, PointStream, Subset, build_points, rank_exactly
from retrievers.work import EXACT_NEIGHBOURS, POINTS, WorkKind

RESULTS_VERSION = "vector search 1"

BATCH = 1024
"""How many queries are searched at a time in an exact search, after the queries that are timed."""

Metric = Literal["cosine", "dot", "l2"]
"""The score: the cosine, the dot product, or the negative squared distance."""


class VectorIndex(Protocol):
    """An index of points in an engine."""

    def find(self, queries: Vectors, depth: int, subset: Subset | None = None) -> Nearest:
        """Return the scores and places of the nearest points of each query, best first; place -1 if there are too few.

        With a subset, only its points are returned. An exact index, which compares a query with every point in full
        precision, returns `depth` points for every query.
        """
        ...


@dataclass(frozen=True, eq=False)
class VectorSpace:
    """The vectors of a corpus by an encoder, with the metric that compares them; an index is built from it."""

    encoder: Encoder
    corpus: Corpus
    metric: Metric

    def build_key(self, kind: WorkKind, made_by: str, **parts: object) -> Key:
        """Return the key of work based on the vectors; `made_by` is the module that does it."""
        return Key.of(
            kind, (made_by, self.encoder), **self.corpus.key_parts, encoder=self.encoder, metric=self.metric, **parts
        )

    def build_exact_key(self, queries: Sequence[str], k: int) -> Key:
        """Return the key of the exact rankings, which all indexes of the space share."""
        searched = {"queries": fingerprint_queries(queries, self.corpus), "asked": len(queries), "k": k}
        return self.build_key(EXACT_NEIGHBOURS, __name__, **searched)

    def plan(
        self, retriever: Retriever, queries: Sequence[str], k: int, store: Store, index: Key | None, exact: bool
    ) -> Work:
        """Return a search as work, which needs the vectors, any index and, for its recall, the exact rankings."""
        encoder = self.encoder
        needs = list(encoder.plan(self.corpus, queries, store)) if isinstance(encoder, PlannedEncoder) else []
        if index is not None:
            needs.append(Work(index))
        if not exact:
            depths = list_diagnosed_depths(k)
            needs += [Work(self.build_exact_key(queries, depth)) for depth in depths]
        return Work(build_rankings_key(retriever, self.corpus, queries, k), tuple(needs))

    def embed(self, store: Store) -> EmbeddedSpace:
        """Return the space with its vectors; the corpus is embedded unless the store has them."""
        return EmbeddedSpace(self, self.encoder.embed(self.corpus, store), store)


@dataclass(frozen=True, eq=False)
class EmbeddedSpace:
    """A vector space with the vectors of its documents."""

    space: VectorSpace
    embedded: Embedded
    store: Store

    @property
    def stream(self) -> PointStream:
        """Return the points of the documents as a stream that is read shard by shard."""
        return PointStream(self.embedded.documents, self.space.metric == "cosine")

    @cached_property
    def points(self) -> Points:
        """Return the points of the documents, all in memory; spaces of the same vectors share them."""
        space, stream = self.space, self.stream
        key = Key.of(
            POINTS,
            (__name__, space.encoder),
            **space.corpus.key_parts, encoder=space.encoder, unit_length=stream.unit_length,
        )  # fmt: skip
        return self.store.share(key, lambda: build_points(stream.shards, stream.unit_length))

    def open_searcher(self, index: VectorIndex | None, exact: bool = False, concurrency: int = 1) -> VectorSearcher:
        """Return a searcher through an index, which is `exact` or not; without an index, the search is exact.

        `concurrency` is the number of queries that the index searches at a time.
        """
        return VectorSearcher(
            self.space, self.embedded.queries, self.points, index, exact or index is None, concurrency
        )


@dataclass(frozen=True, eq=False)
class VectorSearcher:
    """Searches points, through an index or exactly. `embed` encodes queries.

    A text without a direction, such as a blank one, has no hits and is never a hit. In an exact search, the first
    `timed` queries are searched one by one.
    """

    space: VectorSpace
    embed: Callable[[Sequence[str], Store], tuple[Vectors, NDArray[np.float32]]]
    points: Points
    index: VectorIndex | None
    exact: bool
    concurrency: int = 1
    timed: int = TIMED_QUERIES

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query.

        The first queries are searched one by one and timed; with an index all queries are, because its results may
        depend on the other queries of a batch.
        """
        vectors, embedding_seconds = self.embed(queries, store)
        rankings = create_empty_rankings(len(queries), min(k, len(self.points.rows)))
        seconds = embedding_seconds.copy()
        lengths = np.linalg.norm(vectors, axis=1)
        searched = np.flatnonzero(lengths > 0) if len(self.points.rows) else np.zeros(0, dtype=np.int64)
        alone = len(searched) if self.index is not None else min(self.timed, len(searched))

        def search_block(task: tuple[NDArray[np.int64], Filter | None]) -> None:
            block, own = task
            subset = None if own is None else self._select(own)
            if subset is not None and not len(subset.places):
                return
            began, unit_length = time.perf_counter(), self.space.metric == "cosine"
            best = self._rank(vectors[block] / lengths[block, None] if unit_length else vectors[block], k, subset)
            rankings.fill(block, best)
            seconds[block] += time.perf_counter() - began if len(block) == 1 else np.nan

        list(map_threads(search_block, _iter_blocks(searched, list_filters(queries), alone), self.concurrency))
        return replace(rankings, seconds=seconds)

    def diagnostics(self, queries: Sequence[str], k: int, store: Store) -> dict[str, float]:
        """Return what the encoder cut; for an index that is not exact, also its recall and its short answers.

        `index_recall_at_k` is the mean recall of the exact top k.
        `short_answers_at_k` counts the queries with a direction that had fewer hits than there are documents to find.
        For queries with filters, both are also given by selectivity (`filters.SELECTIVITY`).
        """
        encoder = self.space.encoder
        cuts = encoder.count_cuts(self.space.corpus, queries, store) if isinstance(encoder, CuttingModel) else {}
        return cuts if self.exact else cuts | self._compare_with_exact(queries, k, store)

    def _compare_with_exact(self, queries: Sequence[str], k: int, store: Store) -> dict[str, float]:
        exact = self._load_exact(queries, k, store)
        answered = (exact != NOTHING).any(axis=1)
        if not answered.any():
            return {}
        nearly = self.search(queries, k, store).documents
        recalls = np.full(len(queries), np.nan)
        for query in np.flatnonzero(answered).tolist():
            best = exact[query][exact[query] != NOTHING]
            recalls[query] = np.isin(best, nearly[query]).mean()
        short = (nearly != NOTHING).sum(axis=1) < (exact != NOTHING).sum(axis=1)
        filters = list_filters(queries)
        bands = group_by_selectivity(self.space.corpus.fields.measure_shares(filters)) if any(filters) else {}
        figures = {}
        for suffix, group in {
            "": np.arange(len(queries)),
            **{f".{name}": rows for name, rows in bands.items()},
        }.items():
            if answered[group].any():
                figures[f"index_recall_at_{k}{suffix}"] = float(np.mean(recalls[group][answered[group]]))
                figures[f"short_answers_at_{k}{suffix}"] = float(short[group].sum())
        return figures

    def _load_exact(self, queries: Sequence[str], k: int, store: Store) -> NDArray[np.int32]:
        """Return the documents of the exact rankings."""

        def search() -> Arrays:
            return {"documents": replace(self, index=None, exact=True, timed=0).search(queries, k, store).documents}

        key = self.space.build_exact_key(queries, k).with_check(check_rows, len(queries), ("documents",))
        return store.arrays(key, search)["documents"]

    def _select(self, own: Filter) -> Subset:
        """Return the points that pass a filter."""
        return Subset(own, np.flatnonzero(self.space.corpus.fields.select(own)[self.points.rows]))

    def _rank(self, queries: Vectors, k: int, subset: Subset | None) -> Rankings:
        """Return the k best documents of each query, whose vectors have a direction, out of a subset of the points."""
        order, points, index = self.space.corpus.tie_order, self.points, self.index
        if index is None or self.exact:
            find = partial(index.find, subset=subset) if index is not None else None
            return rank_exactly(points, queries, k, order, self.space.metric == "l2", find, subset)
        scores, places = index.find(queries, min(k, len(points.rows if subset is None else subset.places)), subset)
        documents = np.where(places < 0, NOTHING, points.rows[places]).astype(np.int32)
        return rank(documents, scores, order, k)


def _iter_blocks(
    searched: NDArray[np.int64], filters: Sequence[Filter | None], alone: int
) -> Iterator[tuple[NDArray[np.int64], Filter | None]]:
    """Yield blocks of queries with the same filter: the first ones alone, the others in batches."""
    for query in searched[:alone]:
        yield np.array([query]), filters[query]
    groups: dict[Filter | None, list[int]] = {}
    for query in searched[alone:].tolist():
        groups.setdefault(filters[query], []).append(query)
    for own, group in groups.items():
        for start in range(0, len(group), BATCH):
            yield np.array(group[start : start + BATCH]), own
