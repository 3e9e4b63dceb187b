"""A retriever that fails as it is told to, for tests of what a failure costs."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic.dataclasses import dataclass as settings

from retrievers.base import Corpus, Rankings, Searcher, create_empty_rankings
from retrievers.store import NoStore, Store


@settings(frozen=True)
class Broken:
    when: str = "index"

    def index(self, corpus: Corpus, store: Store) -> Searcher:
        if self.when == "index":
            raise RuntimeError("the index is broken")
        if self.when == "interrupt":
            raise KeyboardInterrupt
        return BrokenSearcher(self.when)


class BrokenSearcher:
    def __init__(self, when: str) -> None:
        self.when = when

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        if self.when == "search":
            raise RuntimeError("the search is broken")
        rankings = create_empty_rankings(len(queries), k)
        return Rankings(rankings.documents, rankings.scores, errors={0: "the first query is broken"})
