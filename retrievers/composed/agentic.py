"""Agentic search: a language model reads the hits of a query and decides whether to search again in other words.

An agentic retriever searches with any other retriever, its base.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.access import Access
from retrievers.base import NOTHING, Corpus, Rankings, create_empty_rankings, rank
from retrievers.capabilities import Capabilities
from retrievers.composed.multistage import Base, CachedBase, complete_rankings, list_hits
from retrievers.llm.chat import Chat
from retrievers.llm.model_calls import ModelCalls, count_bytes, count_passage_bytes
from retrievers.llm.prompting import (
    Call,
    ask_llm,
    check_prompt,
    fill_prompt,
    number_passages,
    split_lines,
    summarise_calls,
)
from retrievers.notes import QueryLog
from retrievers.progress import report_progress
from retrievers.search import Work, build_rankings_key, plan_rankings
from retrievers.stages import Input, Stage
from retrievers.store import NoStore, Store
from retrievers.threads import map_threads
from retrievers.unknown import align, renumber, resolve_id, tie_order

RESULTS_VERSION = "agentic 1"

ENOUGH = "ENOUGH"
"""The reply that ends the search for a query."""

SYSTEM = "You search a collection of documents until you have found what answers a question."

PROMPT = """\
These are the queries that were tried, and the beginning of the best that each of them found.

{searches}

Is the question below answered by what was found? If so, reply with the one word ENOUGH. If not, reply with one other
query that may find what is missing, and with nothing else.

Question: {query}"""

SEARCH, SEPARATOR, NO_HITS = "Query: {query}\n{results}", "\n\n", "(nothing was found)"
"""How a prompt shows a search, the space between two searches, and the results of a search without hits."""


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Agentic:
    """Settings of an agentic search. It ends when the language model replies ENOUGH.

    It also ends after `max_calls` calls of the model per query, each of which may lead to one more search, and when the
    model returns no query or one already tried. The model sees the first `max_words` words of the `shown` best hits of
    each search. Each search returns `depth` hits. `merge` combines them: rrf sums 1 / (rrf_k + rank) over all searches;
    last takes the last search with hits, and the scores of the base. If a call fails, the hits of the query itself are
    returned. `threads` is the number of queries processed at a time.

    Alternating search and a language model's judgment follows Yao et al. 2023 (ReAct) and Press et al. 2023.
    """

    access: ClassVar[Access] = Access()
    capabilities: ClassVar[Capabilities] = Capabilities(scans=False)

    base: Base
    llm: Chat
    max_calls: int = Field(default=3, ge=1, le=100)
    merge: Literal["rrf", "last"] = "rrf"
    shown: int = Field(default=5, ge=1)
    max_words: int = Field(default=60, ge=1)
    depth: int = Field(default=100, ge=1)
    rrf_k: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    system: str = SYSTEM
    prompt: str = PROMPT
    threads: int = Field(default=4, ge=1, repr=False)

    def __post_init__(self) -> None:
        check_prompt("prompt", self.prompt, "query", "searches")

    def index(self, corpus: Corpus, store: Store) -> AgenticSearcher:
        """Return a searcher; the base is indexed by its first search."""
        return AgenticSearcher(self, CachedBase.of(self.base, corpus, store))

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search as work, which needs the base's rankings for the original queries."""
        base = plan_rankings(self.base, corpus, queries, self.depth, store)
        return Work(build_rankings_key(self, corpus, queries, k), (base,))

    def describe_stage(self, queries: Sequence[str], k: int) -> Stage:
        """Return the agent, which reads the base's rankings of the queries and those of its own searches."""
        return Stage("agent", {"base": Input(self.base, self.depth)}, complete=False)

    def plan_calls(self, corpus: Corpus, queries: Sequence[str]) -> list[ModelCalls]:
        """Return `max_calls` calls for each query; each shows all searches so far, all but the first from replies."""
        results = max(count_passage_bytes(corpus, self.shown, self.max_words), count_bytes(NO_HITS))
        search = count_bytes(fill_prompt(SEARCH, query="", results=""), SEPARATOR) + results
        shown = self.max_calls * (self.max_calls + 1) // 2  # the first call shows one search, the second two
        times = self.prompt.count("{searches}")
        total = 0
        for query in queries:
            question = count_bytes(self.system, fill_prompt(self.prompt, query=query, searches=""))
            total += self.max_calls * (question + times * count_bytes(query)) + times * shown * search
        replies = len(queries) * times * (shown - self.max_calls)
        return [ModelCalls(self.llm, "agent", len(queries) * self.max_calls, total, replies)]


