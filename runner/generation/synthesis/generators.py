"""What makes queries of text alone, without a language model.

A query depends on its bundle, its type and its seed, never on those made before it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass as settings

from retrievers.analyzer import Analyzer
from retrievers.store import fingerprint
from runner.generation.synthesis import wording  # as a module: what it holds is part of the code behind kept queries
from runner.generation.synthesis.base import COMPARISON, NO_SECOND, Chunks, Draft, Wanted, check_types
from runner.generation.synthesis.lexicon import Synonyms, check_lexicon, lexicon_identity, synonyms_in
from runner.generation.synthesis.limits import Limits
from runner.generation.synthesis.material import Material
from runner.generation.synthesis.rewording import Task
from runner.generation.synthesis.terms import terms_of
from runner.llm.journal import Journal

READS_WELL = ("exact_snippet", "web_search_like", "fact_seeking", "keyword", "misspellings", "short")
"""The types that rules write as people do. The others need somebody who understands the text."""

Share = Annotated[float, Field(ge=0, le=1)]


@settings(frozen=True, kw_only=True, config={"extra": "forbid"})
class Deterministic:
    """Settings of queries made of text alone.

    `types` are those that are asked for, by default the ones that read well when rules make them; null for all.
    `lexicon` is where other words for a word come from: a file with words of one meaning on each line, a folder of
    WordNet's files, or "cooccurrence", which takes related words from the chunks themselves; null for none, and then
    there are no `low_overlap` queries. At most `most_overlap` of the terms of these are in a golden. Of questions and
    told needs it is a share that is drawn between the bounds of `overlap`, as far as phrases of two words
    allow. The `analyzer` says what a term is and which words say nothing.
    """

    analyzer: Analyzer = Analyzer()
    lexicon: str | None = "bundled:english.txt"
    overlap: tuple[Share, Share] = (0.2, 0.6)
    most_overlap: Share = 0.35
    limits: Limits = Limits()
    types: tuple[str, ...] | None = Field(default=READS_WELL, repr=False)  # a query does not depend on the others

    @field_validator("lexicon")
    @classmethod
    def _there(cls, value: str | None) -> str | None:
        if value is not None:
            check_lexicon(value)
        return value

    @field_validator("overlap")
    @classmethod
    def _in_order(cls, value: tuple[float, float]) -> tuple[float, float]:
        if value[0] > value[1]:
            raise ValueError(f"overlap={list(value)}: the least comes first")
        return value

    @property
    def possible_types(self) -> frozenset[str]:
        """Return the types that it can make."""
        return frozenset(wording.WRITERS) - (frozenset() if self.lexicon else {"low_overlap"})

    @property
    def identity(self) -> str:
        """Return a hash of all that decides queries: settings, and what the lexicon says."""
        return fingerprint(repr(self), lexicon_identity(self.lexicon) if self.lexicon else "")

    def drafts(
        self, chunks: Chunks, wanted: Iterable[Wanted], journal: Journal | None = None
    ) -> Iterator[tuple[int, Draft]]:
        """Yield each wanted query's position with its draft, in their order; nobody is paid. Raises `ConfigError`."""
        terms = terms_of(chunks, self.analyzer)
        synonyms: Synonyms = synonyms_in(self.lexicon, chunks, self.analyzer) if self.lexicon else lambda word: ()
        material: Material | None = None
        for position, want in enumerate(wanted):
            check_types(self, [want.query_type])
            if material is None or material.bundle != want.bundle:  # a bundle's types mostly come one after the other
                material = Material(chunks, want.bundle, terms)
            task = Task(material, random.Random(want.seed), self.limits, synonyms, self.overlap, self.most_overlap)  # noqa: S311 (no secret)
            yield position, self._draft(task, want)

    def _draft(self, task: Task, want: Wanted) -> Draft:
        if want.query_type == COMPARISON and len(want.bundle.goldens) < 2:
            return Draft("", NO_SECOND)
        reason = "nothing to say" if task.material.prose.sentences or task.material.prose.headings else "no prose"
        for query in filter(None, wording.WRITERS[want.query_type](task)):
            reason = self.limits.fault(query, task.material.chunks, want)
            if not reason:
                return Draft(query)
        return Draft("", reason)
