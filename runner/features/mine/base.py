"""The types of mining: its settings, cases, the queries made of them, and the objections to queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Retriever
from retrievers.llm.chat import Chat
from runner.features.mine.targets import Resolution, Targets

Verdict = Literal["verified", "doubtful", "rejected"]


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class ImpactSettings:
    """Settings for measuring impact: at most `subsets` random subsets per query; 0 turns it off.

    Subsets are drawn in batches of `batch` until the impact of every document of the query has a standard error of at
    most `error`. `calls` limits the number of questions for all queries together; null sets no limit besides the
    model's own.
    """

    subsets: int = Field(default=0, ge=0)
    batch: int = Field(default=8, ge=1)
    error: float = Field(default=0.15, gt=0)
    calls: int | None = Field(default=None, ge=0)


@settings(frozen=True, kw_only=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Mining:
    """Settings that decide how cases become queries.

    The first `depth` documents of `retriever` supply the `hard_negatives`; a query without gold among them is doubtful.
    `random_negatives` are drawn with `seed`. Texts with a shingle similarity of at least `ceiling` are near-duplicates:
    a near-duplicate of gold cannot be a negative, and one of another query is rejected. Gold without a docstring is
    kept or dropped (`bare_golds`). A language model `llm` answers each query from its gold, from `contexts` other
    documents, and without documents; with `impact`, the impact of documents is measured as well. `keep` is the worst
    verdict in the output.
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
        if isinstance(self.retriever, (str, list, tuple)):  # these have a method `index` and so match the protocol
            raise ValueError(
                f"retriever={self.retriever}: expected a retriever; choose one from the group, such as retriever=bm25"
            )


@dataclass(frozen=True)
class Case:
    """A question of a suite and the names of its correct answers, the primary one first.

    `answers` are the expected answers as text. If the primary name was inferred, `candidates` are all names that it may
    be, and `primary_pending` is the reason why the language model has not chosen one yet. `nameless` is the reason why
    there are no names, `fault` the reason why the case cannot become a query.
    """

    id: str
    suite: str
    query: str
    names: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    primary_pending: str = ""
    nameless: str = ""
    fault: str = ""


@dataclass(frozen=True)
class MiningInput:
    """The input of mining: the targets, and the cases of all suites."""

    targets: Targets
    cases: Sequence[Case]


class CaseSource(Protocol):
    """Settings of a source of cases and targets."""

    def load(self) -> MiningInput:
        """Load cases and targets; raises `DatasetError` or `ConfigError`."""
        ...


@dataclass(frozen=True)
class Objection:
    """An objection to a query: the check that raised it, the verdict it leads to, and the evidence as text."""

    check: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class DocumentImpact:
    """The impact of a document, by its position: the success rate with it minus the rate without it.

    `impact` and its standard `error` are None if one side has no answers; `with_it` and `without_it` are the numbers of
    answers on each side.
    """

    document: int
    impact: float | None
    error: float | None
    with_it: int
    without_it: int


@dataclass(frozen=True)
class Impact:
    """The impact of a query's documents.

    `baseline` is whether the model answers correctly without documents, None if unknown; `subsets` counts the answers;
    `why` is the reason if the measurement has not `converged`.
    """

    baseline: bool | None
    documents: tuple[DocumentImpact, ...]
    subsets: int
    converged: bool
    why: str


@dataclass(frozen=True)
class Query:
    """A case with resolved names: gold and negatives are positions among the targets.

    `golds` has the primary gold first. `rank` is the retriever's rank of the first gold, None if it is beyond the
    search depth; `near_golds` are near-duplicates of gold within it. `contexts` are random documents from which the
    model tries to answer. `model_replies` are by question; a query is `unfinished` if a later run may supply missing
    replies. `impact` is None if it was not measured.
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
    objections: tuple[Objection, ...] = ()
    model_replies: Mapping[str, str] = field(default_factory=dict)
    unfinished: bool = False
    impact: Impact | None = None

    @property
    def verdict(self) -> Verdict:
        """Return the worst verdict of the objections."""
        verdicts = {objection.verdict for objection in self.objections}
        return "rejected" if "rejected" in verdicts else "doubtful" if "doubtful" in verdicts else "verified"

    @property
    def difficulty(self) -> str:
        """Return how difficult the query is for the retriever, by the rank of the first gold: 1, to 10, or beyond."""
        return "hard" if self.rank is None or self.rank > _MEDIUM else "medium" if self.rank > 1 else "easy"


_MEDIUM = 10