@dataclass(eq=False)
class _Trail:
    """The steps of one query so far: the queries tried, the best hits of each, and the call of the model after each."""

    query: str
    tried: list[str] = field(default_factory=list)
    hits: list[list[int]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    ended: str = ""

    def add_search(self, query: str, documents: list[int]) -> None:
        self.tried.append(query)
        self.hits.append(documents)

    def add_call(self, call: Call) -> str | None:
        """Record a reply of the model; return the query to search next, None at the end."""
        self.calls.append(call)
        wanted = next(iter(split_lines(call.text)), "")
        if call.failed:
            self.ended = "failed"
        elif wanted.startswith(ENOUGH) or wanted.strip(".! ").upper() == ENOUGH:
            self.ended = "enough"
        elif not wanted:
            self.ended = "no query"
        elif wanted.casefold() in {query.strip().casefold() for query in self.tried}:
            self.ended = "repeated"
        return None if self.ended else wanted

    def summarise(self, name: Callable[[int], str]) -> QueryLog:
        """Return the log of the query, with hits as the ids that `name` returns."""
        steps: list[dict[str, object]] = [
            {"query": query, "found": [name(document) for document in documents]}
            for query, documents in zip(self.tried, self.hits, strict=True)
        ]
        for step, call in zip(steps, self.calls, strict=False):  # there may be no call after the last search
            step |= call.note
        return summarise_calls(self.calls, steps=steps, ended=self.ended)


@dataclass(frozen=True, eq=False)
class AgenticSearcher:
    """Searches in steps, each for all queries not yet ended. The time of a query is that of its searches and calls."""

    settings: Agentic
    base: CachedBase

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best hits over all steps of each query; a blank query has one step."""
        trails = [_Trail(query, ended="" if query.strip() else "blank") for query in queries]
        searches = [self._step(trails, list(queries), store, ())]
        for _ in range(self.settings.max_calls):
            going = [trail for trail in trails if not trail.ended]
            calls = map_threads(self._ask, going, self.settings.threads)
            calls = report_progress(calls, "asked about", len(going))
            wanted = {trail: trail.add_call(call) for trail, call in zip(going, calls, strict=True)}
            if not any(wanted.values()):
                break
            texts = [wanted.get(trail) for trail in trails]
            searches.append(self._step(trails, texts, store, searches[-1].unknown_ids))
        for trail in trails:
            trail.ended = trail.ended or "max_calls"
        failed = [row for row, trail in enumerate(trails) if trail.ended == "failed"]
        for later in searches[1:]:
            later.documents[failed] = NOTHING
        corpus, unknown = self.base.corpus, searches[-1].unknown_ids
        logs = [trail.summarise(lambda position: resolve_id(corpus, unknown, position)) for trail in trails]
        return complete_rankings(self._merge(searches, k), searches, logs)

    def _step(
        self, trails: Sequence[_Trail], queries: Sequence[str | None], store: Store, unknown_ids: Sequence[str]
    ) -> Rankings:
        """Search for the next query of each trail that has one, and record the best hits.

        `unknown_ids` are those of the earlier searches, whose positions must not change.
        """
        rankings = self.base.search(queries, self.settings.depth, store)
        rankings = renumber(rankings, unknown_ids, len(self.base.corpus))
        best = list_hits(rankings.documents[:, : self.settings.shown])
        for row, (trail, query) in enumerate(zip(trails, queries, strict=True)):
            if query is not None:
                trail.add_search(query, best[row])
        for row in rankings.errors or {}:
            trails[row].ended = "search failed"
        return rankings

    def _ask(self, trail: _Trail) -> Call:
        settings, searches = self.settings, []
        for query, documents in zip(trail.tried, trail.hits, strict=True):
            best = number_passages(self.base.contents(documents), settings.max_words)
            searches.append(fill_prompt(SEARCH, query=query, results=best or NO_HITS))
        question = fill_prompt(settings.prompt, query=trail.query, searches=SEPARATOR.join(searches))
        return ask_llm(settings.llm, question, settings.system, "agent")

    def _merge(self, searches: Sequence[Rankings], k: int) -> Rankings:
        if self.settings.merge == "rrf":
            return self.base.fuse(align(searches, len(self.base.corpus)), self.settings.rrf_k, k)
        last = create_empty_rankings(len(searches[0]), max(search.depth for search in searches))
        for search in searches:
            rows = np.flatnonzero((search.documents != NOTHING).any(axis=1))
            last.documents[rows], last.scores[rows] = NOTHING, -np.inf
            last.documents[rows, : search.depth] = search.documents[rows]
            last.scores[rows, : search.depth] = search.scores[rows]
        return rank(last.documents, last.scores, tie_order(self.base.corpus, searches[-1].unknown_ids), k)
