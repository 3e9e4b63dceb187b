"""A search from beginning to end: made once, timed, and kept unless it may be otherwise next time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from retrievers.base import Corpus, Rankings, create_empty_rankings
from retrievers.capabilities import Capabilities
from retrievers.composed.fusion import Hybrid
from retrievers.lexical.bm25 import BM25
from retrievers.notes import QueryNote
from retrievers.search import search_cached
from retrievers.store import MemoryStore, NoStore, Store


def test_rankings_are_computed_once_and_include_query_times(harbour: Corpus) -> None:
    store = MemoryStore()
    first = search_cached(BM25(), harbour, ["lighthouse", "ferries"], 3, store)
    again = search_cached(BM25(), harbour, ["lighthouse", "ferries"], 3, store)
    assert again.documents is first.documents
    assert first.seconds is not None
    assert (first.seconds > 0).all()
    assert (
        search_cached(BM25(), harbour, ["lighthouse"], 3, NoStore()).documents.tolist() == first.documents[:1].tolist()
    )


def test_a_brief_query_that_took_long_is_timed_again(harbour: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    now, calls = 0.0, Counter[str]()
    takes = {"warm": [9.0, 0.001], "disturbed": [0.03, 0.002], "long": [0.01, 0.02], "hard": [0.2]}

    class Scripted:
        def search(self, queries: Sequence[str], k: int, store: Store | None = None) -> Rankings:
            nonlocal now
            if len(queries) == 1:
                now += takes.get(queries[0], [0.001])[calls[queries[0]]]
                calls[queries[0]] += queries[0] in takes
            return create_empty_rankings(len(queries), k)

    @dataclass(frozen=True)
    class Retriever:
        def index(self, corpus: Corpus, store: Store) -> Scripted:
            return Scripted()

    monkeypatch.setattr("retrievers.search.time.perf_counter", lambda: now)
    queries = ["warm", "disturbed", "long", "hard", "a", "b", "c"]
    seconds = search_cached(Retriever(), harbour, queries, 2, NoStore()).seconds
    assert seconds is not None
    assert seconds.tolist() == pytest.approx([0.001, 0.002, 0.01, 0.2, 0.001, 0.001, 0.001])


CACHED, LIVE = Capabilities(), Capabilities(live=True)


@dataclass(frozen=True)
class Noting:
    """Finds nothing, counts how often it is asked, and says how it went."""

    asked: list[int] = field(default_factory=list, repr=False)
    settled: bool = True
    capabilities: Capabilities = CACHED

    def index(self, corpus: Corpus, store: Store) -> Noting:
        return self

    def search(self, queries: Sequence[str], k: int, store: Store | None = None) -> Rankings:
        self.asked.append(len(queries))
        seconds = np.full(len(queries), 0.1, dtype=np.float32)
        return replace(
            create_empty_rankings(len(queries), k),
            seconds=seconds,
            notes={1: QueryNote({"steps": 2})},
            settled=self.settled,
        )


def test_notes_are_cached_with_the_rankings(harbour: Corpus) -> None:
    retriever, store = Noting(), MemoryStore()
    for _ in range(2):
        assert search_cached(retriever, harbour, ["a", "b"], 2, store).notes == {1: QueryNote({"steps": 2})}
    assert retriever.asked == [2]


@pytest.mark.parametrize("retriever", [Noting(settled=False), Noting(capabilities=LIVE)])
def test_unsettled_and_live_rankings_are_not_cached(harbour: Corpus, retriever: Noting) -> None:
    store = MemoryStore()
    for asked in (retriever, retriever, Hybrid({"one": retriever, "other": BM25()})):
        found = search_cached(asked, harbour, ["a", "b"], 2, store)
        assert found.settled == retriever.settled
    assert found.notes == {1: QueryNote({"one": {"steps": 2}})}
    assert retriever.asked == [2, 2, 2]
