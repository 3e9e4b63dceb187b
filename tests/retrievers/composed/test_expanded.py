"""Query expansion: what a reply is taken for, how what is found is fused, and what stands when the model fails."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from retrievers.base import NOTHING, Corpus
from retrievers.composed.expanded import Expanded, parse_passages, parse_variants
from retrievers.composed.multistage import fuse_by_rank
from retrievers.lexical.bm25 import BM25
from retrievers.llm.chat import Reply
from retrievers.llm.prompting import fill_prompt
from retrievers.search import plan_rankings, search_cached
from retrievers.store import MemoryStore
from tests.retrievers.scripted import FAILS, Said
from tests.retrievers.test_contract import ids_of, search
from tests.strategies.rankings import unique_lists

CONF = Path(__file__).parents[3] / "conf" / "retriever"


def expanded(replies: Mapping[str, str], **settings: Any) -> Expanded:
    return Expanded(BM25(), Said({query: [reply] for query, reply in replies.items()}), **settings)


@pytest.mark.parametrize(
    ("method", "reply", "queries"),
    [
        ("multi_query", "1. ferries\n2. lighthouse pier", ["ferries", "lighthouse pier"]),
        (
            "hyde",
            "Ferries go to the islands.\nEvery hour.\n\nFish is sold.",
            ["Ferries go to the islands.\nEvery hour.", "Fish is sold."],
        ),
    ],
)
def test_what_a_query_is_expanded_to_is_fused_with_it_by_ranks(
    harbour: Corpus, method: str, reply: str, queries: list[str]
) -> None:
    rankings = search(expanded({"ships": reply, "café": ""}, method=method, rrf_k=5), harbour, ["ships", "café"], 6)
    expected: dict[str, float] = {}
    for part in ids_of(search(BM25(), harbour, ["ships", *queries], 6), harbour):
        for place, name in enumerate(part, start=1):
            expected[name] = expected.get(name, 0.0) + 1 / (5 + place)
    found = ids_of(rankings, harbour)
    assert found[0] == sorted(expected, key=lambda name: (expected[name], name), reverse=True)
    np.testing.assert_allclose(rankings.scores[0, : len(found[0])], [expected[name] for name in found[0]], rtol=1e-6)
    assert found[1] == ids_of(search(BM25(), harbour, ["café"], 6), harbour)[0]
    notes = [rankings.notes[query].values for query in (0, 1)]
    assert [note["queries"] for note in notes] == [queries, []]
    assert notes[0]["llm"]["reply"] == reply
    assert rankings.diagnostics["llm_calls"] == 2
    assert rankings.settled


IDS = Corpus(["a", "b", "c", "d", "e"], [""] * 5)


@given(found=st.lists(unique_lists(range(5), 4), min_size=1, max_size=4), rrf_k=st.floats(0, 100))
def test_reciprocal_ranks_are_those_of_a_dictionary(found: list[list[int]], rrf_k: float) -> None:
    tables = [np.array([row + [NOTHING] * (4 - len(row))], dtype=np.int32) for row in found]
    expected: dict[int, float] = {}
    for row in found:
        for place, document in enumerate(row, start=1):
            expected[document] = expected.get(document, 0.0) + 1 / (rrf_k + place)
    rounded = {document: float(np.float32(score)) for document, score in expected.items()}
    best = sorted(rounded, key=lambda document: (rounded[document], IDS.ids[document]), reverse=True)[:3]
    rankings = fuse_by_rank(tables, rrf_k, IDS.tie_order, 3)
    assert rankings.documents[0].tolist() == best
    assert rankings.scores[0, : len(best)].tolist() == [rounded[document] for document in best]


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("red boat\nblue boat", ["red boat", "blue boat"]),
        ("1. red boat\n\n2) blue boat\n(3) green boat", ["red boat", "blue boat", "green boat"]),
        ("Here are three queries:\n- red boat\n* blue boat", ["red boat", "blue boat"]),
        ('"red boat"\nQuery 2: `blue boat`', ["red boat", "blue boat"]),
        ("boat\nBoat \nred boat\nRED boat", ["red boat"]),
        ("one\ntwo\nthree\nfour", ["one", "two", "three"]),
        ("3 boats in 1912\n1912: the year", ["3 boats in 1912", "1912: the year"]),
        (" \n**\n", []),
    ],
)
def test_variants_are_the_lines_of_a_reply_without_what_adorns_them(reply: str, found: list[str]) -> None:
    assert parse_variants(reply, "boat", 3) == found


@pytest.mark.parametrize(
    ("reply", "n", "found"),
    [
        ("A boat.\nIt is red.\n \nA house.", 2, ["A boat.\nIt is red.", "A house."]),
        ("A boat.\n\nIt is red.", 1, ["A boat.\n\nIt is red."]),
        ("Passage 1: A boat.\n\n---\n\nPassage 2:\nA house.", 2, ["A boat.", "A house."]),
        ("Here they are:\n\n1. A boat.\n\n2. A house.\n\n3. A tree.", 2, ["A boat.", "A house."]),
        ("", 1, []),
    ],
)
def test_passages_are_the_paragraphs_of_a_reply(reply: str, n: int, found: list[str]) -> None:
    assert parse_passages(reply, "boat", n) == found


@pytest.mark.parametrize("method", ["multi_query", "hyde"])
def test_when_the_model_fails_the_base_ranking_stands(harbour: Corpus, method: str) -> None:
    rankings = search(expanded({"ships": FAILS, "fish": "market"}, method=method), harbour, ["ships", "fish"], 4)
    assert ids_of(rankings, harbour)[0] == ids_of(search(BM25(), harbour, ["ships"], 4), harbour)[0]
    note = rankings.notes[0].values
    assert (note["queries"], note["llm"]["error"]) == ([], "the model is out of reach")
    assert rankings.errors is None
    assert not rankings.settled
    assert rankings.diagnostics["llm_failures"] == 1
    assert rankings.diagnostics["llm_calls"] == 2 + 1


def test_only_failed_requests_are_sent_again(harbour: Corpus) -> None:
    store = MemoryStore()
    for reply, calls in ((FAILS, 2), ("ferries", 1)):
        llm = Said({"ships": [reply]})
        for _ in range(2):
            search_cached(Expanded(BM25(), llm), harbour, ["ships"], 3, store)
        assert len(llm.log) == calls


def test_a_blank_query_sends_no_request(harbour: Corpus) -> None:
    rankings = search(expanded({}), harbour, ["", " \n"], 3)
    assert (rankings.documents == NOTHING).all()
    assert rankings.notes == {}


def test_the_query_is_put_into_the_prompt_as_it_is(harbour: Corpus) -> None:
    llm = Said({"{n} ships \\1 ?": ["fish"]})
    search(Expanded(BM25(), llm, n=2), harbour, ["{n} ships \\1 \ud800"], 3)
    assert llm.log[0].startswith("Write 2 queries")
    assert "Query: {n} ships \\1 ?\n" in llm.log[0]
    assert fill_prompt("{a} {b} {c}", a="{b}", b=2) == "{b} 2 {c}"


@dataclass(frozen=True)
class Together:
    """Replies once two ask at the same time, and notes how many did."""

    barrier: threading.Barrier
    asking: list[int]
    most: list[int]

    def ask(self, question: str, system: str = "", purpose: str = "") -> Reply:
        self.asking.append(1)
        self.most.append(len(self.asking))
        self.barrier.wait(timeout=30)
        self.asking.pop()
        return Reply("ferries")


def test_as_many_requests_run_at_once_as_there_are_threads(harbour: Corpus) -> None:
    llm = Together(threading.Barrier(2), [], [])
    rankings = search(Expanded(BM25(), llm, threads=2), harbour, ["ships", "fish", "market", "café"], 3)
    assert len(llm.most) == 4
    assert max(llm.most) == 2
    assert rankings.seconds is not None


def test_a_plan_needs_what_the_base_finds(harbour: Corpus) -> None:
    store = MemoryStore()
    work = plan_rankings(expanded({}, depth=7), harbour, ["ships"], 3, store)
    assert work.needs == (plan_rankings(BM25(), harbour, ["ships"], 7, store),)


@pytest.mark.parametrize("name", ["multi_query_prompt", "hyde_prompt"])
def test_a_prompt_that_does_not_name_the_query_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match=rf"{name}: the placeholder \{{query\}} is missing"):
        expanded({}, **{name: "Write {n} queries"})


def test_the_shipped_settings_are_those_of_the_class() -> None:
    shipped = yaml.safe_load((CONF / "expanded.yaml").read_text())
    for name in ("defaults", "_target_", "llm"):
        del shipped[name]
    assert expanded({}, **shipped) == expanded({})
