"""What retrievers share that work on the rankings of another: a base that they search, and an account of what they did.

It knows nothing of what becomes of the rankings in between.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator

from retrievers.base import NOTHING, Corpus, Rankings, Retriever, RetrieverError, create_empty_rankings, rank
from retrievers.fusion import lay_out
from retrievers.search import open_searcher, search_cached
from retrievers.store import MemoryStore, NoStore, Store
from retrievers.unknown import tie_order

T = TypeVar("T")

NO_TEXT = "(no text: the corpus lacks this document)"
"""What a language model reads of a hit that the corpus lacks."""

TOLD_EVERY = 5.0
"""The least seconds between two lines about long work."""

logger = logging.getLogger("retrievers")


def _check_retriever(retriever: Retriever) -> Retriever:
    if isinstance(retriever, (str, list, tuple)):  # they have a method `index`, and so pass for retrievers
        raise RetrieverError(f"{retriever!r} is not a retriever")
    return retriever


Base = Annotated[Retriever, AfterValidator(_check_retriever)]
"""The retriever that another works on, as a field of its settings."""


@dataclass(frozen=True, eq=False)
class CachedBase:
    """A retriever over a corpus, searched by another, in whose index-time store its searcher lives."""

    retriever: Retriever
    corpus: Corpus
    store: Store

    @classmethod
    def of(cls, retriever: Retriever, corpus: Corpus, store: Store) -> CachedBase:
        """Return the stage of a retriever that is indexed when it is first searched."""
        return cls(retriever, corpus, MemoryStore() if isinstance(store, NoStore) else store)

    def search(self, queries: Sequence[str | None], depth: int, store: Store) -> Rankings:
        """Return what queries find (n x depth) and the seconds of each; None is not searched for.

        Where rankings are not to be kept, the searcher still is.
        """
        asked = [position for position, query in enumerate(queries) if query is not None]
        texts = [query for query in queries if query is not None]
        if isinstance(store, NoStore):
            found = open_searcher(self.retriever, self.corpus, self.store).search(texts, depth)
        else:
            found = search_cached(self.retriever, self.corpus, texts, depth, store)
        rows, seconds = create_empty_rankings(len(queries), depth), np.zeros(len(queries), dtype=np.float32)
        rows.documents[asked], rows.scores[asked] = found.documents, found.scores
        seconds[asked] = np.nan if found.seconds is None else found.seconds
        return replace(
            found,
            documents=rows.documents,
            scores=rows.scores,
            seconds=seconds,
            errors={asked[row]: message for row, message in (found.errors or {}).items()},
            notes={asked[row]: note for row, note in found.notes.items()},
        )

    def contents(self, documents: Sequence[int]) -> list[str]:
        """Return the titles and texts of documents by their positions; `NO_TEXT` for one that the corpus lacks."""
        corpus, n = self.corpus, len(self.corpus)
        titles = [corpus.titles[place] if corpus.titles and place < n else "" for place in documents]
        texts = [corpus.texts[place] if place < n else NO_TEXT for place in documents]
        return [f"{title} {text}" if title else text for title, text in zip(titles, texts, strict=True)]

    def fuse(self, searches: Sequence[Rankings], rrf_k: float, k: int) -> Rankings:
        """Fuse aligned searches by reciprocal ranks, and keep the best k of each query."""
        order = tie_order(self.corpus, searches[0].unknown_ids)
        return fuse_by_rank([each.documents for each in searches], rrf_k, order, k)


def list_hits(documents: NDArray[np.int32]) -> list[list[int]]:
    """Return the positions of the documents that each query found (n x k), best first."""
    return [row[row != NOTHING].tolist() for row in documents]


def fuse_by_rank(found: Sequence[NDArray[np.int32]], rrf_k: float, tie_order: NDArray[np.int32], k: int) -> Rankings:
    """Fuse what several searches found (each n x depth): the sum of 1 / (rrf_k + rank).

    Reciprocal rank fusion of Cormack, Clarke and Buettcher 2009.
    """
    candidates = lay_out(found, tie_order)
    values = [np.zeros((len(documents), documents.shape[1] + 1)) for documents in found]  # the last is for absence
    for each in values:
        each[:, :-1] = 1 / (rrf_k + np.arange(1, each.shape[1]))
    return rank(candidates.documents, candidates.total(values).astype(np.float32), tie_order, k)


@dataclass(frozen=True)
class QueryLog:
    """What was done for a query besides searching: the seconds that it took, a note (plain values), figures to add up.

    It is not `settled` where something failed that may go well another time.
    """

    seconds: float = 0.0
    note: Mapping[str, object] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    settled: bool = True


def complete_rankings(ranked: Rankings, stages: Sequence[Rankings], accounts: Sequence[QueryLog]) -> Rankings:
    """Return rankings with what is to be said of the searches that they are made of, and of each query's account.

    A query for which one of the searches failed finds nothing. Positions mean the same documents in all searches.
    """
    errors = {query: message for stage in reversed(stages) for query, message in (stage.errors or {}).items()}
    ranked.documents[list(errors)], ranked.scores[list(errors)] = NOTHING, -np.inf
    own = np.array([account.seconds for account in accounts], dtype=np.float32)
    seconds = [own, *(stage.seconds for stage in stages if stage.seconds is not None)]
    figures = {f"base.{name}": value for name, value in stages[0].diagnostics.items()}
    notes = {}
    for query, account in enumerate(accounts):
        for name, value in account.figures.items():
            figures[name] = figures.get(name, 0.0) + value
        base = [json.loads(stage.notes[query]) for stage in stages if query in stage.notes]
        if note := {**account.note, **({"base": base} if base else {})}:
            notes[query] = json.dumps(note)
    return replace(
        ranked,
        seconds=np.sum(seconds, axis=0),
        errors=errors or None,
        diagnostics=figures,
        notes=notes,
        settled=all(stage.settled for stage in stages) and all(account.settled for account in accounts),
        unknown_ids=stages[-1].unknown_ids,
        addresses=stages[0].addresses,
    )


def report_progress(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """Yield items, and say every few seconds, on the logger "retrievers", how many of them there were."""
    last = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        if done < total and time.monotonic() - last >= TOLD_EVERY:
            last = time.monotonic()
            logger.info("%s %s of %s queries", what, f"{done:,}", f"{total:,}")
