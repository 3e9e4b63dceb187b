"""A search from beginning to end: what it would take, what it finds, once a store, and how long a query takes.

It knows nothing of how a retriever searches, or of where a store keeps what was found.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from retrievers.base import Corpus, Rankings, Retriever, Searcher
from retrievers.code import code_of
from retrievers.store import Arrays, Key, Store, fingerprint

TIMED_QUERIES = 32
"""How many queries are asked once more, one at a time, to know a retriever's latency."""

BRIEF_S = 0.05
"""A query that took less, but twice as long as most, is timed again, and its better time counts: another program that
took the processor for a moment is no part of it."""


@dataclass(frozen=True)
class Work:
    """A piece of work before it is done: what people call it, its key in a store, and the works that it needs.

    These are needed only where it is not in the store itself.
    """

    name: str
    key: Key
    needs: tuple[Work, ...] = ()


@runtime_checkable
class Planned(Protocol):
    """A retriever that can say what work a search is without doing any."""

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the work that `search_cached` is; what is worth sharing between plans goes through the store."""
        ...


def is_live(settings: object) -> bool:
    """Tell whether a service decides what settings do, which says `live = True`: nothing of that is kept."""
    if getattr(settings, "live", False) is True:
        return True
    if is_dataclass(settings):
        return any(is_live(getattr(settings, field.name)) for field in fields(settings))
    if isinstance(settings, Mapping):
        return any(map(is_live, settings.values()))
    return isinstance(settings, (list, tuple)) and any(map(is_live, settings))


def resolve_search_depth(retriever: Retriever, corpus: Corpus, depth: int) -> int:
    """Return how many hits to request of each query: a service may have more documents than the corpus."""
    return depth if is_live(retriever) else min(depth, len(corpus))


@runtime_checkable
class Diagnosable(Protocol):
    """A searcher that can say more of its work than rankings show."""

    def diagnostics(self, queries: Sequence[str], k: int, store: Store) -> dict[str, float]:
        """Return figures by name, none where there is nothing to say."""
        ...


def plan_rankings(retriever: Retriever, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
    """Return the work of `search_cached`; without a method `plan`, it is a search that needs nothing else."""
    if isinstance(retriever, Planned):
        return retriever.plan(corpus, queries, k, store)
    return Work("search", build_rankings_key(retriever, corpus, queries, k))


def build_rankings_key(retriever: Retriever, corpus: Corpus, queries: Sequence[str], k: int) -> Key:
    """Return the key under which `search_cached` keeps rankings."""
    asked = {"queries": fingerprint(*queries), "asked": len(queries), "k": k}
    return Key.of("rankings", code_of(retriever), **corpus.key_parts, **asked, retriever=repr(retriever))


def search_cached(retriever: Retriever, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Rankings:
    """Index a corpus and search it, unless the store has the rankings already.

    Rankings that do not say how long a query takes are completed by asking the first queries again, one at a time.
    """
    key = build_rankings_key(retriever, corpus, queries, k)

    def beside(kind: str) -> Key:
        return Key.of(kind, code_of(retriever), **dict(key.parts))

    def work() -> Arrays:
        searcher = open_searcher(retriever, corpus, store)
        rankings = searcher.search(queries, k, store)
        if rankings.errors or not rankings.settled or is_live(retriever):
            raise _Unkept(rankings)
        seconds = rankings.seconds
        if seconds is None:
            seconds = store.arrays(beside("latency"), lambda: _measure_latency(searcher, queries, k))["seconds"]
        said = dict(rankings.diagnostics)
        if isinstance(searcher, Diagnosable):
            said |= _compute_diagnostics(searcher, queries, k, store, beside("diagnostics"))
        kept = {"documents": rankings.documents, "scores": rankings.scores, "seconds": seconds}
        for name, value in (("notes", dict(rankings.notes)), ("unknown_ids", list(rankings.unknown_ids))):
            if value:
                kept[name] = np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)
        return kept | {f"{_DIAGNOSTIC}{name}": np.array(value) for name, value in said.items()}

    try:
        kept = store.arrays(key, work)
    except _Unkept as unkept:
        return unkept.rankings
    said = {n.removeprefix(_DIAGNOSTIC): float(value) for n, value in kept.items() if n.startswith(_DIAGNOSTIC)}
    notes = json.loads(kept["notes"].tobytes()) if "notes" in kept else {}
    notes = {int(position): note for position, note in notes.items()}
    unknown = tuple(json.loads(kept["unknown_ids"].tobytes())) if "unknown_ids" in kept else ()
    return Rankings(
        kept["documents"], kept["scores"], kept["seconds"], diagnostics=said, notes=notes, unknown_ids=unknown
    )


_DIAGNOSTIC = "diagnostic."


def _compute_diagnostics(
    searcher: Diagnosable, queries: Sequence[str], k: int, store: Store, key: Key
) -> dict[str, float]:
    def ask() -> Arrays:
        said = [searcher.diagnostics(queries, depth, store) for depth in sorted({min(10, k), k})]
        return {name: np.array(value) for figures in said for name, value in figures.items()}

    return {name: float(value) for name, value in store.arrays(key, ask).items()}


def open_searcher(retriever: Retriever, corpus: Corpus, store: Store) -> Searcher:
    """Return the searcher of a retriever over a corpus, made once a store."""
    made_by = code_of(retriever)
    key = Key.of("searcher", made_by, corpus=corpus.fingerprint, retriever=repr(retriever))
    return store.share(key, lambda: retriever.index(corpus, store))


class _Unkept(Exception):
    """Carries rankings past the store that are not to be kept."""

    def __init__(self, rankings: Rankings) -> None:
        self.rankings = rankings


def _measure_latency(searcher: Searcher, queries: Sequence[str], k: int) -> Arrays:
    seconds = np.full(len(queries), np.nan, dtype=np.float32)
    for query in queries[:1]:
        searcher.search([query], k)  # what a first call prepares is no part of a query's time

    def ask(position: int) -> float:
        start = time.perf_counter()
        searcher.search([queries[position]], k)
        return time.perf_counter() - start

    timed = seconds[:TIMED_QUERIES]
    for position in range(len(timed)):
        timed[position] = ask(position)
    slow = (timed < BRIEF_S) & (timed > 2 * np.median(timed)) if len(timed) else np.zeros(0, dtype=np.bool_)
    for position in np.flatnonzero(slow).tolist():
        timed[position] = min(float(timed[position]), ask(position))
    return {"seconds": seconds}
