"""Search by an agent: a language model looks at what came back, asks in other words, and looks again.

An agentic retriever is a retriever over any other, the base. It knows no provider: a `Chat` answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from retrievers.base import NOTHING, Corpus, Rankings, rank
from retrievers.chat import Chat
from retrievers.multistage import Base, CachedBase, QueryLog, complete_rankings, list_hits, report_progress
from retrievers.prompting import Call, ask_llm, check_prompt, fill_prompt, number_passages, split_lines, summarise_calls
from retrievers.search import Work, build_rankings_key, plan_rankings
from retrievers.store import NoStore, Store
from retrievers.threads import map_threads
from retrievers.unknown import align, renumber, resolve_id, tie_order

ENOUGH = "ENOUGH"
"""The reply that ends a search."""

SYSTEM = "You search a collection of documents until you have found what answers a question."

PROMPT = """\
These are the queries that were tried, and the beginning of the best that each of them found.

{searches}

Is the question below answered by what was found? If so, reply with the one word ENOUGH. If not, reply with one other
query that may find what is missing, and with nothing else.

Question: {query}"""


@settings(frozen=True, config={"extra": "forbid", "arbitrary_types_allowed": True})
class Agentic:
    """Settings of a search by an agent, which ends when the language model says that there is enough.

    It ends as well after `max_calls` of the model for a query, each of which may be followed by one more search, and
    when the model names no query or one that was tried. The model sees the `shown` best of each search, `max_words` of
    each. What the searches find, `depth` documents each, is merged: rrf adds up 1 / (rrf_k + rank) over them all; last
    takes what the last search found that found anything, with the scores of the base. If a call fails, what the query
    itself found stands. `threads` is how many queries are asked about at a time.

    Interleaving search and a language model's judgment follows Yao et al. 2023 (ReAct) and Press et al. 2023.
    """

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
        """Return a searcher; the base is indexed when it is first needed."""
        return AgenticSearcher(self, CachedBase.of(self.base, corpus, store))

    def plan(self, corpus: Corpus, queries: Sequence[str], k: int, store: Store) -> Work:
        """Return the search, which needs what the base finds for the queries as they are."""
        base = plan_rankings(self.base, corpus, queries, self.depth, store)
        return Work("search", build_rankings_key(self, corpus, queries, k), (base,))


@dataclass(eq=False)
class _Trail:
    """The steps of one query so far: what was searched for, what the best of it are, and the calls after each."""

    query: str
    tried: list[str] = field(default_factory=list)
    found: list[list[int]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    ended: str = ""

    def searched(self, query: str, documents: list[int]) -> None:
        self.tried.append(query)
        self.found.append(documents)

    def answered(self, asked: Call) -> str | None:
        """Take the model's answer; return the query that it wants, if it is not the end."""
        self.calls.append(asked)
        wanted = next(iter(split_lines(asked.text)), "")
        if asked.failed:
            self.ended = "failed"
        elif wanted.startswith(ENOUGH) or wanted.strip(".! ").upper() == ENOUGH:
            self.ended = "enough"
        elif not wanted:
            self.ended = "no query"
        elif wanted.casefold() in {query.strip().casefold() for query in self.tried}:
            self.ended = "repeated"
        return None if self.ended else wanted

    def summarise(self, name: Callable[[int], str]) -> QueryLog:
        """Return the steps as plain values, with the documents found by their ids, which `name` returns."""
        steps: list[dict[str, object]] = [
            {"query": query, "found": [name(document) for document in documents]}
            for query, documents in zip(self.tried, self.found, strict=True)
        ]
        for step, asked in zip(steps, self.calls, strict=False):  # after the last search none may have been asked
            step |= asked.note
        return summarise_calls(self.calls, steps=steps, ended=self.ended)


@dataclass(frozen=True, eq=False)
class AgenticSearcher:
    """A search in steps, each made for all queries that go on. A query takes as long as its searches and calls."""

    settings: Agentic
    stage: CachedBase

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        """Return the k best of what the steps of each query found; blank queries have none but the first."""
        how = self.settings
        trails = [_Trail(query, ended="" if query.strip() else "blank") for query in queries]
        found = [self._step(trails, list(queries), store, ())]
        for _ in range(how.max_calls):
            going = [trail for trail in trails if not trail.ended]
            asked = report_progress(map_threads(self._ask, going, how.threads), "asked about", len(going))
            wanted = {trail: trail.answered(each) for trail, each in zip(going, asked, strict=True)}
            if not any(wanted.values()):
                break
            texts = [wanted.get(trail) for trail in trails]
            found.append(self._step(trails, texts, store, found[-1].unknown_ids))
        for trail in trails:
            trail.ended = trail.ended or "max_calls"
        failed = [row for row, trail in enumerate(trails) if trail.ended == "failed"]
        for later in found[1:]:
            later.documents[failed] = NOTHING
        corpus, unknown = self.stage.corpus, found[-1].unknown_ids
        accounts = [trail.summarise(lambda position: resolve_id(corpus, unknown, position)) for trail in trails]
        return complete_rankings(self._merged(found, k), found, accounts)

    def _step(
        self, trails: Sequence[_Trail], queries: Sequence[str | None], store: Store, unknown_ids: Sequence[str]
    ) -> Rankings:
        """Search for what each trail wants, if anything, and note what the best are.

        `unknown_ids` are those of the searches before: positions go on meaning the same documents.
        """
        found = self.stage.search(queries, self.settings.depth, store)
        found = renumber(found, unknown_ids, len(self.stage.corpus))
        best = list_hits(found.documents[:, : self.settings.shown])
        for row, (trail, query) in enumerate(zip(trails, queries, strict=True)):
            if query is not None:
                trail.searched(query, best[row])
        for row in found.errors or {}:
            trails[row].ended = "search failed"
        return found

    def _ask(self, trail: _Trail) -> Call:
        how, searches = self.settings, []
        for query, documents in zip(trail.tried, trail.found, strict=True):
            best = number_passages(self.stage.contents(documents), how.max_words)
            searches.append(f"Query: {query}\n{best or '(nothing was found)'}")
        question = fill_prompt(how.prompt, query=trail.query, searches="\n\n".join(searches))
        return ask_llm(how.llm, question, how.system, "agent")

    def _merged(self, found: Sequence[Rankings], k: int) -> Rankings:
        first, *others = found
        if self.settings.merge == "rrf":
            return self.stage.fuse(align(found, len(self.stage.corpus)), self.settings.rrf_k, k)
        documents, scores = first.documents.copy(), first.scores.copy()
        for later in others:
            rows = np.flatnonzero(later.documents[:, 0] != NOTHING)
            documents[rows], scores[rows] = later.documents[rows], later.scores[rows]
        return rank(documents, scores, tie_order(self.stage.corpus, found[-1].unknown_ids), k)
