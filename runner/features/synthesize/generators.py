"""Generate queries by rules, from text only, without a language model.

A query depends on its bundle, its type and its seed, not on earlier queries.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.lexical.analyzer import Analyzer
from runner.features.synthesize import writers  # as a module, so that its code is in the cache keys of queries
from runner.features.synthesize.base import Chunks, Draft, Request, check_types
from runner.features.synthesize.limits import QueryLimits
from runner.features.synthesize.terms import count_terms
from runner.features.synthesize.topics import Material
from runner.llm.journal import Journal

RESULTS_VERSION = "deterministic generator 2"


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Deterministic:
    """Settings of queries written by rules.

    `types` are the requested query types, null for all that rules can write: the other types need an author who
    understands the text. The `analyzer` decides what a term is.
    """

    access: ClassVar[Access] = Access()

    analyzer: Analyzer = Analyzer()
    limits: QueryLimits = QueryLimits()
    types: tuple[str, ...] | None = Field(default=None, repr=False)  # a query does not depend on the others

    @property
    def possible_types(self) -> frozenset[str]:
        """Return the types that it can generate."""
        return frozenset(writers.WRITERS)

    def drafts(
        self, chunks: Chunks, requests: Iterable[Request], journal: Journal | None = None
    ) -> Iterator[tuple[int, Draft]]:
        """Yield the position of each request with its draft, in order. Raises `ConfigError`."""
        terms = count_terms(chunks, self.analyzer)
        material: Material | None = None
        for position, request in enumerate(requests):
            check_types(self, [request.query_type])
            if material is None or material.bundle != request.bundle:  # the types of a bundle are mostly consecutive
                material = Material(chunks, request.bundle, terms)
            yield position, self._draft(material, request)

    def _draft(self, material: Material, request: Request) -> Draft:
        reason = "nothing to say" if material.prose.sentences or material.prose.headings else "no prose"
        chance = random.Random(request.seed)  # noqa: S311 (no secret)
        for draft in writers.WRITERS[request.query_type](material, chance):
            reason = self.limits.fault(draft.query, material.chunks, request)
            if not reason:
                return draft
        return Draft("", reason)
