"""Query expansion by a language model: other ways to ask, or passages that would answer, are searched for as well.

An expanded retriever is a retriever over any other, the base. It knows no provider: a `Chat` answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus, Rankings
from retrievers.chat import Chat
from retrievers.multistage import Base, CachedBase, QueryLog, complete_rankings, report_progress
from retrievers.prompting import Call, ask_llm, check_prompt, fill_prompt, split_lines, strip_label, summarise_calls
from retrievers.search import Work, build_rankings_key, plan_rankings
from retrievers.store import NoStore, Store
from retrievers.threads import map_threads
from retrievers.unknown import align

SYSTEM = "You help a search engine to find what its users are after."

MULTI_QUERY_PROMPT = """\
Write {n} queries that ask for the same as this one in other words: synonyms, other names, narrower or wider terms.

Query: {query}

Reply with the {n} queries, each on a line of its own, and with nothing else."""

HYDE_PROMPT = """\
Write {n} short passages, as from different documents, each of which answers this query.

Query: {query}

Reply with the {n} passages, with an empty line between two and none within, and with nothing else."""


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Expanded:
    """Settings of an expansion: what a language model writes is searched for too, and all is fused by ranks.

    multi_query searches for `n` variants of the query; hyde for `n` passages that would answer it (hypothetical
    document embeddings, Gao et al. 2022; as the base may be no search by vectors, rankings are fused where the paper
    averages vectors). The query itself always counts as one of them. Each finds `depth` documents, of which one adds
    1 / (rrf_k + rank) to its score. If the call fails, the query alone is searched for, and the base's order stands.
    `threads` is how many queries are asked about at a time. The prompt of the other method has no effect.
    """

    base: Base
    llm: Chat
    method: Literal["multi_query", "hyde"] = "multi_query"
    n: int = Field(default=3, ge=1, le=20)
    depth: int = Field(default=100, ge=1)
    rrf_k: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    system: str = SYSTEM
    multi_query_prompt: str = MULTI_QUERY_PROMPT
    hyde_prompt: str = HYDE_PROMPT
    threads: int = Field(default=4, ge=1, repr=False)

    def __post_init__(self) -> None:
        check_prompt("multi_query_prompt", self.multi_query_prompt, "query")
        check_prompt("hyde_prompt", self.hyde_prompt, "query")

    def index(self, corpus: Corpus, store: Store) -> ExpandedSearcher:
        """Return a searcher; the base is indexed when it is first needed."""
        return ExpandedSearcher(self, CachedBase.of(self.base, corpus, store))

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search, which needs what the base finds for the queries as they are."""
        base = plan_rankings(self.base, corpus, queries, self.depth, store)
        return Work("search", build_rankings_key(self, corpus, queries, k), (base,))

    def expand(self, query: str) -> tuple[list[str], Call | None]:
        """Return what else to search for, and the call that says so; there is none about a blank query."""
        if not query.strip():
            return [], None
        prompt = self.multi_query_prompt if self.method == "multi_query" else self.hyde_prompt
        asked = ask_llm(self.llm, fill_prompt(prompt, query=query, n=self.n), self.system, "expand")
        parse = variants if self.method == "multi_query" else passages
        return parse(asked.text, query, self.n), asked


@dataclass(frozen=True, eq=False)
class ExpandedSearcher:
    """A search for queries and what they are expanded to. A query takes as long as all its searches and the call."""

    settings: Expanded
    stage: CachedBase

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query by the sum of their reciprocal ranks."""
        how = self.settings
        found = [self.stage.search(queries, how.depth, store)]
        expanded = list(report_progress(map_threads(how.expand, queries, how.threads), "expanded", len(queries)))
        # The first variant of every query, then the second: so each search is a batch, whose first queries are timed.
        for place in range(max((len(texts) for texts, _ in expanded), default=0)):
            asked = [texts[place] if place < len(texts) else None for texts, _ in expanded]
            found.append(self.stage.search(asked, how.depth, store))
        found = align(found, len(self.stage.corpus))
        fused = self.stage.fuse(found, how.rrf_k, k)
        return complete_rankings(fused, found, [_account(texts, asked) for texts, asked in expanded])


def _account(texts: Sequence[str], asked: Call | None) -> QueryLog:
    return summarise_calls([asked], queries=texts, llm=asked.note) if asked else QueryLog()


def variants(reply: str, query: str, n: int) -> list[str]:
    """Return the first n queries in a reply, a line each, that are not the query or one another."""
    distinct = {line.casefold(): line for line in reversed(split_lines(reply))}
    distinct.pop(query.strip().casefold(), None)
    return list(reversed(distinct.values()))[:n]


def passages(reply: str, query: str, n: int) -> list[str]:
    """Return the first n passages in a reply, with empty lines between; a single one is all of it."""
    parts = re.split(r"\n\s*\n", reply) if n > 1 else [reply]
    texts = (strip_label(part) for part in parts)
    return [text for text in texts if re.search(r"\w", text) and not text.endswith(":")][:n]
