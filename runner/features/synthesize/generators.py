"""Generate queries by rules, from text only, without a language model.

A query depends on its bundle, its type and its seed, not on earlier queries.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar

from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.lexical.analyzer import Analyzer
from retrievers.store import fingerprint
from runner.config.addresses import LocalPath
from runner.features.synthesize import wording  # as a module, so that its code is in the cache keys of queries
from runner.features.synthesize.base import COMPARISON, NO_SECOND, Chunks, Draft, Request, check_types
from runner.features.synthesize.lexicon import Synonyms, check_lexicon, lexicon_identity, load_synonyms
from runner.features.synthesize.limits import QueryLimits
from runner.features.synthesize.material import Material
from runner.features.synthesize.rewording import Task
from runner.features.synthesize.terms import count_terms
from runner.llm.journal import Journal

RESULTS_VERSION = "deterministic generator 1"

READS_WELL = ("exact_snippet", "web_search_like", "fact_seeking", "keyword", "misspellings", "short")
"""The types that rules write as people do; the others need an author who understands the text."""

Share = Annotated[float, Field(ge=0, le=1)]


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Deterministic:
    """Settings of queries written by rules.

    `types` are the requested query types, by default those that rules can phrase naturally; null means all. `lexicon`
    is the source of synonyms: a file with a group of synonyms per line, a folder of WordNet's files, or "cooccurrence",
    which takes related words from the chunks; null means none and excludes `low_overlap` queries. At most a share of
    `most_overlap` of the terms of a `low_overlap` query occur in a golden. For other questions, this maximum is drawn
    between the bounds of `overlap`, but phrases keep at least two words even if the share then exceeds it. The
    `analyzer` decides what a term is and which words are stop words.
    """

    access: ClassVar[Access] = Access(paths=("lexicon",))

    analyzer: Analyzer = Analyzer()
    lexicon: LocalPath | None = "bundled:english.txt"
    overlap: tuple[Share, Share] = (0.2, 0.6)
    most_overlap: Share = 0.35
    limits: QueryLimits = QueryLimits()
    types: tuple[str, ...] | None = Field(default=READS_WELL, repr=False)  # a query does not depend on the others

    @field_validator("lexicon")
    @classmethod
    def _check_lexicon(cls, value: str | None) -> str | None:
        if value is not None:
            check_lexicon(value)
        return value

    @field_validator("overlap")
    @classmethod
    def _check_order(cls, value: tuple[float, float]) -> tuple[float, float]:
        if value[0] > value[1]:
            raise ValueError(f"overlap={list(value)}: put the lower bound first")
        return value

    @property
    def possible_types(self) -> frozenset[str]:
        """Return the types that it can generate."""
        return frozenset(wording.WRITERS) - (frozenset() if self.lexicon else {"low_overlap"})

    @property
    def identity(self) -> str:
        """Return a hash of everything that determines queries: the settings and the content of the lexicon."""
        return fingerprint(repr(self), lexicon_identity(self.lexicon) if self.lexicon else "")

    def drafts(
        self, chunks: Chunks, requests: Iterable[Request], journal: Journal | None = None
    ) -> Iterator[tuple[int, Draft]]:
        """Yield the position of each request with its draft, in order. Raises `ConfigError`."""
        terms = count_terms(chunks, self.analyzer)
        synonyms: Synonyms = load_synonyms(self.lexicon, chunks, self.analyzer) if self.lexicon else lambda word: ()
        material: Material | None = None
        for position, request in enumerate(requests):
            check_types(self, [request.query_type])
            if material is None or material.bundle != request.bundle:  # the types of a bundle are mostly consecutive
                material = Material(chunks, request.bundle, terms)
            task = Task(material, random.Random(request.seed), self.limits, synonyms, self.overlap, self.most_overlap)  # noqa: S311 (no secret)
            yield position, self._draft(task, request)

    def _draft(self, task: Task, request: Request) -> Draft:
        if request.query_type == COMPARISON and len(request.bundle.goldens) < 2:
            return Draft("", NO_SECOND)
        reason = "nothing to say" if task.material.prose.sentences or task.material.prose.headings else "no prose"
        for query in filter(None, wording.WRITERS[request.query_type](task)):
            reason = self.limits.fault(query, task.material.chunks, request)
            if not reason:
                return Draft(query)
        return Draft("", reason)
