"""The kinds of work of an evaluation, for timings, reports, counts and estimates."""

from __future__ import annotations

import threading
from dataclasses import InitVar, dataclass
from enum import StrEnum
from typing import Literal

WorkStage = Literal["index", "search", "setup", "measure"]
SizeName = Literal["documents", "characters", "rows", "asked"]
"""A size in the keys of work; `rows` is a number of texts, `asked` one of queries."""


class PlanStep(StrEnum):
    """The steps of a plan, in the order in which a combination needs them."""

    COUNT_TERMS = "count terms"
    OPEN_MODEL = "open model"
    EMBED = "embed"
    POOL_TOKENS = "pool tokens"
    INDEX = "index"
    SEARCH_EXACTLY = "search exactly"
    SEARCH = "search"
    FUSE = "fuse"
    RERANK = "rerank"


KINDS: dict[str, WorkKind] = {}
"""The kinds of work that exist, by name."""


@dataclass(frozen=True)
class WorkKind:
    """A kind of work: its name in stores, its stage, its label in reports, and whether a sweep counts it.

    The result of `external` work is kept in a server; the store only records that it exists. `sharded` work encodes
    documents in shards, which the workers of a sweep share. Work `kept_within` other work is kept whenever that is,
    however quick it was. `step` is the step of a plan that the work belongs to, None for work that is not planned.
    `grows_with` names the sizes in its key whose product its time and bytes grow with.

    Work of the stage `index` depends on documents, that of `search` on queries. `setup` loads models and compiles code,
    and `measure` only computes figures for a report.

    A plug-in adds a kind by creating it. Raises `ValueError` if another kind has its name.
    """

    name: str
    stage: WorkStage
    label: str = ""
    counted: bool = True
    external: bool = False
    sharded: bool = False
    kept_within: bool = False
    step: PlanStep | None = None
    grows_with: tuple[SizeName, ...] = ()
    exists: InitVar[bool] = True

    def __post_init__(self, exists: bool) -> None:
        if exists and KINDS.setdefault(self.name, self) != self:
            raise ValueError(f"name={self.name!r}: is the name of another kind of work; choose another name")

    @property
    def title(self) -> str:
        """Return its name in reports."""
        return self.label or self.name

    @property
    def stores_index(self) -> bool:
        """Return whether work of this kind stores an index, or a part of one."""
        return self.stage == "index" and self.counted


POSTINGS = WorkKind("postings", "index", step=PlanStep.COUNT_TERMS, grows_with=("characters",))
LIVE_POSTINGS = WorkKind("live postings", "index", "postings in memory", counted=False)
TOKENS_BY_TIE_ORDER = WorkKind(
    "tokens by tie order", "index", "tokens", step=PlanStep.COUNT_TERMS, grows_with=("characters",)
)
FTS5_DATABASE = WorkKind("fts5 database", "index", step=PlanStep.INDEX, grows_with=("characters",))
LIVE_FTS5_DATABASE = WorkKind("live fts5 database", "index", "FTS5 database in memory", counted=False)
DOCUMENT_VECTORS = WorkKind("document vectors", "index", step=PlanStep.EMBED, grows_with=("characters",), sharded=True)
SHARD_TEXTS = WorkKind("shard texts", "index", "hashes of embedded texts", counted=False, kept_within=True)
DOCUMENT_TERM_WEIGHTS = WorkKind(
    "document term weights", "index", step=PlanStep.EMBED, grows_with=("characters",), sharded=True
)
WEIGHTED_POSTINGS = WorkKind("weighted postings", "index", step=PlanStep.INDEX, grows_with=("characters",))
DOCUMENT_TOKEN_VECTORS = WorkKind(
    "document token vectors", "index", step=PlanStep.EMBED, grows_with=("characters",), sharded=True
)
POOLED_TOKEN_VECTORS = WorkKind("pooled token vectors", "index", step=PlanStep.POOL_TOKENS, grows_with=("characters",))
LSA = WorkKind("lsa", "index", step=PlanStep.EMBED, grows_with=("characters",))
POINTS = WorkKind("points", "index")
VECTOR_INDEX = WorkKind("vector index", "index", step=PlanStep.INDEX, grows_with=("documents",))
LIVE_VECTOR_INDEX = WorkKind("live vector index", "index", "vector index in memory", counted=False)
QDRANT_INDEX = WorkKind("qdrant index", "index", step=PlanStep.INDEX, grows_with=("documents",))
POSTGRES_INDEX = WorkKind("postgres index", "index", external=True, step=PlanStep.INDEX, grows_with=("documents",))
LIVE_QDRANT_INDEX = WorkKind("live qdrant index", "index", "Qdrant index opened", counted=False)
SEARCHER = WorkKind("searcher", "index", "search made ready", counted=False)
RANKINGS = WorkKind("rankings", "search", kept_within=True, step=PlanStep.SEARCH, grows_with=("asked",))
RANKINGS_OF_A_BLOCK = WorkKind("rankings of a block", "search")
LIVE_RANKINGS = WorkKind("live rankings", "search", "rankings of a service in memory", counted=False)
QUERY_TERMS = WorkKind("query terms", "search", "query analysis", counted=False)
QUERY_VECTORS = WorkKind("query vectors", "search", step=PlanStep.EMBED, grows_with=("rows",))
QUERY_TERM_WEIGHTS = WorkKind("query term weights", "search", step=PlanStep.EMBED, grows_with=("rows",))
QUERY_TOKEN_VECTORS = WorkKind("query token vectors", "search", step=PlanStep.EMBED, grows_with=("rows",))
CANDIDATES = WorkKind("candidates", "search")
PAIR_SCORES = WorkKind("pair scores", "search")
LIVE_PAIR_SCORES = WorkKind("live pair scores", "search", "pair scores in memory", counted=False)
LIVE_VECTORS = WorkKind("live vectors", "setup", "vectors of a file in memory", counted=False)
LIVE_MODEL = WorkKind("live model", "setup", "loaded model", counted=False, step=PlanStep.OPEN_MODEL)
LIVE_PAIR_MODEL = WorkKind("live pair model", "setup", "loaded reranker", counted=False)
LIVE_CODE = WorkKind("live code", "setup", "compiled code", counted=False)
ENCODING_PLANNED = WorkKind("encoding planned", "setup", counted=False)
EXPORTED_MODEL = WorkKind("exported model", "setup", "model exported to a backend", counted=False)
BUNDLES = WorkKind("bundles", "setup")
DRAFTS = WorkKind("drafts", "setup")
VERDICTS = WorkKind("verdicts", "setup")
LATENCY = WorkKind("latency", "measure", "queries timed alone", counted=False, grows_with=("documents",))
DIAGNOSTICS = WorkKind("diagnostics", "measure", counted=False, grows_with=("asked", "documents"))
TEXTS_CUT = WorkKind("texts cut", "measure", counted=False)
EXACT_NEIGHBOURS = WorkKind(
    "exact neighbours",
    "measure",
    "exact search, for recall",
    counted=False,
    step=PlanStep.SEARCH_EXACTLY,
    grows_with=("asked", "documents"),
)


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
    """Return a kind of work by its name; one of a plug-in that is not loaded is indexing and counted."""
    return KINDS.get(name) or WorkKind(name, "index", exists=False)


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
