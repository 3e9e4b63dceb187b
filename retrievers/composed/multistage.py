"""Helpers for retrievers that search with another one, their base: cached searches, fusion by rank, details."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator

from retrievers.base import NOTHING, Corpus, Rankings, Retriever, RetrieverError, create_empty_rankings, rank
from retrievers.composed.candidates import lay_out
from retrievers.notes import QueryLog
from retrievers.search import search_part
from retrievers.store import MemoryStore, NoStore, Store
from retrievers.unknown import tie_order

NO_TEXT = "(no text: the corpus lacks this document)"
"""The text that a language model sees for a hit that the corpus lacks."""


def _check_retriever(retriever: Retriever) -> Retriever:
    if isinstance(retriever, (str, list, tuple)):  # they have a method `index`, which makes them look like retrievers
        raise RetrieverError(f"{retriever!r} is not a retriever")
    return retriever


Base = Annotated[Retriever, AfterValidator(_check_retriever)]
"""The retriever that another one searches with, as a field of its settings."""


@dataclass(frozen=True, eq=False)
class CachedBase:
    """A base retriever, its corpus, and the store that keeps its searcher."""

    retriever: Retriever
    corpus: Corpus
    store: Store

    @classmethod
    def of(cls, retriever: Retriever, corpus: Corpus, store: Store) -> CachedBase:
        """Return a base that is indexed by its first search."""
        return cls(retriever, corpus, MemoryStore() if isinstance(store, NoStore) else store)

    def search(self, queries: Sequence[str | None], depth: int, store: Store) -> Rankings:
        """Return the rankings of n queries, of at most `depth` hits each, and their times; None is not searched for.

        Without a store for rankings, the searcher is still reused.
        """
        rows = [position for position, query in enumerate(queries) if query is not None]
        texts = [query for query in queries if query is not None]
        rankings = search_part(self.retriever, self.corpus, texts, depth, store, self.store)
        padded, seconds = create_empty_rankings(len(queries), rankings.depth), np.zeros(len(queries), dtype=np.float32)
        padded.fill(rows, rankings)
        seconds[rows] = np.nan if rankings.seconds is None else rankings.seconds
        return replace(
            rankings,
            documents=padded.documents,
            scores=padded.scores,
            seconds=seconds,
            errors={rows[row]: message for row, message in (rankings.errors or {}).items()},
            notes={rows[row]: note for row, note in rankings.notes.items()},
        )

    def contents(self, documents: Sequence[int]) -> list[str]:
        """Return title and text of documents by their positions, `NO_TEXT` for a document that the corpus lacks."""
        corpus, n = self.corpus, len(self.corpus)
        titles = [corpus.titles[place] if corpus.titles and place < n else "" for place in documents]
        texts = [corpus.texts[place] if place < n else NO_TEXT for place in documents]
        return [f"{title} {text}" if title else text for title, text in zip(titles, texts, strict=True)]

    def fuse(self, searches: Sequence[Rankings], rrf_k: float, k: int) -> Rankings:
        """Fuse aligned rankings by reciprocal rank and return the k best documents of each query."""
        order = tie_order(self.corpus, searches[0].unknown_ids)
        return fuse_by_rank([rankings.documents for rankings in searches], rrf_k, order, k)


def list_hits(documents: NDArray[np.int32]) -> list[list[int]]:
    """Return the positions of each query's hits, best first, from an array of shape (n, k)."""
    return [row[row != NOTHING].tolist() for row in documents]


def fuse_by_rank(searches: Sequence[NDArray[np.int32]], rrf_k: float, tie_order: NDArray[np.int32], k: int) -> Rankings:
    """Fuse rankings, each of shape (n, depth), by the sum of 1 / (rrf_k + rank); return the k best per query.

    Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009).
    """
    candidates = lay_out(searches, tie_order)
    values = [np.zeros((len(documents), documents.shape[1] + 1)) for documents in searches]  # last: absent
    for worth in values:
        worth[:, :-1] = 1 / (rrf_k + np.arange(1, worth.shape[1]))
    return rank(candidates.documents, candidates.reduce(values).astype(np.float32), tie_order, k)


def complete_rankings(ranked: Rankings, searches: Sequence[Rankings], logs: Sequence[QueryLog]) -> Rankings:
    """Return rankings with the times, errors, diagnostics and notes of the searches and logs that they are made of.

    A query has no hits if one of its searches failed. The searches are aligned (`retrievers.unknown.align`).
    """
    errors = {query: message for search in reversed(searches) for query, message in (search.errors or {}).items()}
    ranked.documents[list(errors)], ranked.scores[list(errors)] = NOTHING, -np.inf
    own = np.array([log.seconds for log in logs], dtype=np.float32)
    seconds = [own, *(search.seconds for search in searches if search.seconds is not None)]
    figures = {f"base.{name}": value for name, value in searches[0].diagnostics.items()}
    notes = {}
    for query, log in enumerate(logs):
        for name, value in log.figures.items():
            figures[name] = figures.get(name, 0.0) + value
        if note := log.note.with_base([search.notes[query] for search in searches if query in search.notes]):
            notes[query] = note
    return replace(
        ranked,
        seconds=np.sum(seconds, axis=0),
        errors=errors or None,
        diagnostics=figures,
        notes=notes,
        settled=all(search.settled for search in searches) and all(log.settled for log in logs),
        unknown_ids=searches[-1].unknown_ids,
        addresses=searches[0].addresses,
    )
