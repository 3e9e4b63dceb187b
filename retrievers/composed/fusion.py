"""Fuse the rankings of several retrievers into one, by a formula of `retrievers.composed.fusion_methods`.

A hybrid is a retriever. The rankings of its parts and the layout of their candidates go through the store, so that
another weight or normalisation only costs arithmetic.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import (
    NOTHING,
    Corpus,
    Rankings,
    Retriever,
    RetrieverError,
    create_empty_rankings,
    list_ids,
    list_types,
)
from retrievers.capabilities import Capabilities
from retrievers.composed.candidates import Candidates, Floats, lay_out, rank_candidates
from retrievers.composed.fusion_methods import FUSIONS, Method, Normalization, Parameters, PartHits
from retrievers.composed.query_weights import PartWeights, QueryWeights, load_query_weights
from retrievers.notes import QueryNote
from retrievers.search import Work, build_rankings_key, plan_rankings, search_part
from retrievers.stages import Input, Stage
from retrievers.store import Key, MemoryStore, NoStore, Store, fingerprint
from retrievers.unknown import align, tie_order
from retrievers.work import CANDIDATES, PlanStep

RESULTS_VERSION = "fusion 1"

log = logging.getLogger("retrievers")

LARGEST_WEIGHT = 1e6
"""Largest weight of a part, so that scores fit in 32-bit floats."""


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Hybrid:
    """Settings of fusion: the parts and their weights.

    `method` is a formula of `retrievers.composed.fusion_methods.FUSIONS`; weighted, the default, sums weight times
    normalised score (with `alpha` the convex combination of Bruch et al. 2023, An analysis of fusion functions for
    hybrid retrieval). Only weighted and the comb methods use `normalization`, and only rrf uses `rrf_k`.

    `normalization` applies to the hits of each query and part; documents that the part did not return get the value in
    brackets, but combmax and combmin ignore such a part. minmax: (s - min) / (max - min), 1 if all scores are equal
    (Lee 1997) [0]. zscore: (s - mean) / standard deviation (Montague and Aslam 2001), 0 if all are equal [the lowest
    value of the part, -1 if all are equal, 0 without hits]. max: s / the largest |s|, 1 if all are equal and at most 0
    [the lowest value of the part if it is negative, else 0]. rank: 1 - (rank - 1) / hits (Lee 1997) [0]. none: s [0],
    which ranks missing documents above hits with negative scores.

    `weights` has one number per part, by order or by name; null weighs all parts equally (1). With two parts, `alpha`
    is the weight of the last and 1 - alpha that of the first. `weights_by_type` replaces these for the queries of some
    types, and `weights_file`, a JSON object, for queries by their ids; a number there is an alpha. A part of weight 0
    is not searched, unless other queries need it. `depth` is the number of candidates from each part; null stands for
    the number of hits requested.
    """

    access: ClassVar[Access] = Access(paths=("weights_file",))

    parts: Mapping[str, Retriever]
    method: Method = "weighted"
    normalization: Normalization = "minmax"
    weights: list[float] | dict[str, float] | None = None
    alpha: float | None = Field(default=None, ge=0, le=1)
    weights_by_type: dict[str, PartWeights] = Field(default_factory=dict)
    weights_file: Annotated[QueryWeights | None, BeforeValidator(load_query_weights)] = None
    rrf_k: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    depth: int | None = Field(default=None, ge=1)

    def __post_init__(self) -> None:
        names = ", ".join(self.parts)
        for name, part in self.parts.items():
            if isinstance(
                part, (str, list, tuple)
            ):  # they have a method `index`, which makes them look like retrievers
                raise RetrieverError(f"parts.{name}: {part!r} is not a retriever")
        if len(self.parts) < 2:
            raise RetrieverError(
                f"parts: a hybrid needs at least two parts, but has {len(self.parts)} ({names or 'none'})"
            )
        if self.alpha is not None and self.weights is not None:
            raise RetrieverError(
                f"alpha={self.alpha} and weights={self.weights} are mutually exclusive; set only one of them"
            )
        self._check_weights("weights" if self.alpha is None else "alpha", self._default_weights)
        for query_type, weights in self.weights_by_type.items():
            self._check_weights(f"weights_by_type.{query_type}", weights)
        for query, weights in self._weights_by_query.items():
            self._check_weights(f"weights_file: {query}", weights)

    def _check_weights(self, name: str, weights: PartWeights | None) -> None:
        names, n = ", ".join(self.parts), len(self.parts)
        if isinstance(weights, float):
            if n != 2:
                raise RetrieverError(
                    f"{name}={weights}: needs exactly two parts, but there are {n} ({names}); set weights instead"
                )
            if not 0 <= weights <= 1:
                raise RetrieverError(f"{name}={weights}: should be from 0 to 1; it is the weight of the last part")
        if isinstance(weights, Mapping) and weights.keys() != self.parts.keys():
            raise RetrieverError(
                f"{name}: set for {', '.join(weights) or 'no part'}, but the parts are {names}; set one weight "
                "for each part"
            )
        if isinstance(weights, list) and len(weights) != n:
            raise RetrieverError(f"{name}: expected {n} numbers, one for each part ({names}), found {len(weights)}")
        values = list(self._resolve(weights).values())
        if not all(0 <= value <= LARGEST_WEIGHT for value in values) or not any(values):
            raise RetrieverError(f"{name}={values}: should be from 0 to {LARGEST_WEIGHT:g}, and at least one above 0")

    @property
    def _default_weights(self) -> PartWeights | None:
        return self.weights if self.alpha is None else self.alpha

    @property
    def _weights_by_query(self) -> Mapping[str, PartWeights]:
        return self.weights_file.weights if self.weights_file is not None else {}

    def resolve_weights(self, query_type: str = "", query: str = "") -> dict[str, float]:
        """Return the weight of each part for queries of a type, or for the query with an id."""
        by_type = self.weights_by_type.get(query_type, self._default_weights)
        return self._resolve(self._weights_by_query.get(query, by_type))

    def _resolve(self, weights: PartWeights | None) -> dict[str, float]:
        if isinstance(weights, Mapping):
            return {name: weights[name] for name in self.parts}
        if isinstance(weights, float):
            weights = [1 - weights, weights]
        return dict(zip(self.parts, weights or [1.0] * len(self.parts), strict=True))

    def index(self, corpus: Corpus, store: Store) -> HybridSearcher:
        """Return a searcher; its parts are indexed through the store by their first search."""
        return HybridSearcher(self, corpus, MemoryStore() if isinstance(store, NoStore) else store)

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the fusion as work, which needs the rankings of its parts."""
        depth = self.depth or k
        needs = tuple(plan_rankings(part, corpus, queries, depth, store) for part in self.weighted_parts.values())
        return Work(build_rankings_key(self, corpus, queries, k), needs, PlanStep.FUSE)

    def describe_stage(self, queries: Sequence[str], k: int) -> Stage:
        """Return the fusion, which reads the parts; a part is not used for the queries in which its weight is 0."""
        rows = []
        if self.weights_by_type or self._weights_by_query:
            rows = [self.resolve_weights(*own) for own in zip(list_types(queries), list_ids(queries), strict=True)]

        def read(name: str, part: Retriever) -> Input:
            unused = np.array([row[name] == 0 for row in rows], dtype=np.bool_)
            return Input(part, self.depth or k, unused if unused.any() else None)

        return Stage("fusion", {name: read(name, part) for name, part in self.weighted_parts.items()})

    @property
    def capabilities(self) -> Capabilities:
        """Return what follows from the parts that are searched, and whether weights depend on the query."""
        searched = Capabilities.of_parts(self.weighted_parts.values())
        by_query, by_type = bool(self._weights_by_query), bool(self.weights_by_type)
        return Capabilities(searched.filters, searched.texts, by_query, by_type, scans=False)

    @property
    def weighted_parts(self) -> dict[str, Retriever]:
        """Return the parts whose weight is not 0, for some queries at least."""
        others = [*self.weights_by_type.values(), *self._weights_by_query.values()]
        rows = [self.resolve_weights(), *map(self._resolve, others)]
        return {name: part for name, part in self.parts.items() if any(weights[name] for weights in rows)}


