"""What replies of a search API become: rankings in the order of the service, or the error of a query."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.base import Corpus
from retrievers.services.http_api import Http
from retrievers.store import NoStore
from tests.retrievers.fake_api import Answer, fake_api, hits, in_turn
from tests.retrievers.http_search import CORPUS, FORM, error_of, list_hits, search


def test_equal_scores_stay_in_the_order_of_the_service() -> None:
    with fake_api(in_turn(hits(("a", 0.5), ("c", 0.5), ("b", 0.1)))) as api:
        assert [name for name, _ in list_hits(search(api))] == ["a", "c", "b"]


def test_whatever_a_service_gives_is_a_ranking_in_its_order() -> None:
    given_now = [hits()]
    pairs = st.lists(st.tuples(st.sampled_from("abcxy"), st.floats(-1000, 1000, width=32)), max_size=6)

    @given(pairs, st.integers(1, 4), st.booleans())
    def check(pairs: list[tuple[str, float]], k: int, lower: bool) -> None:
        given_now[0] = hits(*pairs)
        rankings = searchers[lower].search(["q"], k)
        assert [name for name, _ in list_hits(rankings)] == list(dict.fromkeys(name for name, _ in pairs))[:k]
        assert (np.diff(np.array([score for _, score in list_hits(rankings)])) <= 0).all()

    with fake_api(lambda _: given_now[0]) as api:
        searchers = [Http(api.url, **FORM, lower_is_better=lower).index(CORPUS, NoStore()) for lower in (False, True)]
        check()


def test_replies_take_memory_for_their_hits_not_for_the_depth() -> None:
    with fake_api(in_turn(hits(("a", 0.5), ("y", 0.4)), hits(("b", 0.3)))) as api:
        rankings = Http(api.url, **FORM, concurrency=1).index(CORPUS, NoStore()).search(["q", "r"], 10**12)
    assert rankings.documents.shape == rankings.scores.shape == (2, 2)
    assert [sorted(name for name, _ in list_hits(rankings, query)) for query in range(2)] == [["a", "y"], ["b"]]


def test_scores_that_rise_count_as_much_as_the_one_above_and_are_counted() -> None:
    with fake_api(in_turn(hits(("a", -3.0), ("b", -2.0), ("c", -4.0)))) as api:
        rankings = search(api)
    assert list_hits(rankings) == [("a", -3), ("b", -3), ("c", -4)]
    assert rankings.diagnostics["rising_scores"] == 1


def test_scores_of_which_the_lower_is_better_are_turned_round() -> None:
    with fake_api(in_turn(hits(("a", -18.5), ("b", -12.25), ("c", 0)))) as api:
        rankings = search(api, lower_is_better=True)
    assert list_hits(rankings) == [("a", 18.5), ("b", 12.25), ("c", 0)]
    assert rankings.diagnostics["rising_scores"] == 0


def test_without_scores_the_rank_counts() -> None:
    with fake_api(in_turn(Answer({"results": [{"item_id": "b"}, {"item_id": "a"}]}))) as api:
        assert list_hits(search(api, score=None)) == [("b", 1), ("a", 0.5)]


def test_unknown_items_keep_their_rank_and_are_counted() -> None:
    answers = [hits(("x", 9), ("a", 8), ("y", 7), ("c", 5)), hits(("y", 3), ("b", 2), ("z", 1))]
    with fake_api(in_turn(*answers)) as api:
        rankings = search(api, "one", "two", concurrency=1)
    assert list_hits(rankings) == [("x", 9), ("a", 8), ("y", 7)]
    assert list_hits(rankings, 1) == [("y", 3), ("b", 2), ("z", 1)]
    assert rankings.diagnostics == {"unknown_items": 4, "repeated_items": 0, "rising_scores": 0}


def test_items_that_come_again_are_left_out_and_counted() -> None:
    with fake_api(in_turn(hits(("x", 9), ("a", 8), ("x", 7), ("a", 6), ("c", 5)))) as api:
        rankings = search(api, "one", "two")
    assert list_hits(rankings) == list_hits(rankings, 1) == [("x", 9), ("a", 8), ("c", 5)]
    assert rankings.diagnostics["repeated_items"] == 4


def test_hits_beyond_k_are_cut_off() -> None:
    with fake_api(in_turn(hits(("c", 3), ("b", 2), ("a", 1)))) as api:
        assert list_hits(search(api, k=2)) == [("c", 3), ("b", 2)]


def test_numbers_are_ids_as_text() -> None:
    with fake_api(in_turn(hits((7, 1.0)))) as api:
        rankings = Http(api.url, **FORM).index(Corpus(["7"], [""]), NoStore()).search(["q"], 1)
    assert rankings.documents.tolist() == [[0]]


def test_a_reply_that_is_too_large_is_the_error_of_its_query() -> None:
    packed = gzip.compress(json.dumps({"results": [], "padding": "x" * 100_000}).encode())
    for answer in (
        Answer({"results": [], "padding": "x" * 1000}),
        Answer(packed, headers={"Content-Encoding": "gzip"}),
    ):
        with fake_api(in_turn(answer)) as api:
            assert "longer than 1,000 bytes; raise response_bytes" in error_of(api, response_bytes=1000)
            assert len(api.searches) == 1


UNREADABLE = {
    "no json": (b"<html>", "not JSON"),
    "nothing": (b"", "not JSON"),
    "endless brackets": (b"[" * 100_000, "not JSON"),
    "a key twice": (
        b'{"results": [{"item_id": "a", "item_id": "b", "score": 1}]}',
        "'item_id' occurs twice in an object",
    ),
    "no results": ({"hits": []}, "has no results"),
    "no list": ({"results": {"a": 1}}, "is not a list"),
    "no id": ({"results": [{"score": 1}]}, "has no item_id"),
    "a true id": ({"results": [{"item_id": True, "score": 1}]}, "true is not a valid item id"),
    "an id with a fraction": ({"results": [{"item_id": 1.5, "score": 1}]}, "1.5 is not a valid item id"),
    "a list for an id": ({"results": [{"item_id": [1], "score": 1}]}, "is not a valid item id"),
    "no score": ({"results": [{"item_id": "a"}]}, "has no score"),
    "a null score": ({"results": [{"item_id": "a", "score": None}]}, "null is not a valid score"),
    "a score in words": ({"results": [{"item_id": "a", "score": "high"}]}, '"high" is not a valid score'),
    "a score with an underscore": ({"results": [{"item_id": "a", "score": "1_0"}]}, '"1_0" is not a valid score'),
    "a score in other digits": ({"results": [{"item_id": "a", "score": "\u0661"}]}, "is not a valid score"),
    "a true score": ({"results": [{"item_id": "a", "score": True}]}, "true is not a valid score"),
    "no number": (b'{"results": [{"item_id": "a", "score": NaN}]}', "NaN is not a valid score"),
    "a huge score": ({"results": [{"item_id": "a", "score": 1e300}]}, "32-bit"),
    "a score of many digits": (
        b'{"results": [{"item_id": "a", "score": ' + b"9" * 400 + b"}]}",
        "is not a valid score",
    ),
}


@pytest.mark.parametrize(("content", "said"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_reply_that_cannot_be_read_is_the_error_of_its_query(content: Any, said: str) -> None:
    with fake_api(in_turn(Answer(content))) as api:
        assert said in error_of(api)
        assert len(api.searches) == 1
