"""Estimates the time and disk space of work from similar work in the store, or else from rough figures.

A cost model for each kind of work describes growth with size; the entries of the store show how fast this machine is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from statistics import median

from retrievers.search import TIMED_QUERIES
from retrievers.store import Key
from retrievers.work import (
    DIAGNOSTICS,
    DOCUMENT_TERM_WEIGHTS,
    DOCUMENT_TOKEN_VECTORS,
    DOCUMENT_VECTORS,
    EXACT_NEIGHBOURS,
    FTS5_DATABASE,
    LATENCY,
    LIVE_MODEL,
    LSA,
    POSTINGS,
    QUERY_TERM_WEIGHTS,
    QUERY_TOKEN_VECTORS,
    QUERY_VECTORS,
    RANKINGS,
    TOKENS_BY_TIE_ORDER,
    VECTOR_INDEX,
    WEIGHTED_POSTINGS,
    WorkKind,
)
from runner.store.base import Entry

MOST_ALIKE = 100
"""The largest number of entries of a kind to use; the most recently used show the current speed of this machine."""


@dataclass(frozen=True)
class Estimate:
    """The cost of a unit of work; `seconds` is None if unknown. A `rough` estimate was measured on another machine."""

    seconds: float | None
    bytes: float
    rough: bool


@dataclass(frozen=True)
class _Sizes:
    """The input sizes of a unit of work that its key contains; others are 0."""

    documents: float = 0
    characters: float = 0
    rows: float = 0
    queries: float = 0
    k: float = 0


@dataclass(frozen=True)
class _CostModel:
    """Seconds and bytes as functions of sizes; if not `known`, only up to a constant factor."""

    seconds: Callable[[_Sizes], float]
    bytes: Callable[[_Sizes], float] = lambda n: 0
    known: bool = True


def _search(query: float, document: float) -> _CostModel:
    """Return the model of a search, given the seconds per query and per document of each query."""
    return _CostModel(lambda n: n.queries * (query + document * n.documents), _rankings)


def _rankings(n: _Sizes) -> float:
    return _ENTRY + n.queries * (8 * n.k + 4)


def _terms(n: _Sizes) -> float:
    """Return the number of distinct terms, by Heaps' law."""
    return 0.6 * math.pow(n.characters, 0.67)


_ENTRY = 1_000  # bytes of a manifest and of the headers of arrays
_FIRST_S = 0.02  # seconds of a first call, the largest part of small work

_UNKNOWN = _CostModel(lambda n: 1, lambda n: 1, known=False)

# Fitted to adi, scifact and medquad on one core of an AMD EPYC; two models encode with all-MiniLM-L6-v2.
_MODELS: Mapping[WorkKind, _CostModel] = {
    POSTINGS: _CostModel(lambda n: 4e-8 * n.characters, lambda n: _ENTRY + 0.35 * n.characters + 16 * _terms(n)),
    TOKENS_BY_TIE_ORDER: _CostModel(lambda n: 1.2e-7 * n.characters),
    FTS5_DATABASE: _CostModel(lambda n: 4e-8 * n.characters, lambda n: _ENTRY + n.characters),
    LIVE_MODEL: _CostModel(lambda n: 6),
    DOCUMENT_VECTORS: _CostModel(
        lambda n: 0.02 * n.rows + 4.2e-5 * min(n.characters, 1_150 * n.rows),  # the model reads 256 tokens of a text
        lambda n: _ENTRY + 4 * 384 * n.rows,
    ),
    QUERY_VECTORS: _CostModel(lambda n: 0.015 * n.rows, lambda n: _ENTRY + 4 * 385 * n.rows),
    DOCUMENT_TERM_WEIGHTS: _CostModel(lambda n: 7e-5 * min(n.characters, 2_300 * n.rows), lambda n: 8 * 250 * n.rows),
    DOCUMENT_TOKEN_VECTORS: _CostModel(
        lambda n: 0.02 * n.rows + 4.2e-5 * min(n.characters, 2_300 * n.rows),
        lambda n: 128 * min(n.characters, 2_300 * n.rows),
    ),
    QUERY_TOKEN_VECTORS: _CostModel(lambda n: 0.015 * n.rows, lambda n: _ENTRY + 16_000 * n.rows),
    QUERY_TERM_WEIGHTS: _CostModel(lambda n: 0.015 * n.rows, lambda n: _ENTRY + 8 * 50 * n.rows),
    WEIGHTED_POSTINGS: _CostModel(lambda n: 4e-8 * n.characters, lambda n: _ENTRY + 1.3 * n.characters),
    LSA: _CostModel(lambda n: 1.5 + 6e-7 * n.characters, lambda n: _ENTRY + 4 * 256 * (n.documents + _terms(n))),
    VECTOR_INDEX: _CostModel(lambda n: 1.5e-4 * n.documents, lambda n: _ENTRY + 4 * 384 * n.documents),
    EXACT_NEIGHBOURS: _CostModel(lambda n: 1.5e-7 * n.queries * n.documents, lambda n: _ENTRY + 4 * n.queries * n.k),
    RANKINGS: _CostModel(lambda n: n.queries, _rankings, known=False),
    LATENCY: _CostModel(lambda n: min(n.queries, TIMED_QUERIES) * n.documents, known=False),
    DIAGNOSTICS: _CostModel(lambda n: n.queries * n.documents, known=False),
}

