"""Fusion: one ranking out of those of several retrievers, by weighted sums of normalised scores or by ranks.

A hybrid is a retriever. Its parts' rankings go through the store, and so does the layout of who found what, so that
another weight or normalisation costs arithmetic on numbers that are there. How a part searches is not known here.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import NOTHING, Corpus, Rankings, Retriever, RetrieverError, create_empty_rankings
from retrievers.search import Work, build_rankings_key, open_searcher, plan_rankings, search_cached
from retrievers.store import Key, MemoryStore, NoStore, Store, fingerprint
from retrievers.unknown import align, tie_order

Normalization = Literal["minmax", "zscore", "max", "rank", "none"]
Floats = NDArray[np.float64]

LARGEST_WEIGHT = 1e6
"""What a part may weigh at most, so that a score has room in 32 bits."""


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Hybrid:
    """Settings of a fusion: which parts, and what each counts.

    `method` weighted adds up weight times normalised score (CombSUM of Fox and Shaw 1994; with `alpha` the convex
    combination of Bruch et al. 2023, An analysis of fusion functions for hybrid retrieval); rrf adds up
    weight / (rrf_k + rank) (Cormack, Clarke and Buettcher 2009) and normalises nothing.

    `normalization` is by query and part, over what the part found there; what it did not find has the value in
    brackets. minmax: (s - min) / (max - min), 1 where all are equal (Lee 1997) [0]. zscore: (s - mean) / standard
    deviation (Montague and Aslam 2001), 0 where all are equal [the part's lowest, 0 if it found nothing]. max:
    s / max, for negative scores s / |min|, which keeps their order [0]. rank: 1 - (rank - 1) / found (Lee 1997) [0].
    none: s [0]. Where scores are negative, max and none put what was not found above what was.

    `weights` is one number a part, by order or by name; null weighs all the same (1). With two parts `alpha` weighs
    the last, and 1 - alpha the first. A part of weight 0 is not searched. `depth` is how many candidates each part
    gives, as many as are asked for when null.
    """

    parts: Mapping[str, Retriever]
    method: Literal["weighted", "rrf"] = "weighted"
    normalization: Normalization = "minmax"
    weights: list[float] | dict[str, float] | None = None
    alpha: float | None = Field(default=None, ge=0, le=1)
    rrf_k: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    depth: int | None = Field(default=None, ge=1)

    def __post_init__(self) -> None:
        names, weights = ", ".join(self.parts), self.weights
        for name, part in self.parts.items():
            if isinstance(part, (str, list, tuple)):  # they have a method `index`, and so pass for retrievers
                raise RetrieverError(f"the part {name} is {part!r}, which is not a retriever")
        if len(self.parts) < 2:
            raise RetrieverError(f"a hybrid has two parts or more, this one has {len(self.parts)}: {names or 'none'}")
        if self.alpha is not None and weights is not None:
            raise RetrieverError(f"alpha {self.alpha} and weights {weights} are two ways to say one thing: give one")
        if self.alpha is not None and len(self.parts) != 2:
            raise RetrieverError(f"alpha is for two parts, not for {len(self.parts)} ({names}): give weights")
        if isinstance(weights, Mapping) and weights.keys() != self.parts.keys():
            raise RetrieverError(f"weights are given for {', '.join(weights) or 'no part'}, but the parts are {names}")
        if isinstance(weights, list) and len(weights) != len(self.parts):
            raise RetrieverError(f"{len(weights)} weights are given for {len(self.parts)} parts: {names}")
        values = list(self.shares().values())
        if not all(0 <= value <= LARGEST_WEIGHT for value in values) or not any(values):
            raise RetrieverError(f"the weights are {values}: they must be from 0 to {LARGEST_WEIGHT:g}, and not all 0")

    def shares(self) -> dict[str, float]:
        """Return the weight of each part."""
        if isinstance(self.weights, Mapping):
            return {name: self.weights[name] for name in self.parts}
        weights = self.weights
        if weights is None:
            weights = [1.0] * len(self.parts) if self.alpha is None else [1 - self.alpha, self.alpha]
        return dict(zip(self.parts, weights, strict=True))

    def index(self, corpus: Corpus, store: Store) -> HybridSearcher:
        """Return a searcher; its parts are indexed through the store when their rankings are first missing."""
        return HybridSearcher(self, corpus, MemoryStore() if isinstance(store, NoStore) else store)

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the fusion, which needs the rankings of its parts."""
        depth = self.depth or k
        needs = tuple(plan_rankings(part, corpus, queries, depth, store) for part in self.searched_parts().values())
        return Work("fuse", build_rankings_key(self, corpus, queries, k), needs)

    def searched_parts(self) -> dict[str, Retriever]:
        """Return the parts that weigh anything."""
        return {name: self.parts[name] for name, weight in self.shares().items() if weight}


@dataclass(frozen=True, eq=False)
class HybridSearcher:
    """A fusion over the searchers of its parts, which `store` keeps.

    A query takes as long as its parts do for it, one after the other, and its share of the fusion, which is done for
    all queries at once: the little that it is makes no difference beside a search.
    """

    settings: Hybrid
    corpus: Corpus
    store: Store

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best of the parts' candidates; a query that failed in a part finds nothing."""
        shares, depth = self.settings.shares(), self.settings.depth or k
        parts = self.settings.searched_parts()
        searches = [self._search(part, queries, depth, store) for part in parts.values()]
        start = time.perf_counter()
        found = dict(zip(parts, align(searches, len(self.corpus)), strict=True))
        candidates = self._candidates(list(found.values()), store)
        values = [shares[name] * self._values(rankings) for name, rankings in found.items()]
        fused = _best(candidates.documents, candidates.total(values), k)
        own = (time.perf_counter() - start) / max(len(queries), 1)
        seconds = [rankings.seconds for rankings in found.values()]
        known = [s for s in seconds if s is not None]
        total = (np.sum(known, axis=0) + own).astype(np.float32) if len(known) == len(seconds) else None
        said = {f"{name}.{figure}": value for name, r in found.items() for figure, value in r.diagnostics.items()}
        return _attach_details(replace(fused, seconds=total, diagnostics=said), found)

    def _search(self, part: Retriever, queries: Sequence[str], depth: int, store: Store) -> Rankings:
        """Search a part; where its rankings are not to be kept, its searcher still is."""
        if isinstance(store, NoStore):
            return open_searcher(part, self.corpus, self.store).search(queries, depth)
        return search_cached(part, self.corpus, queries, depth, store)

    def _candidates(self, found: Sequence[Rankings], store: Store) -> Candidates:
        """Lay out the candidates, unless the store has the layout of just these."""
        columns, unknown = [np.ascontiguousarray(rankings.documents) for rankings in found], found[0].unknown_ids
        contents = [(column.shape, hashlib.sha256(column.data).hexdigest()) for column in columns]
        over = {"corpus": self.corpus.fingerprint, "unknown": fingerprint(*unknown)}
        key = Key.of("candidates", ("retrievers.fusion",), **over, found=contents)
        return store.share(key, lambda: lay_out(columns, tie_order(self.corpus, unknown)))

    def _values(self, rankings: Rankings) -> Floats:
        """Return what each place of a part is worth before its weight (n x (depth + 1)); the last is for absence."""
        values = np.zeros((len(rankings), rankings.depth + 1))
        present = rankings.documents != NOTHING
        if self.settings.method == "rrf":
            values[:, :-1] = 1 / (self.settings.rrf_k + np.arange(1, rankings.depth + 1))
        else:
            scores = np.where(present, rankings.scores, 0).astype(np.float64)
            values[:, :-1], values[:, -1] = _NORMALIZE[self.settings.normalization](scores, present)
        return values


@dataclass(frozen=True, eq=False)
class Candidates:
    """The documents that any part found (n x m, int32), in tie order, with -1 after the last.

    `places`, one a part (n x m), say where its values, read as one row, have each of them.
    """

    documents: NDArray[np.int32]
    places: Sequence[NDArray[np.signedinteger]]

    def total(self, values: Sequence[Floats]) -> Floats:
        """Return the sum over the parts of what each candidate is worth there (n x m)."""
        first, *others = (part.take(places) for part, places in zip(values, self.places, strict=True))
        for other in others:
            first += other
        return first


def lay_out(found: Sequence[NDArray[np.int32]], tie_order: NDArray[np.int32]) -> Candidates:
    """Return the candidates of rankings (each n x depth, with -1 for nothing)."""
    stacked = np.concatenate(found, axis=1)
    ties = np.append(tie_order, np.int32(len(tie_order)))[stacked]  # -1 takes the last: behind all
    order = np.argsort(ties, axis=1, kind="stable")
    ties = np.take_along_axis(ties, order, axis=1)
    slots = np.zeros(stacked.shape, dtype=np.int32)
    np.put_along_axis(slots, order[:, 1:], np.cumsum(ties[:, 1:] != ties[:, :-1], axis=1, dtype=np.int32), axis=1)
    width = int(slots.max(where=stacked != NOTHING, initial=-1)) + 1
    documents = np.full((len(stacked), width), NOTHING, dtype=np.int32)
    places, begin = [], 0
    for part in found:
        queries, columns = np.nonzero(part != NOTHING)
        taken = slots[queries, begin + columns]
        documents[queries, taken] = part[queries, columns]
        size = part.shape[1] + 1
        starts = np.arange(len(part))[:, None] * size
        at = np.repeat(starts + size - 1, width, axis=1)
        at[queries, taken] = starts[queries, 0] + columns
        places.append(at.astype(np.min_scalar_type(-part.size - len(part))))
        begin += part.shape[1]
    return Candidates(documents, places)


def _best(documents: NDArray[np.int32], totals: Floats, k: int) -> Rankings:
    """Do what `rank` does for candidates that are in tie order already, and so in a third of its time.

    It is separate because of that time: a sweep over weights does little else. Here the column of a candidate is its
    place among equals, so that one sort of integers, without their positions, gives ranks and documents alike.
    """
    n, width = documents.shape
    scores = totals.astype(np.float32) + np.float32(0)  # there is one zero
    scores[documents == NOTHING] = -np.inf
    bits = scores.view(np.int32)
    # Integers that rise as scores fall, the column behind: sorting these needs neither stability nor indirection.
    keys = np.where(bits < 0, bits & 0x7FFFFFFF, ~bits).astype(np.int64) << 32
    keys |= np.arange(width)
    keys.sort(axis=1)
    best = (keys[:, :k] & 0xFFFFFFFF) + np.arange(n)[:, None] * width
    ranked = create_empty_rankings(n, k)
    ranked.documents[:, :width], ranked.scores[:, :width] = documents.take(best), scores.take(best)
    return ranked


def _attach_details(fused: Rankings, found: Mapping[str, Rankings]) -> Rankings:
    """Return rankings with what the parts said, in which the queries that failed in a part found nothing."""
    notes: dict[int, dict[str, object]] = {}
    for name, rankings in found.items():
        for query, note in rankings.notes.items():
            notes.setdefault(query, {})[name] = json.loads(note)
    told = {query: json.dumps(note) for query, note in notes.items()}
    settled = all(rankings.settled for rankings in found.values())
    unknown = next(iter(found.values())).unknown_ids
    places = {
        f"{name}.{part}".rstrip("."): address for name, r in found.items() for part, address in r.addresses.items()
    }
    fused = replace(fused, notes=told, settled=settled, unknown_ids=unknown, addresses=places)
    said: dict[int, list[str]] = {}
    for name, rankings in found.items():
        for query, message in (rankings.errors or {}).items():
            said.setdefault(query, []).append(f"{name}: {message}")
    if not said:
        return fused
    failed = list(said)
    fused.documents[failed], fused.scores[failed] = NOTHING, -np.inf
    return replace(fused, errors={query: "; ".join(messages) for query, messages in said.items()})


# Scores (n x depth, best first, 0 for nothing) and where there are any, to values and what absence is worth (n).


def _minmax(scores: Floats, present: NDArray[np.bool_]) -> tuple[Floats, Floats | float]:
    low = _lowest(scores, present)
    span = scores[:, :1] - low
    return np.divide(scores - low, span, out=np.ones_like(scores), where=span > 0), 0.0


def _zscore(scores: Floats, present: NDArray[np.bool_]) -> tuple[Floats, Floats | float]:
    n = np.maximum(present.sum(axis=1, keepdims=True), 1)
    deviations = np.where(present, scores - scores.sum(axis=1, keepdims=True) / n, 0.0)
    spread = np.sqrt(np.square(deviations).sum(axis=1, keepdims=True) / n)
    values = np.divide(deviations, spread, out=np.zeros_like(scores), where=spread > 0)
    return values, _lowest(values, present)[:, 0]


def _max(scores: Floats, present: NDArray[np.bool_]) -> tuple[Floats, Floats | float]:
    largest = np.maximum(np.abs(scores[:, :1]), np.abs(_lowest(scores, present)))
    return np.divide(scores, largest, out=np.zeros_like(scores), where=largest > 0), 0.0


def _rank(scores: Floats, present: NDArray[np.bool_]) -> tuple[Floats, Floats | float]:
    n = np.maximum(present.sum(axis=1, keepdims=True), 1)
    return 1 - np.arange(scores.shape[1]) / n, 0.0


def _none(scores: Floats, present: NDArray[np.bool_]) -> tuple[Floats, Floats | float]:
    return scores, 0.0


def _lowest(scores: Floats, present: NDArray[np.bool_]) -> Floats:
    last = np.maximum(present.sum(axis=1, keepdims=True) - 1, 0)
    return np.take_along_axis(scores, last, axis=1)


_NORMALIZE: dict[Normalization, Callable[[Floats, NDArray[np.bool_]], tuple[Floats, Floats | float]]] = {
    "minmax": _minmax,
    "zscore": _zscore,
    "max": _max,
    "rank": _rank,
    "none": _none,
}
