"""The words of mining: its settings, a case, the query that it became, and what is held against that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Retriever
from retrievers.chat import Chat
from runner.generation.mining.targets import Resolution, Targets

Verdict = Literal["verified", "doubtful", "rejected"]


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class ImpactSettings:
    """How the impact of documents is measured: at most `subsets` random subsets a query, none for 0.

    They are drawn `batch` at a time until every document of the query has a standard error of at most `error`. `calls`
    is the budget: how many questions are asked of all queries together, null for no other limit than the model's own.
    """

    subsets: int = Field(default=0, ge=0)
    batch: int = Field(default=8, ge=1)
    error: float = Field(default=0.15, gt=0)
    calls: int | None = Field(default=None, ge=0)


@settings(frozen=True, kw_only=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Mining:
    """How cases become queries.

    The first `depth` documents of `retriever` are looked at: `hard_negatives` come from them, and a query without any
    gold there is doubtful. `random_negatives` are drawn with `seed`. What is as much alike as `ceiling`, by shingles of
    words, is a near-duplicate: of gold it is no negative, of another query it is none. Gold without a docstring is kept
    or dropped (`bare_golds`). With a language model `llm`, each query is answered from its gold, from `contexts` other
    documents, and from none, and the `impact` of its documents may be measured. `keep` is which verdicts a query in the
    output may have.
    """

    retriever: Retriever
    llm: Chat
    depth: int = Field(default=100, ge=1)
    hard_negatives: int = Field(default=5, ge=0)
    random_negatives: int = Field(default=0, ge=0)
    ceiling: float = Field(default=0.8, gt=0, le=1)
    bare_golds: Literal["keep", "drop"] = "keep"
    contexts: int = Field(default=5, ge=0)
    keep: Literal["verified", "doubtful"] = "doubtful"
    seed: int = Field(default=0, ge=0)
    impact: ImpactSettings = field(default_factory=ImpactSettings)

    def __post_init__(self) -> None:
        if isinstance(self.retriever, (str, list, tuple)):  # they have a method `index`, and so pass for retrievers
            raise ValueError(f"retriever={self.retriever}: is not a retriever; choose one of the group: retriever=bm25")


@dataclass(frozen=True)
class Case:
    """A question and the names of its right answers, the primary one first, as a suite has them.

    `answers` are what it expects to be answered, in words. `candidates` are all names that might be the primary one,
    where it was inferred; `unheard` is why a language model has not said yet which it is. `fault` says why it cannot
    become a query.
    """

    id: str
    suite: str
    query: str
    names: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    unheard: str = ""
    fault: str = ""


@dataclass(frozen=True)
class Material:
    """What there is to mine: the targets, and the cases of all suites."""

    targets: Targets
    cases: Sequence[Case]


class Source(Protocol):
    """Settings of where cases and targets are from."""

    def load(self) -> Material:
        """Read it all; raises `DatasetError`, or `ConfigError`."""
        ...


@dataclass(frozen=True)
class Held:
    """What is held against a query: by which check, how gravely, and the evidence in words."""

    check: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class DocumentImpact:
    """How much a document, by its position, helped: the success rate with it minus that without it, and its error.

    Both are None where one side has no answer; `with_it` and `without_it` are how many answers there are of each.
    """

    document: int
    impact: float | None
    error: float | None
    with_it: int
    without_it: int


@dataclass(frozen=True)
class Impact:
    """What a query's documents contribute: see `impact`.

    `baseline` is whether it is answered correctly without any document, None where that is not known; `subsets` counts
    the answers; `why` says why it is not `converged`.
    """

    baseline: bool | None
    documents: tuple[DocumentImpact, ...]
    subsets: int
    converged: bool
    why: str


@dataclass(frozen=True)
class Query:
    """A case whose names were resolved: gold and negatives as positions among the targets.

    `golds` are the primary one, then the others. `rank` is the place at which the retriever has the first of them, None
    where it was not among those searched; `near_golds` are near-duplicates of gold among those. `contexts` are
    documents by chance that a language model may answer from. `held` is all that speaks against the query; `heard` what
    the model said, `unfinished` whether it may still say what it has not. `impact` is None where it was not measured.
    """

    case: Case
    resolutions: tuple[Resolution, ...]
    golds: tuple[int, ...]
    rank: int | None = None
    hard_negatives: tuple[int, ...] = ()
    random_negatives: tuple[int, ...] = ()
    near_golds: tuple[int, ...] = ()
    contexts: tuple[int, ...] = ()
    concepts: tuple[str, ...] = ()
    held: tuple[Held, ...] = ()
    heard: Mapping[str, str] = field(default_factory=dict)
    unfinished: bool = False
    impact: Impact | None = None

    @property
    def verdict(self) -> Verdict:
        """Return the gravest of what is held against it."""
        found = {held.verdict for held in self.held}
        return "rejected" if "rejected" in found else "doubtful" if "doubtful" in found else "verified"

    @property
    def difficulty(self) -> str:
        """Return how hard it is for the retriever: its first gold is first, or among ten, or later if at all."""
        return "hard" if self.rank is None or self.rank > _MEDIUM else "medium" if self.rank > 1 else "easy"


_MEDIUM = 10
