"""The kinds of work of an evaluation, for timings, reports, counts and estimates."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

WorkStage = Literal["index", "search", "setup", "measure"]


@dataclass(frozen=True)
class WorkKind:
    """A kind of work: its name in keys, its stage, its label in reports, and whether a sweep counts it.

    The result of `external` work is kept in a server; the store only records that it exists.

    Work of the stage `index` depends on documents, that of `search` on queries. `setup` loads models and compiles code,
    and `measure` only computes figures for a report.
    """

    name: str
    stage: WorkStage
    label: str = ""
    counted: bool = True
    external: bool = False

    @property
    def title(self) -> str:
        """Return its name in reports."""
        return self.label or self.name


KINDS: Mapping[str, WorkKind] = {
    kind.name: kind
    for kind in (
        WorkKind("postings", "index"),
        WorkKind("live postings", "index", "postings in memory", counted=False),
        WorkKind("tokens by tie order", "index", "tokens"),
        WorkKind("fts5 database", "index"),
        WorkKind("live fts5 database", "index", "FTS5 database in memory", counted=False),
        WorkKind("document vectors", "index"),
        WorkKind("document term weights", "index"),
        WorkKind("weighted postings", "index"),
        WorkKind("document token vectors", "index"),
        WorkKind("pooled token vectors", "index"),
        WorkKind("lsa", "index"),
        WorkKind("points", "index"),
        WorkKind("vector index", "index"),
        WorkKind("live vector index", "index", "vector index in memory", counted=False),
        WorkKind("qdrant index", "index"),
        WorkKind("postgres index", "index", external=True),
        WorkKind("live qdrant index", "index", "Qdrant index opened", counted=False),
        WorkKind("searcher", "index", "search made ready", counted=False),
        WorkKind("rankings", "search"),
        WorkKind("rankings of a block", "search"),
        WorkKind("live rankings", "search", "rankings of a service in memory", counted=False),
        WorkKind("query terms", "search", "query analysis", counted=False),
        WorkKind("query vectors", "search"),
        WorkKind("query term weights", "search"),
        WorkKind("query token vectors", "search"),
        WorkKind("candidates", "search"),
        WorkKind("pair scores", "search"),
        WorkKind("live pair scores", "search", "pair scores in memory", counted=False),
        WorkKind("live vectors", "setup", "vectors of a file in memory", counted=False),
        WorkKind("live model", "setup", "loaded model", counted=False),
        WorkKind("live pair model", "setup", "loaded reranker", counted=False),
        WorkKind("live code", "setup", "compiled code", counted=False),
        WorkKind("encoding planned", "setup", counted=False),
        WorkKind("bundles", "setup"),
        WorkKind("drafts", "setup"),
        WorkKind("verdicts", "setup"),
        WorkKind("latency", "measure", "queries timed alone", counted=False),
        WorkKind("diagnostics", "measure", counted=False),
        WorkKind("exact neighbours", "measure", "exact search, for recall", counted=False),
    )
}
"""All kinds of work of this program, by name."""


@dataclass(frozen=True)
class Cost:
    """What one piece of work takes, without the work within it, and whether it was there already.

    `bytes` is the size of the index that it built, 0 if it built none or only an intermediate result, None if unknown.
    `money` is what its calls of models behind APIs cost when it was done, in the currency of the prices.
    """

    kind: str
    seconds: float
    reused: bool = False
    bytes: int | None = 0
    money: float = 0.0


def kind_of(name: str) -> WorkKind:
    """Return a kind of work by its name; an unknown kind, of a plug-in, is indexing and counted."""
    return KINDS.get(name) or WorkKind(name, "index")


def stores_index(kind: str) -> bool:
    """Return whether work of a kind stores an index, or a part of one."""
    of = kind_of(kind)
    return of.stage == "index" and of.counted


class MoneyMeter:
    """Adds up what the calls of this process cost, in billionths of the currency of the prices."""

    def __init__(self) -> None:
        self._lock, self._nanos = threading.Lock(), 0

    def add(self, nanos: int) -> None:
        """Add the cost of a call."""
        with self._lock:
            self._nanos += nanos

    @property
    def money(self) -> float:
        """Return the cost of all calls so far."""
        return self._nanos / 1_000_000_000


METER = MoneyMeter()
"""The meter of this process, which clients of APIs add to and stores read."""
