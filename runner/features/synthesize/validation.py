"""Validate that goldens answer a query better than distractors: by rules, by a language model, or by both."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.lexical.analyzer import Analyzer
from retrievers.llm.chat import Chat
from retrievers.store import fingerprint
from runner.features.synthesize.base import Chunks, Request, check_names
from runner.features.synthesize.llm_checks import prompts_identity, rate_goldens
from runner.features.synthesize.nonllm import Contrast, measure_contrast
from runner.features.synthesize.terms import content, count_terms
from runner.llm.journal import Journal
from runner.llm.none import NoLLM

BM25_RANK, BM25_MARGIN, COVERAGE, GAP = "bm25_rank", "bm25_margin", "coverage_golden", "coverage_gap"
RELEVANCE = "ragas_context_relevance"


@dataclass(frozen=True)
class QueryVerdict:
    """Whether a query is accepted, the reason if not, the metrics, and the method of the evaluation.

    `metrics` has "bm25_rank", "bm25_margin", "coverage_golden" and "coverage_gap" from rules, and
    "ragas_context_relevance" from a model, None if it gave no score. `evaluation` is "none", "nonllm", "llm",
    "hybrid_nonllm" or "hybrid_llm".
    """

    accepted: bool
    reason: str = ""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    evaluation: str = "none"


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Gates:
    """The minimum lead of goldens over distractors: in BM25 score, in coverage of the query's terms, and in its gap."""

    min_margin: float = Field(default=0.5, ge=0)
    min_coverage: float = Field(default=0.6, ge=0, le=1)
    min_gap: float = Field(default=0.2, ge=0, le=1)

    def fault(self, contrast: Contrast) -> str:
        """Return the gate that a query does not pass, "" for none."""
        if contrast.rank > 1:
            return "bm25 rank"
        if contrast.margin < self.min_margin:
            return "bm25 margin"
        if contrast.coverage < self.min_coverage:
            return "coverage"
        return "coverage gap" if contrast.gap < self.min_gap else ""


@settings(frozen=True, kw_only=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Validation:
    """Settings of the validation of queries.

    Mode `nonllm` ranks the goldens, as one document, among the distractors by BM25 with `k1` and `b`, and requires the
    `gates`; `by_type` has different gates for some types, such as reworded queries, which do not share their words with
    the goldens. In mode `llm`, a model answers from the goldens only and rates their relevance, which must be at least
    `min_relevance`. Mode `hybrid` is `nonllm`, with a share of `sample_rate` of the failures validated by the model.
    """

    access: ClassVar[Access] = Access()

    mode: Literal["none", "nonllm", "llm", "hybrid"] = "nonllm"
    gates: Gates = Gates()
    by_type: Mapping[str, Gates] = field(default_factory=dict)
    analyzer: Analyzer = Analyzer()
    k1: float = Field(default=0.9, ge=0)
    b: float = Field(default=0.4, ge=0, le=1)
    llm: Chat = field(default_factory=NoLLM)
    min_relevance: float = Field(default=0.8, ge=0, le=1)
    sample_rate: float = Field(default=0.25, ge=0, le=1)

    @field_validator("by_type")
    @classmethod
    def _check_types(cls, value: Mapping[str, Gates]) -> Mapping[str, Gates]:
        check_names(value)
        return value

    @model_validator(mode="after")
    def _check_llm(self) -> Self:
        if self.asks and isinstance(self.llm, NoLLM):
            raise ValueError(
                f"mode={self.mode}: needs a language model; set, for example, llm=openai llm.model=MODEL, "
                "or mode=nonllm"
            )
        return self

    @property
    def asks(self) -> bool:
        """Return whether the mode asks a language model."""
        return self.mode == "llm" or (self.mode == "hybrid" and self.sample_rate > 0)

    @property
    def identity(self) -> str:
        """Return a hash of everything that decides verdicts: the settings and the prompts."""
        return fingerprint(repr(self), prompts_identity())

    def escalates(self, query: str) -> bool:
        """Return whether the model is asked about a query that failed; this depends on the query only."""
        digest = hashlib.blake2b(query.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "little") < self.sample_rate * 2**64


def validate_queries(
    settings: Validation, chunks: Chunks, items: Sequence[tuple[Request, str]], journal: Journal
) -> Iterator[tuple[int, QueryVerdict]]:
    """Yield the position of each request and its query with the verdict, in any order; the journal keeps paid replies.

    Raises `ConfigError` if the model cannot be asked, or the `ChatError` that left some queries without a reply.
    """
    if settings.mode == "none":
        yield from ((position, QueryVerdict(True)) for position in range(len(items)))
        return
    open_items = dict(enumerate(items))
    before: dict[int, QueryVerdict] = {}
    if settings.mode != "llm":
        name = "nonllm" if settings.mode == "nonllm" else "hybrid_nonllm"
        before = {position: _validate_by_rules(settings, chunks, *item, name) for position, item in open_items.items()}
        hybrid = settings.mode == "hybrid"
        open_items = {
            position: items[position]
            for position, verdict in before.items()
            if hybrid and not verdict.accepted and settings.escalates(items[position][1])
        }
        yield from ((position, verdict) for position, verdict in before.items() if position not in open_items)
    pairs = {
        position: (query, [content(chunks, golden) for golden in request.bundle.goldens])
        for position, (request, query) in open_items.items()
    }
    for position, relevance, reason in rate_goldens(settings.llm, pairs, journal):
        yield position, _validate_by_rating(settings, relevance, reason, before.get(position))


def _validate_by_rules(settings: Validation, chunks: Chunks, request: Request, query: str, name: str) -> QueryVerdict:
    terms = count_terms(chunks, settings.analyzer)
    lead = measure_contrast(terms, chunks, request.bundle, query, settings.k1, settings.b)
    fault = settings.by_type.get(request.query_type, settings.gates).fault(lead)
    metrics = {BM25_RANK: float(lead.rank), BM25_MARGIN: lead.margin, COVERAGE: lead.coverage, GAP: lead.gap}
    return QueryVerdict(not fault, fault, metrics, name)


def _validate_by_rating(
    settings: Validation, relevance: float | None, reason: str, before: QueryVerdict | None
) -> QueryVerdict:
    metrics = {**(before.metrics if before else {}), RELEVANCE: relevance}
    if relevance is not None and relevance < settings.min_relevance:
        reason = "context relevance"
    return QueryVerdict(not reason, reason, metrics, "hybrid_llm" if before else "llm")
