"""Query expansion: a language model writes variants of a query, or passages that would answer it, to search for too.

An expanded retriever searches with any other retriever, its base.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import Corpus, QueryText, Rankings, list_filters
from retrievers.capabilities import Capabilities, derive_capabilities
from retrievers.composed.multistage import Base, CachedBase, complete_rankings
from retrievers.filters import Filter
from retrievers.llm.chat import Chat
from retrievers.llm.model_calls import ModelCalls, count_bytes
from retrievers.llm.prompting import Call, ask_llm, check_prompt, fill_prompt, split_lines, strip_label, summarise_calls
from retrievers.notes import QueryLog
from retrievers.progress import report_progress
from retrievers.search import Work, build_rankings_key, plan_rankings
from retrievers.stages import Input, Stage
from retrievers.store import NoStore, Store
from retrievers.threads import map_threads
from retrievers.unknown import align

RESULTS_VERSION = "expanded 1"

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
    """Settings of query expansion: searches for what the language model writes, and fuses all rankings by rank.

    multi_query searches for `n` variants of the query; hyde searches for `n` passages that would answer it
    (hypothetical document embeddings, Gao et al. 2022; the paper averages vectors, here rankings are fused, because the
    base may have no vectors). The query itself is always searched for as well. Each search returns `depth` hits; a hit
    adds 1 / (rrf_k + rank) to the score of its document. If the call fails, only the query is searched for, and its
    hits keep the order of the base. `threads` is the number of queries expanded at a time. Only the prompt of the
    chosen method has an effect.
    """

    access: ClassVar[Access] = Access()

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

    @property
    def capabilities(self) -> Capabilities:
        """Return what the search can do: it filters if the base does."""
        return Capabilities(filters=derive_capabilities(self.base).filters, scans=False)

    def index(self, corpus: Corpus, store: Store) -> ExpandedSearcher:
        """Return a searcher; the base is indexed by its first search."""
        return ExpandedSearcher(self, CachedBase.of(self.base, corpus, store))

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the base's rankings for the original queries."""
        base = plan_rankings(self.base, corpus, queries, self.depth, store)
        return Work(build_rankings_key(self, corpus, queries, k), (base,))

    def describe_stage(self, queries: Sequence[str], k: int) -> Stage:
        """Return the expansion, which reads the base's rankings of the queries and those of the expansions."""
        return Stage("expansion", {"base": Input(self.base, self.depth)}, complete=False)

    def plan_calls(self, corpus: Corpus, queries: Sequence[str]) -> list[ModelCalls]:
        """Return one call for each query."""
        prompts = [fill_prompt(self.prompt, query=query, n=self.n) for query in queries]
        return [ModelCalls(self.llm, "expand", len(queries), sum(count_bytes(self.system, p) for p in prompts))]

    @property
    def prompt(self) -> str:
        """Return the prompt of the method."""
        return self.multi_query_prompt if self.method == "multi_query" else self.hyde_prompt

    def expand(self, query: str) -> tuple[list[str], Call | None]:
        """Return further texts to search for and the call that wrote them; no texts and no call for a blank query."""
        if not query.strip():
            return [], None
        call = ask_llm(self.llm, fill_prompt(self.prompt, query=query, n=self.n), self.system, "expand")
        parse = parse_variants if self.method == "multi_query" else parse_passages
        return parse(call.text, query, self.n), call


@dataclass(frozen=True, eq=False)
class ExpandedSearcher:
    """A search for queries and their expansions. The time of a query is that of all its searches and its call."""

    settings: Expanded
    base: CachedBase

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best documents of each query by the sum of their reciprocal ranks."""
        settings = self.settings
        searches = [self.base.search(queries, settings.depth, store)]
        expansions = map_threads(settings.expand, queries, settings.threads)
        expanded = list(report_progress(expansions, "expanded", len(queries)))
        # Search for the first text of every query, then the second: each search is a batch, and times only its first
        # queries.
        for place in range(max((len(texts) for texts, _ in expanded), default=0)):
            batch = [
                _with_filter(texts[place], own) if place < len(texts) else None
                for (texts, _), own in zip(expanded, list_filters(queries), strict=True)
            ]
            searches.append(self.base.search(batch, settings.depth, store))
        searches = align(searches, len(self.base.corpus))
        fused = self.base.fuse(searches, settings.rrf_k, k)
        return complete_rankings(fused, searches, [_summarise(texts, call) for texts, call in expanded])


def _with_filter(text: str, own: Filter | None) -> str:
    return text if own is None else QueryText(text, text, own=own)


def _summarise(texts: Sequence[str], call: Call | None) -> QueryLog:
    return summarise_calls([call], queries=texts, llm=call.note) if call else QueryLog()


def parse_variants(reply: str, query: str, n: int) -> list[str]:
    """Return the first n distinct queries in a reply, one per line, other than the query itself."""
    distinct = {line.casefold(): line for line in reversed(split_lines(reply))}
    distinct.pop(query.strip().casefold(), None)
    return list(reversed(distinct.values()))[:n]


def parse_passages(reply: str, query: str, n: int) -> list[str]:
    """Return the first n passages in a reply, separated by empty lines; for n = 1 the whole reply."""
    parts = re.split(r"\n\s*\n", reply) if n > 1 else [reply]
    texts = (strip_label(part) for part in parts)
    return [text for text in texts if re.search(r"\w", text) and not text.endswith(":")][:n]