@dataclass(frozen=True, eq=False)
class HybridSearcher:
    """Fuses the rankings of its parts, whose searchers `store` keeps.

    The time of a query is the sum of the times of its parts and its share of the fusion of all queries.
    """

    settings: Hybrid
    corpus: Corpus
    store: Store

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best candidates of the parts; a query that failed in a part has no hits."""
        parts, depth = self.settings.weighted_parts, self.settings.depth or k
        own = self.settings.capabilities
        weights = self._weigh(queries)
        searches = [search_part(part, self.corpus, queries, depth, store, self.store) for part in parts.values()]
        start = time.perf_counter()
        by_part = dict(zip(parts, map(_widen, align(searches, len(self.corpus))), strict=True))
        if own.types or own.ids:
            by_part = {name: _drop(rankings, weights[name] == 0) for name, rankings in by_part.items()}
        candidates = self._load_candidates(list(by_part.values()), store)
        fusion = FUSIONS[self.settings.method]
        parameters = Parameters(self.settings.normalization, self.settings.rrf_k)
        values = [fusion.weigh(PartHits(r, candidates), weights[name], parameters) for name, r in by_part.items()]
        fused = rank_candidates(candidates.documents, fusion.combine(candidates, values), k)
        share = (time.perf_counter() - start) / max(len(queries), 1)
        seconds = [rankings.seconds for rankings in by_part.values()]
        known = [s for s in seconds if s is not None]
        total = (np.sum(known, axis=0) + share).astype(np.float32) if len(known) == len(seconds) else None
        diagnostics = {
            f"{name}.{figure}": value for name, r in by_part.items() for figure, value in r.diagnostics.items()
        }
        return _attach_details(replace(fused, seconds=total, diagnostics=diagnostics), by_part)

    def _weigh(self, queries: Sequence[str]) -> dict[str, Floats]:
        """Return the weight of each part, of shape (1, 1), or (n, 1) if it depends on the types or ids of queries."""
        own = self.settings.capabilities
        if own.ids:
            return self._weigh_each(queries)
        types = list_types(queries) if own.types else [""]
        unused = sorted(self.settings.weights_by_type.keys() - set(types))
        if unused and len(queries) > 1:
            log.warning(
                "weights_by_type: no query has the type %s; the types of the queries are %s",
                ", ".join(unused), ", ".join(sorted({name or "(none)" for name in types})),
            )  # fmt: skip
        by_type = {name: self.settings.resolve_weights(name) for name in set(types)}
        return {part: np.array([by_type[name][part] for name in types])[:, None] for part in self.settings.parts}

    def _weigh_each(self, queries: Sequence[str]) -> dict[str, Floats]:
        """Return the weight of each part by query, (n, 1); raises `RetrieverError` if no query is in the file."""
        own, ids = self.settings.weights_file, list_ids(queries)
        if own is not None and len(ids) > 1 and own.weights.keys().isdisjoint(ids):
            raise RetrieverError(
                f"weights_file={own.path}: has weights for {next(iter(own.weights))!r} and others, but for none of the "
                f"{len(ids):,} queries, such as {ids[0]!r}; the keys should be ids of queries"
            )
        rows = [self.settings.resolve_weights(*query) for query in zip(list_types(queries), ids, strict=True)]
        return {part: np.array([weights[part] for weights in rows])[:, None] for part in self.settings.parts}

    def _load_candidates(self, searches: Sequence[Rankings], store: Store) -> Candidates:
        """Return the layout of the candidates, from the store if it has that of equal rankings."""
        columns, unknown = [np.ascontiguousarray(rankings.documents) for rankings in searches], searches[0].unknown_ids
        contents = [(column.shape, hashlib.sha256(column.data).hexdigest()) for column in columns]
        over = {"corpus": self.corpus.fingerprint, "unknown": fingerprint(*unknown)}
        key = Key.of(CANDIDATES, __name__, **over, found=contents)
        return store.share(key, lambda: lay_out(columns, tie_order(self.corpus, unknown)))


def _widen(rankings: Rankings) -> Rankings:
    """Return rankings with at least one place per query: formulas read the first, also if no query has a hit."""
    if rankings.depth:
        return rankings
    empty = create_empty_rankings(len(rankings), 1)
    return replace(rankings, documents=empty.documents, scores=empty.scores)


def _drop(rankings: Rankings, dropped: NDArray[np.bool_]) -> Rankings:
    """Return rankings without the hits, times, notes and errors of some queries; `dropped` has the shape (n, 1)."""
    documents = np.where(dropped, np.int32(NOTHING), rankings.documents)
    scores = np.where(dropped, np.float32(-np.inf), rankings.scores)
    seconds = None if rankings.seconds is None else np.where(dropped[:, 0], np.float32(0), rankings.seconds)
    notes = {query: note for query, note in rankings.notes.items() if not dropped[query, 0]}
    errors = {query: message for query, message in (rankings.errors or {}).items() if not dropped[query, 0]}
    return replace(rankings, documents=documents, scores=scores, seconds=seconds, notes=notes, errors=errors or None)


def _attach_details(fused: Rankings, by_part: Mapping[str, Rankings]) -> Rankings:
    """Return rankings with the notes, addresses and errors of the parts; queries that failed in a part have no hits."""
    notes: dict[int, dict[str, QueryNote]] = {}
    for name, rankings in by_part.items():
        for query, note in rankings.notes.items():
            notes.setdefault(query, {})[name] = note
    joined = {query: QueryNote.of_parts(parts) for query, parts in notes.items()}
    settled = all(rankings.settled for rankings in by_part.values())
    unknown = next(iter(by_part.values())).unknown_ids
    places = {
        f"{name}.{part}".rstrip("."): address for name, r in by_part.items() for part, address in r.addresses.items()
    }
    fused = replace(fused, notes=joined, settled=settled, unknown_ids=unknown, addresses=places)
    errors: dict[int, list[str]] = {}
    for name, rankings in by_part.items():
        for query, message in (rankings.errors or {}).items():
            errors.setdefault(query, []).append(f"{name}: {message}")
    if not errors:
        return fused
    failed = list(errors)
    fused.documents[failed], fused.scores[failed] = NOTHING, -np.inf
    return replace(fused, errors={query: "; ".join(messages) for query, messages in errors.items()})
