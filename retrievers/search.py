"""Search through the cache: plan the work of a search, return its rankings, and time its queries."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np

from retrievers.base import (
    Corpus,
    Rankings,
    Retriever,
    RetrieverError,
    Searcher,
    fingerprint_queries,
    iter_parts,
    list_ids,
    list_types,
)
from retrievers.capabilities import (
    check_filters,
    check_texts,
    derive_capabilities,
    is_live,
    is_retriever,
    read_declaration,
)
from retrievers.index_facts import describe_indexes
from retrievers.store import Arrays, Key, NoStore, Store, check_rows, fingerprint
from retrievers.stored_rankings import UnkeptRankings, check_rankings, pack_rankings, unpack_rankings
from retrievers.work import (
    DIAGNOSTICS,
    LATENCY,
    LIVE_RANKINGS,
    RANKINGS,
    RANKINGS_OF_A_BLOCK,
    SEARCHER,
    PlanStep,
    SizeName,
    WorkKind,
)

RESULTS_VERSION = "search 1"

TIMED_QUERIES = 32
"""How many queries are searched again, one at a time, to measure latency."""

BRIEF_S = 0.05
"""A query that took less than this, but more than twice the median, is timed again, and the shorter time counts:
another program may have used the processor for a moment."""


@dataclass(frozen=True)
class Work:
    """A piece of planned work: its key in the store, the work it needs, and the step of the plan that it belongs to.

    `needs` is only done if the work itself is not in the store. Without a `step` or sizes that it `grows_with`, these
    are those of the kind of work.
    """

    key: Key
    needs: tuple[Work, ...] = ()
    step: PlanStep | None = None
    grows_with: tuple[SizeName, ...] = ()

    @property
    def title(self) -> str:
        """Return the name of the step in a plan."""
        return str(self.step or self.key.kind.step or self.key.kind.title)


@runtime_checkable
class Planned(Protocol):
    """A retriever that can list the work of a search without doing it."""

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the work of `search_cached`; objects that plans share go through the store."""
        ...


@runtime_checkable
class RunsEngine(Protocol):
    """A retriever that searches with an engine, another version of which may return other rankings."""

    def read_engine_version(self) -> str:
        """Return the name and version of the engine, "" if it is not part of the identity of rankings."""
        ...


def list_engines(settings: object) -> list[str]:
    """Return the versions of the engines of a retriever and its parts, which affect its rankings."""
    versions = [settings.read_engine_version()] if isinstance(settings, RunsEngine) else []
    return [*filter(None, versions), *(version for part in iter_parts(settings) for version in list_engines(part))]


def resolve_search_depth(retriever: Retriever, corpus: Corpus, depth: int) -> int:
    """Return how many hits to request per query; a service may have more documents than the corpus."""
    return depth if is_live(retriever) else min(depth, len(corpus))


def deepen(retriever: Retriever, rows: int) -> Retriever:
    """Return a retriever whose parts return `rows` more candidates, wherever a setting `depth` limits them."""
    if not is_dataclass(retriever):
        return retriever
    values = {field.name: getattr(retriever, field.name) for field in fields(retriever)}
    changed: dict[str, Any] = {name: deepen(part, rows) for name, part in values.items() if is_retriever(part)}
    for name, parts in values.items():
        if isinstance(parts, Mapping) and parts and all(map(is_retriever, parts.values())):
            changed[name] = {key: deepen(part, rows) for key, part in parts.items()}
    if changed and isinstance(depth := values.get("depth"), int):
        changed["depth"] = depth + rows
    return replace(retriever, **changed)


@runtime_checkable
class Diagnosable(Protocol):
    """A searcher that computes figures about its own quality."""

    def diagnostics(self, queries: Sequence[str], k: int, store: Store) -> dict[str, float]:
        """Return figures by name."""
        ...


def list_diagnosed_depths(k: int) -> list[int]:
    """Return the depths for which a searcher of k hits computes figures: 10 and k."""
    return sorted({min(10, k), k})


