"""How long works will take and how much disk: by what those alike took that are in the store, else by rough figures.

A model by kind says how time and disk grow with what is worked on; what the store has says how fast this machine is.
Nothing here knows what a sweep is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from statistics import median

from retrievers.search import TIMED_QUERIES
from retrievers.store import Key
from retrievers.work import KINDS
from runner.store.base import Entry

MOST_ALIKE = 100
"""How many entries of a kind are looked at, those used last: they tell most of how fast this machine is now."""


@dataclass(frozen=True)
class Estimate:
    """What a work will take. `seconds` is None where nothing is known; what is `rough` was measured elsewhere."""

    seconds: float | None
    bytes: float
    rough: bool


@dataclass(frozen=True)
class _Sizes:
    """How much there is to work on, as far as a key says it."""

    documents: float = 0
    characters: float = 0
    rows: float = 0
    queries: float = 0
    k: float = 0


_PART_OF = {"queries": "asked"}
"""The part of a key that a size is read from, where its name is another; a key's "queries" are a fingerprint."""


@dataclass(frozen=True)
class _CostModel:
    """How seconds and bytes grow. Without `known` figures only what they are in proportion to."""

    seconds: Callable[[_Sizes], float]
    bytes: Callable[[_Sizes], float] = lambda n: 0
    known: bool = True


def _search(query: float, document: float) -> _CostModel:
    """Return the model of a search, given the seconds of a query and of each document for it."""
    return _CostModel(lambda n: n.queries * (query + document * n.documents), _rankings)


def _rankings(n: _Sizes) -> float:
    return _ENTRY + n.queries * (8 * n.k + 4)


def _terms(n: _Sizes) -> float:
    """Return how many distinct terms there are, which grow with the text by the law of Heaps."""
    return 0.6 * math.pow(n.characters, 0.67)


_ENTRY = 1_000  # the bytes of a manifest and of what is before the numbers of arrays
_FIRST_S = 0.02  # what a first call takes, which of a small work is most

_UNKNOWN = _CostModel(lambda n: 1, lambda n: 1, known=False)

# Fitted to adi, scifact and medquad on one core of an AMD EPYC; two encode with all-MiniLM-L6-v2. Bytes as they are.
_MODELS: Mapping[str, _CostModel] = {
    "postings": _CostModel(lambda n: 4e-8 * n.characters, lambda n: _ENTRY + 0.35 * n.characters + 16 * _terms(n)),
    "tokens by tie order": _CostModel(lambda n: 1.2e-7 * n.characters),
    "fts5 database": _CostModel(lambda n: 4e-8 * n.characters, lambda n: _ENTRY + n.characters),
    "live model": _CostModel(lambda n: 6),
    "document vectors": _CostModel(
        lambda n: 0.02 * n.rows + 4.2e-5 * min(n.characters, 1_150 * n.rows),  # it reads 256 tokens of a text
        lambda n: _ENTRY + 4 * 384 * n.rows,
    ),
    "query vectors": _CostModel(lambda n: 0.015 * n.rows, lambda n: _ENTRY + 4 * 385 * n.rows),
    "lsa": _CostModel(lambda n: 1.5 + 6e-7 * n.characters, lambda n: _ENTRY + 4 * 256 * (n.documents + _terms(n))),
    "vector index": _CostModel(lambda n: 1.5e-4 * n.documents, lambda n: _ENTRY + 4 * 384 * n.documents),
    "rankings BM25": _search(5e-5, 2e-9),
    "rankings RankBM25": _search(3e-4, 1.9e-6),
    "rankings SqliteFts": _search(3e-4, 2.5e-6),
    "rankings Dense": _search(3e-4, 1.5e-7),
    "rankings Hybrid": _CostModel(lambda n: 7e-8 * n.queries * n.k, _rankings),
    "rankings": _CostModel(lambda n: n.queries, _rankings, known=False),
    "latency": _CostModel(lambda n: min(n.queries, TIMED_QUERIES) * n.documents, known=False),
    "diagnostics": _CostModel(lambda n: n.queries * n.documents, known=False),
}

_WITH: Mapping[str, tuple[str, ...]] = {
    "rankings": tuple(kind.name for kind in KINDS.values() if kind.stage == "measure")
}
"""What is measured together with a kind of work, where there is anything to measure."""


class Estimator:
    """What works will take, by the entries of a store."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries: dict[str, list[tuple[Entry, frozenset[str]]]] = {}
        for entry in reversed(list(entries)):  # the one used last comes first
            same = self._entries.setdefault(_sort(entry.kind, entry.parts), [])
            if entry.seconds > 0 and len(same) < MOST_ALIKE:
                same.append((entry, _words(entry.parts)))

    def of(self, key: Key) -> Estimate:
        """Return what the work of a key will take."""
        parts = dict(key.parts)
        made = self._of(key.kind, parts)
        if made.seconds is None:
            return made
        beside = sum(self._of(kind, parts).seconds or 0.0 for kind in _WITH.get(key.kind, ()))
        return Estimate(made.seconds + beside, made.bytes, made.rough)

    def _of(self, kind: str, parts: Mapping[str, str]) -> Estimate:
        sort, sizes = _sort(kind, parts), _sizes(parts)
        model = _MODELS.get(f"{kind} {_class_of(parts)}") or _MODELS.get(kind, _UNKNOWN)
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
    """Return what works have in common that are compared: their kind, and whose they are."""
    return f"{kind} {_class_of(parts) or parts.get('model', '')}"


def _class_of(parts: Mapping[str, str]) -> str:
    """Return the class of the retriever or the encoder in a key."""
    return (parts.get("retriever") or parts.get("encoder", "")).partition("(")[0]


def _words(parts: Mapping[str, str]) -> frozenset[str]:
    """Return the settings in a key; the more of them two works share, the more alike they are."""
    return frozenset(word for value in parts.values() for word in re.findall(r"[^\s(),]+", value))


def _sizes(parts: Mapping[str, str]) -> _Sizes:
    names = {f.name: _PART_OF.get(f.name, f.name) for f in fields(_Sizes)}
    return _Sizes(**{name: float(parts[part]) for name, part in names.items() if parts.get(part, "").isdecimal()})
