"""Estimates the time and disk space of work from rates that earlier runs measured; what was never measured has none.

Entries of the store give the time and size of work that is kept there, logged runs the time of work that is not. A rate
holds for work of the same kind by the same class or model; its time grows with the sizes that the kind names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from retrievers.search import Work
from retrievers.work import DIAGNOSTICS, LATENCY, RANKINGS, kind_of
from runner.evaluation.result import Result
from runner.store.base import Entry

MOST_ALIKE = 100
"""The largest number of entries of a kind to use; the most recently used show the current speed of this machine."""

FAR = 10.0
"""Work that is more than this many times as large as what was measured has a rough estimate."""

_OF_A_SEARCH = (LATENCY, DIAGNOSTICS)
"""Kinds of work that are done together with rankings."""


@dataclass(frozen=True)
class Estimate:
    """The cost of work; `seconds` is None if comparable work was never measured, `rough` if it was far smaller."""

    seconds: float | None = None
    bytes: float = 0.0
    rough: bool = False


@dataclass(frozen=True)
class _Measurement:
    """The cost of a piece of work, its sizes by their names in keys, and the words of its settings."""

    seconds: float
    bytes: float
    sizes: Mapping[str, float]
    words: frozenset[str]


class Estimator:
    """Estimates work by the entries of a store and the results of logged runs, both latest first."""

    def __init__(self, entries: Iterable[Entry], results: Sequence[Result] = ()) -> None:
        self._kept: dict[tuple[str, str], list[_Measurement]] = {}
        for entry in entries:
            same = self._kept.setdefault((entry.kind, _name_class(entry.parts)), [])
            if entry.seconds > 0 and len(same) < MOST_ALIKE:
                words = _list_words(entry.parts.values())
                same.append(_Measurement(entry.seconds, entry.bytes, _read_sizes(entry.parts), words))
        self._logged: dict[str, list[_Measurement]] = {}
        for result in results:
            for kind, measured in _iter_logged(result):
                self._logged.setdefault(kind, []).append(measured)
        queries = [(result.timings.score_s, result.dataset.queries) for result in results]
        self.score_s = median(seconds / n for seconds, n in queries if n) if any(n for _, n in queries) else None
        """The seconds to measure the ranking of one query; None without a logged run."""

    def estimate(self, work: Work, settings: object = None) -> Estimate:
        """Return the estimate of work for a retriever with these settings, as in a config.

        That of rankings includes the figures measured with them.
        """
        kind, parts = work.key.kind, dict(work.key.parts)
        own = self._estimate(kind.name, parts, work.grows_with or kind.grows_with, settings)
        if own.seconds is None or kind != RANKINGS:
            return own
        beside = (self._estimate(kind.name, parts, kind.grows_with, settings).seconds for kind in _OF_A_SEARCH)
        return Estimate(own.seconds + sum(filter(None, beside)), own.bytes, own.rough)

    def _estimate(self, kind: str, parts: Mapping[str, str], grows_with: Sequence[str], settings: object) -> Estimate:
        nearest = self._find_nearest(kind, parts, settings)
        if not nearest:
            return Estimate()
        sizes = _read_sizes(parts)
        ratios = [_compare_sizes(sizes, measured.sizes, grows_with) for measured in nearest]
        pairs = list(zip(ratios, nearest, strict=True))
        return Estimate(
            median(ratio * measured.seconds for ratio, measured in pairs),
            median(ratio * measured.bytes for ratio, measured in pairs),
            min(ratios) > FAR,
        )

    def _find_nearest(self, kind: str, parts: Mapping[str, str], settings: object) -> list[_Measurement]:
        """Return the entries whose settings share most words with a key, else logged work of the same class or model.

        A key has a hash of its model, a logged run the name, so the settings have to say which name that is.
        """
        name = _name_class(parts)
        if same := self._kept.get((kind, name)):
            words = _list_words(parts.values())
            most = max(len(words & measured.words) for measured in same)
            return [measured for measured in same if len(words & measured.words) == most]
        names = {name} if name and name != parts.get("model") else set(_list_texts(settings, "model"))
        return [measured for measured in self._logged.get(kind, []) if not name or names & measured.words]


def _iter_logged(result: Result) -> Iterator[tuple[str, _Measurement]]:
    """Yield the kinds and the costs of the work of a run.

    Costs do not name the class that did the work. The first rankings are those of the retriever itself; those after
    them, of its parts, are left out, or the time of a part would be taken for that of its hybrid.
    """
    settings = result.config.get("retriever") or {}
    words = frozenset(_list_texts(settings))
    own = frozenset([str(settings.get("_target_", "")).rpartition(".")[2]])
    size = float(result.dataset.chunks or result.dataset.documents)
    sizes = {"documents": size, "asked": float(result.dataset.queries)}
    stages = [cost for cost in result.timings.stages if cost.seconds > 0]
    searches = [cost for cost in stages if cost.kind == RANKINGS.name]
    for cost in stages:
        if cost.kind == RANKINGS.name or kind_of(cost.kind) in _OF_A_SEARCH:
            if cost is searches[0] if cost in searches else len(searches) == 1:
                yield cost.kind, _Measurement(cost.seconds, 0.0, sizes, own)
        else:
            yield cost.kind, _Measurement(cost.seconds, 0.0, sizes, words)


def _list_texts(settings: object, key: str = "") -> Iterator[str]:
    """Yield the texts in the settings of a config, classes by their names alone; with `key`, only those of this key."""
    for name, value in settings.items() if isinstance(settings, Mapping) else ():
        if isinstance(value, str) and key in ("", name):
            yield value.rpartition(".")[2] if name == "_target_" else value
        yield from _list_texts(value, key)


def _compare_sizes(sizes: Mapping[str, float], measured: Mapping[str, float], grows_with: Sequence[str]) -> float:
    """Return how many times as large as what was measured a piece of work is; 1 for a size that is not known of both.

    Logged runs record no characters; their number of documents stands for it.
    """
    names = ["documents" if name == "characters" and name not in measured else name for name in grows_with]
    return math.prod(sizes[name] / measured[name] for name in names if sizes.get(name) and measured.get(name))


def _name_class(parts: Mapping[str, str]) -> str:
    """Return the class of the retriever or the encoder in a key, or the name of its model; "" without either."""
    kind = (parts.get("retriever") or parts.get("encoder", "")).partition("(")[0]
    return kind or parts.get("model", "")


def _list_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the words of settings; the more words two keys share, the more similar is their work."""
    return frozenset(word for value in texts for word in re.findall(r"[^\s(),]+", value))


def _read_sizes(parts: Mapping[str, str]) -> dict[str, float]:
    """Return the sizes in a key: numbers of documents, characters, texts (`rows`) and queries (`asked`)."""
    names = ("documents", "characters", "rows", "asked")
    return {name: float(parts[name]) for name in names if parts.get(name, "").isdecimal()}