def plan_rankings(retriever: Retriever, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
    """Return the work of `search_cached`; a retriever without a method `plan` has one piece of work."""
    if isinstance(retriever, Planned):
        work = retriever.plan(corpus, queries, k, store)
    else:
        work = Work(build_rankings_key(retriever, corpus, queries, k))
    if not read_declaration(retriever).scans:
        return work
    return replace(work, grows_with=("asked", "documents"))


def build_rankings_key(retriever: Retriever, corpus: Corpus, queries: Sequence[str], k: int) -> Key:
    """Return the key under which `search_cached` stores rankings."""
    searched: dict[str, object] = {"queries": fingerprint_queries(queries, corpus), "asked": len(queries), "k": k}
    capabilities = derive_capabilities(retriever)
    if any(types := list_types(queries)) and capabilities.types:
        searched["types"] = fingerprint(*types)
    if capabilities.ids:
        searched["ids"] = fingerprint(*list_ids(queries))
    if engines := list_engines(retriever):
        searched["engines"] = ", ".join(dict.fromkeys(engines))
    return Key.of(RANKINGS, (__name__, retriever), **corpus.key_parts, **searched, retriever=repr(retriever))


def search_cached(
    retriever: Retriever,
    corpus: Corpus,
    queries: Sequence[str],
    k: int,
    store: Store,
    search: Callable[[], Rankings] | None = None,
) -> Rankings:
    """Return the rankings of queries from the store, or index the corpus, search it and store them.

    `search` returns the rankings if the searcher of the retriever has already answered these queries. If the rankings
    have no times, the first queries are searched again, one at a time, to measure them. Raises `RetrieverError` if
    queries have filters that the retriever does not apply, or no texts.
    """
    if not len(corpus) and not is_live(retriever):
        raise RetrieverError(
            f"{type(retriever).__name__} searches documents, but the dataset has none; set the dataset's "
            "documents, or choose a retriever with its own index (http, object) or a run"
        )
    check_filters(retriever, queries)
    check_texts(retriever, queries)
    key = build_rankings_key(retriever, corpus, queries, k)

    def build_key(kind: WorkKind) -> Key:
        return Key.of(kind, (__name__, retriever), **dict(key.parts))

    def work() -> Arrays:
        searcher = open_searcher(retriever, corpus, store)
        rankings = search() if search else searcher.search(queries, k, store)
        if not rankings.may_keep or is_live(retriever):
            return UnkeptRankings(rankings)
        seconds = rankings.seconds
        if seconds is None:
            latency = build_key(LATENCY).with_check(check_rows, len(queries), ("seconds",))
            seconds = store.arrays(latency, lambda: _measure_latency(searcher, queries, k))["seconds"]
        diagnostics = dict(rankings.diagnostics)
        if isinstance(searcher, Diagnosable):
            diagnostics |= _compute_diagnostics(searcher, queries, k, store, build_key(DIAGNOSTICS))
        return pack_rankings(replace(rankings, seconds=seconds, diagnostics=diagnostics))

    return unpack_rankings(store.arrays(key.with_check(check_rankings, len(queries), len(corpus)), work))


def search_block(retriever: Retriever, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Rankings:
    """Return the rankings of a block of queries from the store, or search and store them; no query is timed.

    `retrievers.blocks` joins the blocks of a set of queries. Raises `RetrieverError` as `search_cached` does.
    """
    check_filters(retriever, queries)
    check_texts(retriever, queries)
    parts = dict(build_rankings_key(retriever, corpus, queries, k).parts)
    key = Key.of(RANKINGS_OF_A_BLOCK, (__name__, retriever), **parts)

    def work() -> Arrays:
        rankings = open_searcher(retriever, corpus, store).search(queries, k, store)
        if not rankings.may_keep or is_live(retriever):
            return UnkeptRankings(rankings)
        return pack_rankings(rankings)

    return unpack_rankings(store.arrays(key.with_check(check_rankings, len(queries), len(corpus)), work))


def _compute_diagnostics(
    searcher: Diagnosable, queries: Sequence[str], k: int, store: Store, key: Key
) -> dict[str, float]:
    def compute() -> Arrays:
        figures = [searcher.diagnostics(queries, depth, store) for depth in list_diagnosed_depths(k)]
        return {name: np.array(value) for part in figures for name, value in part.items()}

    return {name: float(value) for name, value in store.arrays(key, compute).items()}


def search_part(
    retriever: Retriever, corpus: Corpus, queries: Sequence[str], k: int, store: Store, index_store: Store
) -> Rankings:
    """Return the rankings of a retriever inside another one; without a store for rankings, its searcher is reused.

    A service is queried once for all retrievers that use it, as long as the store exists: once per sweep and process.
    It is queried again if a query failed or if the index reports different facts.
    """
    if isinstance(store, NoStore):
        return open_searcher(retriever, corpus, index_store).search(queries, k)
    if not is_live(retriever):
        return search_cached(retriever, corpus, queries, k, store)
    key = _build_live_key(retriever, corpus, queries, k)
    return store.share(key, lambda: search_cached(retriever, corpus, queries, k, store))


class _NotStoredError(LookupError):
    """The store does not have an entry, which should not be built."""


def find_part(retriever: Retriever, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Rankings | None:
    """Return the rankings that `search_part` put into the store, None if they are no longer there; never search."""

    def refuse() -> NoReturn:
        raise _NotStoredError

    try:
        if is_live(retriever):
            return store.share(_build_live_key(retriever, corpus, queries, k), refuse)
        key = build_rankings_key(retriever, corpus, queries, k)
        return unpack_rankings(store.arrays(key.with_check(check_rankings, len(queries), len(corpus)), refuse))
    except _NotStoredError:
        return None


def _build_live_key(retriever: Retriever, corpus: Corpus, queries: Sequence[str], k: int) -> Key:
    parts = dict(build_rankings_key(retriever, corpus, queries, k).parts)
    return Key.of(LIVE_RANKINGS, (__name__, retriever), **parts, index=sorted(describe_indexes(retriever).items()))


def open_searcher(retriever: Retriever, corpus: Corpus, store: Store) -> Searcher:
    """Return the searcher of a retriever over a corpus, indexed once per store."""
    key = Key.of(
        SEARCHER, (__name__, retriever), corpus=corpus.fingerprint, retriever=repr(retriever), **corpus.field_parts
    )
    return store.share(key, lambda: retriever.index(corpus, store))


def _measure_latency(searcher: Searcher, queries: Sequence[str], k: int) -> Arrays:
    seconds = np.full(len(queries), np.nan, dtype=np.float32)
    for query in queries[:1]:
        searcher.search([query], k)  # not timed: the first call may prepare something

    def measure(position: int) -> float:
        start = time.perf_counter()
        searcher.search([queries[position]], k)
        return time.perf_counter() - start

    timed = seconds[:TIMED_QUERIES]
    for position in range(len(timed)):
        timed[position] = measure(position)
    slow = (timed < BRIEF_S) & (timed > 2 * np.median(timed)) if len(timed) else np.zeros(0, dtype=np.bool_)
    for position in np.flatnonzero(slow).tolist():
        timed[position] = min(float(timed[position]), measure(position))
    return {"seconds": seconds}
