"""Hits that the corpus lacks keep their rank through every retriever that builds on another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import NOTHING, Corpus, Rankings, Retriever, create_empty_rankings
from retrievers.composed.agentic import Agentic
from retrievers.composed.expanded import Expanded
from retrievers.composed.fusion import Hybrid
from retrievers.composed.multistage import NO_TEXT
from retrievers.composed.reranked import Reranked
from retrievers.search import search_cached
from retrievers.store import MemoryStore, NoStore, Store
from retrievers.unknown import align, resolve_id, tie_order
from tests.retrievers.scripted import Echo, Overlap, Said

CORPUS = Corpus(["b", "d", "f"], ["boat", "deer boat", "fox boat house"])


@dataclass(frozen=True)
class Fixed:
    """A retriever that returns the same ids, best first, for each query it knows; others find nothing."""

    hits: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def index(self, corpus: Corpus, store: Store) -> FixedSearcher:
        return FixedSearcher(self, corpus)


@dataclass(frozen=True)
class FixedSearcher:
    settings: Fixed
    corpus: Corpus

    def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
        rankings, ids = create_empty_rankings(len(queries), k), list(self.corpus.ids)
        for row, query in enumerate(queries):
            for place, name in enumerate(self.settings.hits.get(query, [])[:k]):
                if name not in ids:
                    ids.append(name)
                rankings.documents[row, place], rankings.scores[row, place] = ids.index(name), 10 - place
        return Rankings(rankings.documents, rankings.scores, unknown_ids=tuple(ids[len(self.corpus) :]))


def ids_of(rankings: Rankings) -> list[list[str]]:
    rows = [row[row != NOTHING].tolist() for row in rankings.documents]
    return [[resolve_id(CORPUS, rankings.unknown_ids, position) for position in row] for row in rows]


def search(retriever: Retriever, *queries: str, k: int = 5) -> Rankings:
    rankings = search_cached(retriever, CORPUS, queries, k, MemoryStore())
    assert (rankings.scores[:, 1:] <= rankings.scores[:, :-1]).all()
    return rankings


def test_rankings_are_cached_with_their_unknown_hits() -> None:
    store, retriever = MemoryStore(), Fixed({"q": ["x", "b", "y"]})
    first, again = (search_cached(retriever, CORPUS, ["q"], 5, store) for _ in range(2))
    assert ids_of(first) == ids_of(again) == [["x", "b", "y"]]


@given(
    st.lists(st.text("abc", max_size=3), max_size=8, unique=True),
    st.lists(st.text("abc", max_size=3), max_size=5, unique=True),
)
def test_unknown_hits_take_their_place_among_equal_scores_by_id(known: list[str], others: list[str]) -> None:
    unknown = [name for name in others if name not in known]
    corpus, whole = Corpus(known, known), Corpus([*known, *unknown], [""] * len([*known, *unknown]))
    assert tie_order(corpus, unknown).tolist() == whole.tie_order.tolist()


def test_aligned_rankings_name_the_same_document_by_the_same_position() -> None:
    one, two = (search(Fixed({"q": hits}), "q") for hits in (["x", "b", "y"], ["z", "y", "f"]))
    aligned = align([one, two], len(CORPUS))
    assert [ids_of(each) for each in aligned] == [[["x", "b", "y"]], [["z", "y", "f"]]]
    assert aligned[0].unknown_ids == aligned[1].unknown_ids == ("x", "y", "z")
    assert aligned[0].documents[0, 2] == aligned[1].documents[0, 1]


@pytest.mark.parametrize("method", ["weighted", "rrf"])
def test_a_hybrid_fuses_unknown_hits_like_known_ones(method: str) -> None:
    parts = {"one": Fixed({"q": ["b", "x", "y"]}), "two": Fixed({"q": ["y", "x", "f"]})}
    whole = Corpus(["b", "d", "f", "x", "y"], [""] * 5)
    hybrid = Hybrid(parts, method=method)  # type: ignore[arg-type]  # a parameter of the test
    with_all = search_cached(hybrid, whole, ["q"], 5, MemoryStore())
    rankings = search(hybrid, "q")
    assert ids_of(rankings) == [[whole.ids[position] for position in with_all.documents[0] if position != NOTHING]]
    assert rankings.scores.tolist() == with_all.scores.tolist()


def test_a_reranker_leaves_hits_without_text_at_their_rank(caplog: pytest.LogCaptureFixture) -> None:
    base = Fixed({"deer boat": ["x", "b", "y", "d"], "house": ["f", "z"], "sea": ["u", "v"]})
    rankings = search(Reranked(base, Overlap(), depth=4), "deer boat", "house", "sea")
    assert ids_of(rankings) == [["x", "d", "y", "b"], ["f", "z"], ["u", "v"]]
    assert rankings.diagnostics["hits_without_text"] == 5
    assert "5 hits have no text in the corpus" in caplog.text
    assert ids_of(search(Reranked(base, Overlap(), depth=4), "deer boat", k=2)) == [["x", "d"]]


def test_an_expansion_fuses_unknown_hits_of_several_searches() -> None:
    base = Fixed({"q": ["b", "x"], "q q": ["z", "x"]})
    rankings = search(Expanded(base, Echo(), n=1, multi_query_prompt="{query}"), "q")
    assert ids_of(rankings) == [["x", "z", "b"]]


@pytest.mark.parametrize("merge", ["rrf", "last"])
def test_an_agent_sees_that_a_hit_has_no_text_and_notes_its_id(merge: str) -> None:
    base, chat = Fixed({"q": ["x", "b"], "other": ["y", "x"]}), Said({"q": ["other", "ENOUGH"]})
    rankings = search(Agentic(base, chat, merge=merge), "q")  # type: ignore[arg-type]  # a parameter of the test
    assert ids_of(rankings) == [["x", "y", "b"] if merge == "rrf" else ["y", "x"]]
    assert NO_TEXT in chat.log[0]
    assert '"found": ["x", "b"]' in rankings.notes[0].to_json()
    assert '"found": ["y", "x"]' in rankings.notes[0].to_json()