_SEARCHES: Mapping[str, _CostModel] = {
    "BM25": _search(5e-5, 2e-9),
    "BM25F": _search(6e-5, 3e-9),
    "LearnedSparse": _search(2e-4, 3e-8),
    "RankBM25": _search(3e-4, 1.9e-6),
    "SqliteFts": _search(3e-4, 2.5e-6),
    "Dense": _search(3e-4, 1.5e-7),
    "Hybrid": _CostModel(lambda n: 7e-8 * n.queries * n.k, _rankings),
}
"""The cost models of rankings, by the class of the retriever."""

_BESIDE_RANKINGS = (LATENCY, DIAGNOSTICS)
"""Kinds of work that are done together with rankings."""


class Estimator:
    """Estimates work by the entries of a store."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries: dict[str, list[tuple[Entry, frozenset[str]]]] = {}
        for entry in reversed(list(entries)):  # most recently used first
            same = self._entries.setdefault(_sort(entry.kind, entry.parts), [])
            if entry.seconds > 0 and len(same) < MOST_ALIKE:
                same.append((entry, _words(entry.parts)))

    def of(self, key: Key) -> Estimate:
        """Return the estimate of the work of a key."""
        parts = dict(key.parts)
        made = self._of(key.kind, parts)
        if made.seconds is None:
            return made
        kinds = _BESIDE_RANKINGS if key.kind == RANKINGS else ()
        beside = sum(self._of(kind, parts).seconds or 0.0 for kind in kinds)
        return Estimate(made.seconds + beside, made.bytes, made.rough)

    def _of(self, kind: WorkKind, parts: Mapping[str, str]) -> Estimate:
        sort, sizes = _sort(kind.name, parts), _sizes(parts)
        model = _SEARCHES.get(_class_of(parts)) if kind == RANKINGS else None
        model = model or _MODELS.get(kind, _UNKNOWN)
        seconds, size = model.seconds(sizes), model.bytes(sizes)
        if sort not in self._entries or not self._entries[sort]:
            return Estimate(seconds if model.known else None, size if model.known else 0.0, rough=True)
        words = _words(parts)
        shared = [len(words & others) for _, others in self._entries[sort]]
        nearest = [e for (e, _), n in zip(self._entries[sort], shared, strict=True) if n == max(shared)]
        slower = median(e.seconds / (_FIRST_S + model.seconds(_sizes(e.parts))) for e in nearest)
        larger = median(e.bytes / (model.bytes(_sizes(e.parts)) or 1) for e in nearest)
        return Estimate(slower * seconds, larger * size, rough=False)


def _sort(kind: str, parts: Mapping[str, str]) -> str:
    """Return the class of comparable work: its kind, and its retriever, encoder or model."""
    return f"{kind} {_class_of(parts) or parts.get('model', '')}"


def _class_of(parts: Mapping[str, str]) -> str:
    """Return the class of the retriever or the encoder in a key."""
    return (parts.get("retriever") or parts.get("encoder", "")).partition("(")[0]


def _words(parts: Mapping[str, str]) -> frozenset[str]:
    """Return the settings in a key; the more settings two keys share, the more similar is their work."""
    return frozenset(word for value in parts.values() for word in re.findall(r"[^\s(),]+", value))


def _sizes(parts: Mapping[str, str]) -> _Sizes:
    sizes = {**parts, "queries": parts.get("asked", "")}  # the part "queries" is a fingerprint
    names = (field.name for field in fields(_Sizes))
    return _Sizes(**{name: float(sizes[name]) for name in names if sizes.get(name, "").isdecimal()})
