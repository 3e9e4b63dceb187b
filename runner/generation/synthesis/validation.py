"""Is a query answered by its goldens and by nothing beside them: without a language model, by one, or by both.

It knows nothing of how queries were made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.analyzer import Analyzer
from retrievers.chat import Chat
from retrievers.store import fingerprint
from runner.config.objects import suggestion
from runner.generation.synthesis.base import QUERY_TYPES, Chunks, Draft, Wanted
from runner.generation.synthesis.llm_checks import GoldenRating, prompts_identity, rate_goldens
from runner.generation.synthesis.nonllm import Contrast, contrast
from runner.generation.synthesis.terms import content, terms_of
from runner.llm.journal import Journal
from runner.llm.none import NoLLM

BM25_RANK, BM25_MARGIN, COVERAGE, GAP = "bm25_rank", "bm25_margin", "coverage_golden", "coverage_gap"
RELEVANCE = "ragas_context_relevance"


@dataclass(frozen=True)
class Generated:
    """A query, and what was wanted."""

    wanted: Wanted
    draft: Draft


@dataclass(frozen=True)
class Verdict:
    """Whether a query is accepted, or why not in a word or two; what was measured; who decided.

    `metrics` has "bm25_rank", "bm25_margin", "coverage_golden" and "coverage_gap" where text was compared, and
    "ragas_context_relevance" where a model was asked; None where it gave no score. `evaluation` is "none", "nonllm",
    "llm", "hybrid_nonllm" or "hybrid_llm".
    """

    accepted: bool
    reason: str = ""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    evaluation: str = "none"


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Gates:
    """How far goldens must be before distractors: in BM25's score, in the share of a query's terms, in its lead."""

    min_margin: float = Field(default=0.5, ge=0)
    min_coverage: float = Field(default=0.6, ge=0, le=1)
    min_gap: float = Field(default=0.2, ge=0, le=1)

    def fault(self, found: Contrast) -> str:
        """Return which gate a query does not pass, "" for none."""
        if found.rank > 1:
            return "bm25 rank"
        if found.margin < self.min_margin:
            return "bm25 margin"
        if found.coverage < self.min_coverage:
            return "coverage"
        return "coverage gap" if found.gap < self.min_gap else ""


@settings(frozen=True, kw_only=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Validation:
    """How queries are validated.

    `nonllm` takes goldens as one document among the distractors, by BM25 with `k1` and `b`, and asks for `gates`;
    `by_type` has other gates for types that these do not suit, as words that are not in the goldens suit none. `llm`
    has a model answer from the goldens alone, and rate their relevance, of which `min_relevance` is asked. `hybrid` is
    the first, and asks the model for `sample_rate` of those that fail.
    """

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
    def _known(cls, value: Mapping[str, Gates]) -> Mapping[str, Gates]:
        for name in value.keys() - set(QUERY_TYPES):
            raise ValueError(f"there is no query type {name!r}: {suggestion(name, QUERY_TYPES)}")
        return value

    @model_validator(mode="after")
    def _somebody_to_ask(self) -> Self:
        if self.asks and isinstance(self.llm, NoLLM):
            raise ValueError(
                f"mode={self.mode} asks a language model: choose one (llm=openai llm.model=MODEL), or nonllm"
            )
        return self

    @property
    def asks(self) -> bool:
        """Tell whether a language model is asked."""
        return self.mode == "llm" or (self.mode == "hybrid" and self.sample_rate > 0)

    @property
    def identity(self) -> str:
        """Return a hash of all that decides verdicts: settings, and what a model is asked."""
        return fingerprint(repr(self), prompts_identity())

    def escalates(self, query: str) -> bool:
        """Tell whether the model is asked about a query that failed; the query alone decides."""
        digest = hashlib.blake2b(query.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "little") < self.sample_rate * 2**64


def validated(
    settings: Validation, chunks: Chunks, items: Sequence[Generated], journal: Journal
) -> Iterator[tuple[int, Verdict]]:
    """Yield the position of each query with the verdict on it, in any order; the journal keeps what is paid for.

    Raises `ConfigError` where nobody can be asked, or the `ChatError` that left some without an answer.
    """
    if settings.mode == "none":
        yield from ((position, Verdict(True)) for position in range(len(items)))
        return
    asked = dict(enumerate(items))
    before: dict[int, Verdict] = {}
    if settings.mode != "llm":
        name = "nonllm" if settings.mode == "nonllm" else "hybrid_nonllm"
        before = {position: _by_text(settings, chunks, item, name) for position, item in asked.items()}
        hybrid = settings.mode == "hybrid"
        asked = {
            position: items[position]
            for position, verdict in before.items()
            if hybrid and not verdict.accepted and settings.escalates(items[position].draft.query)
        }
        yield from ((position, verdict) for position, verdict in before.items() if position not in asked)
    pairs = {position: (item.draft.query, _contents(chunks, item)) for position, item in asked.items()}
    for position, found in rate_goldens(settings.llm, pairs, journal):
        yield position, _by_model(settings, found, before.get(position))


def _by_text(settings: Validation, chunks: Chunks, item: Generated, name: str) -> Verdict:
    terms = terms_of(chunks, settings.analyzer)
    found = contrast(terms, chunks, item.wanted.bundle, item.draft.query, settings.k1, settings.b)
    gates = settings.by_type.get(item.wanted.query_type, settings.gates)
    fault = gates.fault(found)
    metrics = {BM25_RANK: float(found.rank), BM25_MARGIN: found.margin, COVERAGE: found.coverage, GAP: found.gap}
    return Verdict(not fault, fault, metrics, name)


def _by_model(settings: Validation, found: GoldenRating, before: Verdict | None) -> Verdict:
    metrics = {**(before.metrics if before else {}), RELEVANCE: found.relevance}
    reason = found.reason
    if not reason and (found.relevance is None or found.relevance < settings.min_relevance):
        reason = "no score" if found.relevance is None else "context relevance"
    return Verdict(not reason, reason, metrics, "hybrid_llm" if before else "llm")


def _contents(chunks: Chunks, item: Generated) -> list[str]:
    return [content(chunks, golden) for golden in item.wanted.bundle.goldens]
