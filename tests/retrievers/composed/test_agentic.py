"""The search by an agent: what it asks, when it ends, what it keeps on record, and what stands when the model fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from retrievers.base import Corpus, Rankings
from retrievers.composed.agentic import Agentic
from retrievers.lexical.bm25 import BM25
from retrievers.search import plan_rankings, search_cached
from retrievers.store import MemoryStore, NoStore, Store
from tests.retrievers.scripted import FAILS, Said
from tests.retrievers.test_contract import ids_of, search

CONF = Path(__file__).parents[3] / "conf" / "retriever"


def steps_of(rankings: Rankings, query: int = 0) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = rankings.notes[query].values["steps"]
    return steps


def ended(rankings: Rankings) -> list[str]:
    return [rankings.notes[query].values["ended"] for query in sorted(rankings.notes)]


def agentic(replies: Mapping[str, Sequence[str]], **settings: Any) -> Agentic:
    return Agentic(BM25(), Said(replies), **settings)


def test_it_searches_looks_and_searches_again_until_there_is_enough(harbour: Corpus) -> None:
    llm = Said({"vessels": ["ships", "ferries islands", "ENOUGH"]})
    rankings = search(Agentic(BM25(), llm, shown=1), harbour, ["vessels"], 6)
    steps = steps_of(rankings)
    assert [step["query"] for step in steps] == ["vessels", "ships", "ferries islands"]
    assert [step["found"] for step in steps] == [[], ["d3"], ["d2"]]
    assert [step["reply"] for step in steps] == ["ships", "ferries islands", "ENOUGH"]
    assert [(step["tokens_in"], step["tokens_out"], step["cost"]) for step in steps] == [
        (10, 1, 0.5),
        (10, 2, 0.5),
        (10, 1, 0.5),
    ]
    assert all(step["seconds"] >= 0 for step in steps)
    assert ended(rankings) == ["enough"]
    assert rankings.settled
    assert rankings.diagnostics == {
        "llm_calls": 3,
        "llm_failures": 0,
        "llm_tokens_in": 30,
        "llm_tokens_out": 4,
        "llm_cost": 1.5,
    }


def test_the_model_sees_what_was_tried_and_the_beginning_of_the_best_of_it(harbour: Corpus) -> None:
    llm = Said({"lighthouse {searches}": ["ships", "ENOUGH"]})
    search(Agentic(BM25(), llm, shown=2, max_words=4), harbour, ["lighthouse {searches}"], 6)
    assert (
        "Query: lighthouse {searches}\n[1] Lighthouse café Coffee and\n[2] Lighthouse The old lighthouse\n\n"
        "Query: ships\n[1] A small museum shows\n[2] Lighthouse The old lighthouse\n\n"
    ) in llm.log[1]
    assert llm.log[1].endswith("Question: lighthouse {searches}")


def test_a_search_that_finds_nothing_is_shown_as_such(harbour: Corpus) -> None:
    llm = Said({"zeppelin": ["ENOUGH"]})
    assert ids_of(search(Agentic(BM25(), llm), harbour, ["zeppelin"], 3), harbour) == [[]]
    assert "Query: zeppelin\n(nothing was found)\n" in llm.log[0]


def test_rrf_adds_up_the_reciprocal_ranks_of_all_searches(harbour: Corpus) -> None:
    rankings = search(agentic({"ships": ["ferries", "ENOUGH"]}, rrf_k=10), harbour, ["ships"], 6)
    parts = ids_of(search(BM25(), harbour, ["ships", "ferries"], 6), harbour)
    expected: dict[str, float] = {}
    for part in parts:
        for place, name in enumerate(part, start=1):
            expected[name] = expected.get(name, 0.0) + 1 / (10 + place)
    found = ids_of(rankings, harbour)[0]
    assert found == sorted(expected, key=lambda name: (expected[name], name), reverse=True)
    np.testing.assert_allclose(rankings.scores[0, : len(found)], [expected[name] for name in found], rtol=1e-6)


def test_last_returns_the_hits_of_the_last_search_that_has_any(harbour: Corpus) -> None:
    how = agentic({"ships": ["market", "zeppelin", "ENOUGH"], "fish": ["ENOUGH"]}, merge="last")
    rankings = search(how, harbour, ["ships", "fish"], 4)
    expected = search(BM25(), harbour, ["market", "fish"], 4)
    assert rankings.documents.tolist() == expected.documents.tolist()
    assert rankings.scores.tolist() == expected.scores.tolist()


def test_a_query_has_no_more_calls_than_its_budget_and_one_more_search(harbour: Corpus) -> None:
    llm = Said({"ships": [f"ships {n}" for n in range(9)], "fish": ["ENOUGH"]})
    rankings = search(Agentic(BM25(), llm, max_calls=2), harbour, ["ships", "fish"], 3)
    assert [step["query"] for step in steps_of(rankings)] == ["ships", "ships 0", "ships 1"]
    assert "reply" not in steps_of(rankings)[-1]
    assert ended(rankings) == ["max_calls", "enough"]
    assert len(llm.log) == 2 + 1


@pytest.mark.parametrize(
    ("reply", "end"),
    [
        ("ENOUGH", "enough"),
        ("  **Enough.** ", "enough"),
        ("ENOUGH: the second passage says it", "enough"),
        ("", "no query"),
        ("I would try:\n", "no query"),
        ("Ships ", "repeated"),
        ('Query: "ships"', "repeated"),
    ],
)
def test_a_reply_that_wants_nothing_new_is_the_end(harbour: Corpus, reply: str, end: str) -> None:
    rankings = search(agentic({"ships": [reply]}), harbour, ["ships"], 3)
    assert ended(rankings) == [end]
    assert ids_of(rankings, harbour) == ids_of(search(BM25(), harbour, ["ships"], 3), harbour)


@pytest.mark.parametrize(
    "reply", ['"fish market"', "1. fish market\n2. bread", "New query: fish market", "This may help:\n\n- fish market"]
)
def test_a_query_is_extracted_from_a_reply(harbour: Corpus, reply: str) -> None:
    rankings = search(agentic({"ships": [reply, "ENOUGH"]}), harbour, ["ships"], 3)
    assert steps_of(rankings)[1]["query"] == "fish market"


@pytest.mark.parametrize("merge", ["rrf", "last"])
@pytest.mark.parametrize("replies", [[FAILS], ["market", FAILS], ["market", "fish", FAILS]])
def test_when_the_model_fails_the_base_ranking_stands(harbour: Corpus, replies: list[str], merge: str) -> None:
    how = agentic({"ships": replies, "fish": ["ENOUGH"]}, merge=merge)
    rankings = search(how, harbour, ["ships", "fish"], 4)
    assert ids_of(rankings, harbour) == ids_of(search(BM25(), harbour, ["ships", "fish"], 4), harbour)
    assert steps_of(rankings)[len(replies) - 1]["error"] == "the model is out of reach"
    assert ended(rankings) == ["failed", "enough"]
    assert rankings.errors is None
    assert not rankings.settled
    assert rankings.diagnostics["llm_failures"] == 1


def test_only_failed_requests_are_sent_again(harbour: Corpus) -> None:
    store, failing = MemoryStore(), Said({"ships": [FAILS]})
    well = Said({"ships": ["ENOUGH"]})
    for llm, calls in ((failing, 2), (well, 1)):
        twice = [search_cached(Agentic(BM25(), llm), harbour, ["ships"], 3, store) for _ in range(2)]
        assert len(llm.log) == calls
        assert twice[0].notes.keys() == twice[1].notes.keys() == {0}


def test_a_blank_query_sends_no_request(harbour: Corpus) -> None:
    rankings = search(agentic({}), harbour, ["", " \n"], 3)
    assert ended(rankings) == ["blank", "blank"]
    assert rankings.diagnostics["llm_calls"] == 0


def test_the_number_of_threads_does_not_change_the_rankings(harbour: Corpus) -> None:
    queries = ["ships", "fish", "market", "ferries", "lighthouse"]
    replies = {query: [f"{other} harbour", "ENOUGH"] for query, other in zip(queries, reversed(queries), strict=True)}
    one, four = (search(agentic(replies, threads=threads), harbour, queries, 4) for threads in (1, 4))
    assert one.documents.tobytes() == four.documents.tobytes()
    assert one.scores.tobytes() == four.scores.tobytes()
    assert [step["reply"] for step in steps_of(four, 3)] == ["fish harbour", "ENOUGH"]


@dataclass(frozen=True)
class Timed:
    """BM25 that takes half a second a query, as it says, and fails on "broken"."""

    def index(self, corpus: Corpus, store: Store) -> Timed.Searcher:
        return Timed.Searcher(corpus)

    @dataclass(frozen=True)
    class Searcher:
        corpus: Corpus

        def search(self, queries: Sequence[str], k: int, store: Store = NoStore()) -> Rankings:  # noqa: B008 (immutable)
            found = search(BM25(), self.corpus, queries, k)
            errors = {row: "gone" for row, query in enumerate(queries) if query == "broken"}
            seconds = np.full(len(queries), 0.5, dtype=np.float32)
            return Rankings(found.documents, found.scores, seconds, errors, {"recall": 0.25})


def test_a_query_takes_as_long_as_its_searches_and_calls(harbour: Corpus) -> None:
    how = Agentic(Timed(), Said({"ships": ["market", "ENOUGH"], "fish": ["ENOUGH"]}))
    rankings = search(how, harbour, ["ships", "fish", ""], 3)
    assert rankings.seconds is not None
    calls = [sum(step.get("seconds", 0.0) for step in steps_of(rankings, query)) for query in range(3)]
    np.testing.assert_allclose(rankings.seconds, np.array([1.0, 0.5, 0.5]) + calls, rtol=1e-5)
    assert rankings.diagnostics["base.recall"] == 0.25


def test_a_query_whose_search_fails_finds_nothing_and_says_why(harbour: Corpus) -> None:
    how = Agentic(Timed(), Said({"ships": ["broken", "ENOUGH"], "fish": ["ENOUGH"]}))
    rankings = search(how, harbour, ["ships", "fish", "broken"], 3)
    assert rankings.errors == {0: "gone", 2: "gone"}
    assert [bool(found) for found in ids_of(rankings, harbour)] == [False, True, False]
    assert ended(rankings) == ["search failed", "enough", "search failed"]


def test_an_agent_over_an_agent_tells_of_both(harbour: Corpus) -> None:
    inner = agentic({"ships": ["ENOUGH"], "market": ["fish", "ENOUGH"]})
    outer = Agentic(inner, Said({"ships": ["market", "ENOUGH"]}))
    note = search(outer, harbour, ["ships"], 3).notes[0].values
    assert [[step["query"] for step in base["steps"]] for base in note["base"]] == [["ships"], ["market", "fish"]]


def test_a_plan_needs_what_the_base_finds(harbour: Corpus) -> None:
    store = MemoryStore()
    work = plan_rankings(agentic({}, depth=7), harbour, ["ships"], 3, store)
    assert work.needs == (plan_rankings(BM25(), harbour, ["ships"], 7, store),)


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"prompt: the placeholder \{searches\} is missing"):
        agentic({}, prompt="{query}")
    with pytest.raises(ValidationError, match="'bm25' is not a retriever"):
        Agentic("bm25", Said({}))  # type: ignore[arg-type]  # what a user may write
    with pytest.raises(ValidationError, match="should be an instance of Chat"):
        Agentic(BM25(), None)  # type: ignore[arg-type]  # no model is chosen


def test_the_prompt_is_part_of_the_identity_and_the_number_of_threads_is_not() -> None:
    assert repr(agentic({}, threads=1)) == repr(agentic({}))
    assert repr(agentic({}, prompt="{query} {searches}")) != repr(agentic({}))


def test_the_shipped_settings_are_those_of_the_class() -> None:
    shipped = yaml.safe_load((CONF / "agentic.yaml").read_text())
    for name in ("defaults", "_target_", "llm"):
        del shipped[name]
    assert agentic({}, **shipped) == agentic({})
