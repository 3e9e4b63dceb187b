from __future__ import annotations

import ast
import gzip
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrievers
from retrievers.base import NOTHING, Corpus, Rankings, RetrieverError
from retrievers.bm25 import BM25
from retrievers.fusion import Hybrid
from retrievers.http_api import Http
from retrievers.reranked import Reranked
from retrievers.search import search_cached
from retrievers.store import MemoryStore, NoStore
from tests.retrievers.fake_api import CUT, Answer, Asked, FakeApi, fake_api, hits, in_turn
from tests.retrievers.scripted import Overlap

CORPUS = Corpus(["a", "b", "c"], ["one", "two", "three"])
FEW: dict[str, Any] = {"expected_items": "corpus", "backoff_s": 0.001}
ONE = hits(("a", 1.0))


def search(api: FakeApi, *queries: str, k: int = 3, **settings: Any) -> Rankings:
    return Http(api.url, **{**FEW, **settings}).index(CORPUS, NoStore()).search(queries or ["q"], k)


def list_hits(rankings: Rankings, query: int = 0) -> list[tuple[str, float]]:
    pairs = zip(rankings.documents[query], rankings.scores[query], strict=True)
    ids = [*CORPUS.ids, *rankings.unknown_ids]
    return [(ids[document], float(score)) for document, score in pairs if document != NOTHING]


def error_of(api: FakeApi, **settings: Any) -> str:
    rankings = search(api, **settings)
    assert list_hits(rankings) == []
    assert rankings.errors is not None
    return rankings.errors[0]


def test_a_query_is_one_request_of_the_documented_form() -> None:
    with fake_api(in_turn(ONE)) as api:
        search(api, "where?", k=7, search_type="bm25-lc")
        (asked,) = api.searches
    assert (asked.method, asked.path) == ("POST", "/search")
    assert asked.body == {"query": "where?", "top_k": 7, "search_type": "bm25-lc", "include_answer": False}
    assert asked.headers["Content-Type"] == "application/json"


def test_what_is_null_is_not_sent_and_half_a_character_is_replaced() -> None:
    with fake_api(in_turn(ONE)) as api:
        search(api, "ships \ud800")
        assert api.searches[0].body == {"query": "ships ?", "top_k": 3, "include_answer": False}


def test_a_header_may_hold_the_port_and_the_host_is_otherwise_the_address() -> None:
    with fake_api(in_turn(ONE)) as api:
        search(api, headers={"Host": "golden.localhost:{port}"})
        search(api)
        port = api.url.rpartition(":")[2]
        golden, own = ({asked.headers["Host"] for asked in part} for part in (api.asked[:3], api.asked[3:]))
    assert golden == {f"golden.localhost:{port}"}
    assert own == {f"127.0.0.1:{port}"}


def test_another_api_is_asked_in_its_own_way() -> None:
    """The request may be nested, and so may the reply be."""
    reply = {"hits": {"hits": [{"_id": "b", "_score": 3}, {"_id": "a", "_score": 2.5}]}}
    request = {"query": {"match": {"text": "{query}"}}, "size": "{top_k}", "sort": ["_score", "{query}"]}
    paths: dict[str, Any] = {
        "results": "hits.hits",
        "item_id": "_id",
        "score": "_score",
        "search_path": "/index/_search",
    }
    with fake_api(in_turn(Answer(reply))) as api:
        assert list_hits(search(api, "x", request=request, **paths)) == [("b", 3), ("a", 2.5)]
        (asked,) = api.searches
    assert asked.path == "/index/_search"
    assert asked.body == {"query": {"match": {"text": "x"}}, "size": 3, "sort": ["_score", "x"]}


def test_an_api_may_be_asked_by_its_address_and_answer_with_a_bare_list() -> None:
    with fake_api(in_turn(Answer([["c", 9], ["a", 8]]))) as api:
        form: dict[str, Any] = {"method": "GET", "request": {"q": "{query}", "n": "{top_k}"}}
        assert list_hits(search(api, "a b&c", **form, results="", item_id="0", score="1")) == [("c", 9), ("a", 8)]
        (asked,) = api.searches
    assert asked.method == "GET"
    assert asked.parameters == {"q": ["a b&c"], "n": ["3"]}


def test_placeholders_are_filled_in_within_a_text_too_and_a_text_about_a_null_is_not_sent() -> None:
    """What is filled in is not looked through for placeholders again."""
    request = {"q": ["title:({query})^2 OR body:({query})"], "kind": "is:{search_type}", "size": "{top_k}"}
    with fake_api(in_turn(ONE)) as api:
        search(api, "ships {top_k}", request=request)
        search(api, "ships", request=request, search_type="old")
        null, named = (asked.body for asked in api.searches)
    assert null == {"q": ["title:(ships {top_k})^2 OR body:(ships {top_k})"], "size": 3}
    assert named == {"q": ["title:(ships)^2 OR body:(ships)"], "kind": "is:old", "size": 3}


def test_a_request_in_the_address_stands_beside_what_the_path_asks_for() -> None:
    with fake_api(in_turn(ONE)) as api:
        search(api, "a b&c", method="GET", search_path="/search?index=golden%20one", request={"q": "{query}"})
        (asked,) = api.searches
    assert asked.parameters == {"index": ["golden one"], "q": ["a b&c"]}


def test_the_order_of_the_service_is_kept_among_equal_scores_too() -> None:
    with fake_api(in_turn(hits(("a", 0.5), ("c", 0.5), ("b", 0.1)))) as api:
        assert [name for name, _ in list_hits(search(api))] == ["a", "c", "b"]


def test_whatever_a_service_gives_is_a_ranking_in_its_order() -> None:
    given_now = [hits()]
    pairs = st.lists(st.tuples(st.sampled_from("abcxy"), st.floats(-1000, 1000, width=32)), max_size=6)

    @given(pairs, st.integers(1, 4), st.booleans())
    def check(pairs: list[tuple[str, float]], k: int, lower: bool) -> None:
        given_now[0] = hits(*pairs)
        rankings = searchers[lower].search(["q"], k)
        assert rankings.documents.shape == rankings.scores.shape == (1, k)
        assert [name for name, _ in list_hits(rankings)] == list(dict.fromkeys(name for name, _ in pairs))[:k]
        assert (np.diff(np.array([score for _, score in list_hits(rankings)])) <= 0).all()

    with fake_api(lambda _: given_now[0]) as api:
        searchers = [Http(api.url, lower_is_better=lower).index(CORPUS, NoStore()) for lower in (False, True)]
        check()


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


def test_more_than_was_asked_for_is_cut_off() -> None:
    with fake_api(in_turn(hits(("c", 3), ("b", 2), ("a", 1)))) as api:
        assert list_hits(search(api, k=2)) == [("c", 3), ("b", 2)]


def test_numbers_are_ids_as_text() -> None:
    with fake_api(in_turn(hits((7, 1.0)))) as api:
        rankings = Http(api.url).index(Corpus(["7"], [""]), NoStore()).search(["q"], 1)
    assert rankings.documents.tolist() == [[0]]


@pytest.mark.parametrize("status", [429, 502, 503, 504, CUT])
def test_a_service_that_is_busy_or_breaks_off_is_asked_again(status: int) -> None:
    with fake_api(in_turn(Answer({}, status), Answer({}, status), ONE)) as api:
        rankings = search(api, retries=2)
        assert len(api.searches) == 3
    assert rankings.errors is None
    assert list_hits(rankings) == [("a", 1)]


def test_a_reply_that_is_cut_short_is_asked_for_again() -> None:
    with fake_api(
        in_turn(Answer(b'{"results": [', headers={"Content-Length": "500", "Connection": "close"}), ONE)
    ) as api:
        assert list_hits(search(api)) == [("a", 1)]


@pytest.mark.parametrize("status", [400, 404, 422, 500])
def test_a_refusal_is_the_error_of_its_query_and_the_rest_goes_on(status: int) -> None:
    def answer(asked: Asked) -> Answer:
        return Answer({"detail": "not this one"}, status) if asked.body["query"] == "bad" else ONE

    with fake_api(answer) as api:
        rankings = search(api, "good", "bad", "good too")
        assert len(api.searches) == 3
    assert rankings.errors is not None
    assert list(rankings.errors) == [1]
    assert f"HTTP {status}" in rankings.errors[1]
    assert "not this one" in rankings.errors[1]
    assert list_hits(rankings, 0) == list_hits(rankings, 2) == [("a", 1)]
    assert rankings.seconds is not None
    assert np.isnan(rankings.seconds).tolist() == [False, True, False]
    assert (rankings.seconds[[0, 2]] > 0).all()


def test_a_service_that_stays_busy_is_given_up_on() -> None:
    with fake_api(in_turn(Answer({}, 503))) as api:
        assert "HTTP 503 {} (attempt 3)" in error_of(api, retries=2)
        assert len(api.searches) == 3


class Frozen(datetime):
    """A clock that stands still."""

    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return cls.moment


LATER = format_datetime(Frozen.moment + timedelta(seconds=7), usegmt=True)


@pytest.mark.parametrize("after", ["7", LATER, LATER.removesuffix(" GMT")])
def test_a_service_is_left_alone_for_as_long_as_it_says(after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("retrievers.connection.datetime", Frozen)
    clock = SimpleNamespace(sleep=waits.append, perf_counter=time.perf_counter)
    monkeypatch.setattr("retrievers.connection.time", clock)
    with fake_api(in_turn(Answer({}, 429, {"Retry-After": after}), ONE)) as api:
        assert list_hits(search(api)) == [("a", 1)]
    assert max(waits) == 7


@pytest.mark.parametrize(
    "after", ["soon", "-5", "", "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 99999999999 08:49:37 GMT"]
)
def test_a_rest_that_is_over_or_no_time_is_not_waited_for(after: str) -> None:
    with fake_api(in_turn(Answer({}, 429, {"Retry-After": after}), ONE)) as api:
        assert list_hits(search(api)) == [("a", 1)]


def test_a_service_that_wants_a_long_rest_is_not_asked_again() -> None:
    with fake_api(in_turn(Answer({}, 429, {"Retry-After": "3600"}))) as api:
        assert "Retry-After asks for 3600 s, longer than 60 s" in error_of(api)
        assert len(api.searches) == 1


def test_an_answer_that_takes_too_long_is_an_error() -> None:
    given_up = threading.Event()

    def answer(asked: Asked) -> Answer:
        given_up.wait()
        return Answer({}, CUT)

    with fake_api(answer) as api:
        assert "ReadTimeout: timed out (attempt 2)" in error_of(api, timeout_s=0.2, retries=1, health_path=None)
        given_up.set()


@contextmanager
def dripping(quick: bytes, slow: bytes) -> Iterator[str]:
    """Yield the address of a server that sends the slow part of its reply byte by byte."""
    over = threading.Event()

    def reply(listening: socket.socket) -> None:
        with suppress(OSError):
            while not over.is_set():
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(quick)
                    for byte in slow:
                        if over.wait(0.02):
                            break
                        connection.sendall(bytes([byte]))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=reply, args=(listening,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


BODY = b'{"results": [{"item_id": "a", "score": 1}]}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\nX-Padding: " % len(BODY)
PADDING = b"x" * 60


@pytest.mark.parametrize(
    ("quick", "slow"),
    [(HEAD + PADDING + b"\r\n\r\n", BODY), (HEAD, PADDING + b"\r\n\r\n" + BODY)],
    ids=["body", "head"],
)
def test_a_reply_that_drips_in_ends_with_the_total_time(quick: bytes, slow: bytes) -> None:
    """Each byte comes within the time-out, and all of them in more than three times of it."""
    with dripping(quick, slow) as url:
        http = Http(url, timeout_s=0.25, retries=0, health_path=None, expected_items=None)
        rankings = http.index(CORPUS, NoStore()).search(["q"], 3)
    assert rankings.errors is not None
    assert "ReadTimeout" in rankings.errors[0]


def test_a_reply_that_drips_in_on_a_kept_connection_ends_with_the_total_time() -> None:
    over = threading.Event()

    def answer(asked: Asked) -> Answer:
        if asked.body["query"] == "slow":
            over.wait()
            return Answer({}, CUT)
        return ONE

    with fake_api(answer) as api:
        searcher = Http(api.url, timeout_s=0.25, retries=0).index(CORPUS, NoStore())
        assert searcher.search(["quick"], 3).errors is None
        errors = searcher.search(["slow"], 3).errors
        over.set()
    assert errors is not None
    assert "ReadTimeout" in errors[0]


def test_proxies_of_the_environment_are_used_and_no_proxy_excludes_addresses(
    monkeypatch: pytest.MonkeyPatch, closed: list[int]
) -> None:
    for name in ("all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with fake_api(in_turn(ONE)) as api:
        address = api.url.removeprefix("http://")
        monkeypatch.setenv("http_proxy", f"http://me:pass@{address}")
        searcher = Http("http://search.invalid", headers={"X-Client": "tests"}).index(CORPUS, NoStore())
        assert list_hits(searcher.search(["q"], 3)) == [("a", 1)]
        assert {asked.headers["Host"] for asked in api.asked} == {"search.invalid"}
        assert {asked.headers["Proxy-Authorization"] for asked in api.asked} == {"Basic bWU6cGFzcw=="}
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{closed[0]}")
        with pytest.raises(RetrieverError, match="ConnectError"):
            Http(api.url).index(CORPUS, NoStore())
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert list_hits(search(api)) == [("a", 1)]


@pytest.mark.parametrize("file", sorted(Path(retrievers.__path__[0]).rglob("*.py")), ids=lambda file: file.stem)
def test_only_public_attributes_of_libraries_are_used(file: Path) -> None:
    """A name with an underscore belongs to its own object or module."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    private = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)]
    others = [ast.unparse(node) for node in private if ast.unparse(node.value) not in ("self", "cls")]
    assert [name for name in others if name.rpartition(".")[2] not in own] == []


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
    "no results": ({"hits": []}, "has no results"),
    "no list": ({"results": {"a": 1}}, "is not a list"),
    "no id": ({"results": [{"score": 1}]}, "has no item_id"),
    "a list for an id": ({"results": [{"item_id": [1], "score": 1}]}, "is not a valid item id"),
    "no score": ({"results": [{"item_id": "a"}]}, "has no score"),
    "a null score": ({"results": [{"item_id": "a", "score": None}]}, "null is not a valid score"),
    "a score in words": ({"results": [{"item_id": "a", "score": "high"}]}, '"high" is not a valid score'),
    "a true score": ({"results": [{"item_id": "a", "score": True}]}, "true is not a valid score"),
    "no number": (b'{"results": [{"item_id": "a", "score": NaN}]}', "32-bit"),
    "a huge score": ({"results": [{"item_id": "a", "score": 1e300}]}, "32-bit"),
    "a score of many digits": (b'{"results": [{"item_id": "a", "score": ' + b"9" * 400 + b"}]}", "32-bit"),
}


@pytest.mark.parametrize(("content", "said"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_reply_that_cannot_be_read_is_the_error_of_its_query(content: Any, said: str) -> None:
    with fake_api(in_turn(Answer(content))) as api:
        assert said in error_of(api)
        assert len(api.searches) == 1


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_queries_are_under_way_than_the_limit_says(concurrency: int) -> None:
    under_way, most, lock, full = 0, 0, threading.Lock(), threading.Event()

    def answer(asked: Asked) -> Answer:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        if most == concurrency:
            full.set()
        full.wait(60)
        time.sleep(0.05)  # for one too many to come
        with lock:
            under_way -= 1
        return hits((asked.body["query"], 1))

    with fake_api(answer) as api:
        rankings = search(api, *"abcabcabc", concurrency=concurrency)
    assert most == concurrency
    assert [CORPUS.ids[row[0]] for row in rankings.documents] == list("abcabcabc")


def test_without_an_address_the_first_port_that_answers_is_queried_and_recorded(
    closed: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    with fake_api(in_turn(ONE), health=404) as wrong, fake_api(in_turn(ONE)) as api:
        ports = [closed[0], *(int(each.url.rpartition(":")[2]) for each in (wrong, api))]
        rankings = Http(**{**FEW, "ports": ports}).index(CORPUS, NoStore()).search(["q"], 3)
        assert list_hits(rankings) == [("a", 1)]
        assert (len(wrong.searches), len(api.searches)) == (0, 1)
    assert rankings.addresses == {"": f"http://localhost:{ports[2]}"}
    assert f"using the search API at http://localhost:{ports[2]}" in caplog.text


def test_no_other_address_is_queried_than_the_one_that_was_given(closed: list[int]) -> None:
    with (
        fake_api(in_turn(ONE)) as other,
        pytest.raises(RetrieverError, match=f"answered at http://127.0.0.1:{closed[0]} "),
    ):
        port = int(other.url.rpartition(":")[2])
        Http(f"http://127.0.0.1:{closed[0]}", ports=[port]).index(CORPUS, NoStore())
    assert other.asked == []


def test_rankings_made_of_others_have_the_addresses_of_all_services() -> None:
    with fake_api(in_turn(ONE)) as one, fake_api(in_turn(ONE)) as two:
        parts = {name: Http(api.url, **FEW) for name, api in (("one", one), ("two", two))}
        for hybrid in (Hybrid(parts), Reranked(Hybrid(parts), Overlap())):
            rankings = search_cached(hybrid, CORPUS, ["q"], 3, MemoryStore())
            assert rankings.addresses == {"one": one.url, "two": two.url}


def test_an_api_that_is_down_is_one_error_with_what_was_tried(closed: list[int]) -> None:
    first, second = closed
    with fake_api(in_turn(ONE), health=500) as wrong, pytest.raises(RetrieverError) as raised:
        port = int(wrong.url.rpartition(":")[2])
        ports = [first, second, first, port]
        Http(ports=ports, headers={"host": "golden.localhost"}).index(CORPUS, NoStore())
    said = str(raised.value)
    assert f"http://localhost:{first} (ConnectError" in said
    assert f"http://localhost:{second} (ConnectError" in said
    assert f"http://localhost:{port} (HTTP 500" in said
    assert said.count(f":{first} ") == 1
    assert said.endswith(
        "set the retriever's base_url; if the server does not know the name in headers.Host, remove that header"
    )
    assert "\n" not in said


def test_without_a_health_path_the_address_is_taken_as_it_is() -> None:
    with fake_api(in_turn(ONE), health=404) as api:
        assert list_hits(search(api, health_path=None, expected_items=None)) == [("a", 1)]
        assert [asked.path for asked in api.asked] == ["/search"]


@pytest.fixture
def closed() -> Iterator[list[int]]:
    """Yield two ports that are taken, so that nothing else can begin to listen, and where nothing listens."""
    with socket.socket() as first, socket.socket() as second:
        for taken in (first, second):
            taken.bind(("127.0.0.1", 0))
        yield [taken.getsockname()[1] for taken in (first, second)]


@pytest.mark.parametrize(("expected", "number"), [("corpus", 3), (55, 55)])
def test_another_number_of_items_stops_with_both_counts_and_the_way_to_skip(expected: Any, number: int) -> None:
    with fake_api(in_turn(ONE), items=247) as api, pytest.raises(RetrieverError) as raised:
        search(api, expected_items=expected)
    assert f"expected {number} items (" in str(raised.value) and ", found 247." in str(raised.value)
    assert str(raised.value).endswith("set the retriever's expected_items to null to skip this check")


def test_the_right_number_of_items_and_any_when_it_is_off_is_accepted() -> None:
    with fake_api(in_turn(ONE), items=55) as api:
        search(api, expected_items=55)
        assert api.asked[1].parameters == {"limit": ["1"]}
        search(api, expected_items=None)
        assert [asked.path for asked in api.asked[3:]] == ["/health", "/search"]


def test_items_that_cannot_be_counted_stop_it_too() -> None:
    with (
        fake_api(in_turn(Answer({}, 404))) as api,
        pytest.raises(RetrieverError, match="the items could not be counted"),
    ):
        search(api, items_path="/search")
    with fake_api(in_turn(ONE)) as api, pytest.raises(RetrieverError, match="the reply has no count"):
        search(api, total="count")


def test_a_secret_is_sent_and_is_in_nothing_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_AUTHORIZATION", "Bearer s3cr3t-token")

    def answer(asked: Asked) -> Answer:
        return Answer({"detail": f"not with {asked.headers['Authorization'].split()[1]}"}, 401)

    with fake_api(answer) as api:
        secret: dict[str, Any] = {
            "secret_headers": {"Authorization": "SEARCH_AUTHORIZATION"},
            "headers": {"X-Client": "tests"},
        }
        assert "not with ***" in error_of(api, **secret)
        assert {asked.headers["Authorization"] for asked in api.asked} == {"Bearer s3cr3t-token"}
        assert {asked.headers["X-Client"] for asked in api.asked} == {"tests"}
        assert "s3cr3t" not in repr(Http(api.url, **secret))


def test_a_secret_that_is_not_there_or_no_header_is_named_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = Http("http://localhost:1", secret_headers={"X-Api-Key": "SEARCH_KEY"})
    for value, said in (
        (None, "SEARCH_KEY is not set"),
        (" ", "is not set"),
        ("k\u00e9y", "that are not allowed in a header"),
        ("a\nb", "that are not allowed in a header"),
    ):
        if value is not None:
            monkeypatch.setenv("SEARCH_KEY", value)
        with pytest.raises(RetrieverError, match=said) as raised:
            retriever.index(CORPUS, NoStore())
        assert value is None or not value.strip() or value not in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"base_url": "http://me:pass@host"}, "secret_headers"),
        ({"base_url": "localhost:8001"}, "should be an address"),
        ({"base_url": "http://"}, "should be an address"),
        ({"base_url": "http://host?x=1"}, "should be an address"),
        ({"base_url": "http://host:x"}, "invalid address"),
        ({"base_url": None}, "base_url: is required"),
        ({"base_url": None, "ports": [80], "health_path": None}, "base_url: is required"),
        ({"search_path": "search"}, "search_path=search: should begin with a /"),
        ({"headers": {"X-Name": "pass@ü"}}, "headers.X-Name: contains characters that are not allowed in a header"),
        (
            {"headers": {"X-Name": "one\nX-Other: two"}},
            "headers.X-Name: contains characters that are not allowed in a header",
        ),
        ({"headers": {"X Name": "one"}}, "headers.X Name: contains characters that are not allowed in a header"),
        ({"headers": {"Authorization": "Bearer x"}}, "headers.Authorization: the name suggests a secret"),
        ({"headers": {"X-Api-Key": "x"}}, "headers.X-Api-Key: the name suggests a secret"),
        ({"search_path": "/search?api_key=pass@"}, "search_path.api_key: the name suggests a secret.* secret_headers"),
        ({"items_path": "/items?limit=1&access%5Ftoken=pass@"}, "items_path.access_token: the name suggests a secret"),
        ({"health_path": "/health?Auth=pass@"}, "health_path.Auth: the name suggests a secret"),
        ({"request": {"q": "{querry}"}}, "request: without {query}, all queries would send the same request"),
        (
            {"request": {"q": {"text": "{query}"}}, "method": "GET"},
            "request.q: method=GET cannot send nested keys.* set method=POST",
        ),
        ({"request": {"q": "{query}", "apiKey": "pass@"}}, "request.apiKey: the name suggests a secret"),
        ({"request": {"user": [{"password": "pass@"}]}}, "request.user.password: the name suggests a secret"),
        ({"request": {"token": {"value": "pass@"}}}, "request.token.value: the name suggests a secret"),
    ],
)
def test_settings_that_cannot_be_or_would_be_recorded_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said) as raised:
        Http(**{"base_url": "http://localhost", **settings})
    assert "pass@" not in str(raised.value)


def test_what_is_no_secret_is_not_taken_for_one() -> None:
    request = {"keywords": "{query}", "author": "Melville", "max_tokens": 9, "tokenizer": "standard", "key": "{query}"}
    assert Http("http://localhost", request=request, search_path="/search?keyword=1").request == request


def test_a_secret_is_shown_to_nobody_but_the_address_it_is_meant_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_AUTHORIZATION", "Bearer s3cr3t-token")
    with fake_api(in_turn(ONE), health=404) as wrong, fake_api(in_turn(ONE)) as other:
        how: dict[str, Any] = {
            "ports": [int(other.url.rpartition(":")[2])],
            "secret_headers": {"Authorization": "SEARCH_AUTHORIZATION"},
        }
        with pytest.raises(RetrieverError, match="no search API answered"):
            search(wrong, **how)
        with pytest.raises(ValueError, match="secret_headers: secrets are sent only to a fixed address; set base_url"):
            Http(**how)
        assert other.asked == []
        assert list_hits(search(other, **how)) == [("a", 1)]


def test_what_a_service_finds_is_asked_for_each_time_also_as_a_part_of_a_hybrid() -> None:
    """A part is queried once for each store, that is, for each command."""
    with fake_api(in_turn(ONE)) as api:
        store, http = MemoryStore(), Http(api.url, **FEW)
        for _ in range(2):
            assert search_cached(http, CORPUS, ["one"], 3, store).documents[0, 0] == 0
        assert len(api.searches) == 2
        for _ in range(2):
            hybrid = Hybrid({"there": http, "here": BM25()})
            assert search_cached(hybrid, CORPUS, ["one"], 3, MemoryStore()).documents[0, 0] == 0
        assert len(api.searches) == 4


def test_all_fusions_of_a_service_query_it_once() -> None:
    with fake_api(in_turn(ONE)) as api:
        store, http = MemoryStore(), Http(api.url, **FEW)
        for alpha in (0.1, 0.5, 0.9):
            hybrid = Hybrid({"there": http, "here": BM25()}, alpha=alpha)
            assert search_cached(hybrid, CORPUS, ["one"], 3, store).documents[0, 0] == 0
        assert len(api.searches) == 1
        search_cached(hybrid, CORPUS, ["one", "two"], 3, store)
        assert len(api.searches) == 3


def test_a_part_that_failed_or_whose_index_changed_is_queried_again() -> None:
    with fake_api(in_turn(Answer({}, 400), ONE)) as api:
        store, http = MemoryStore(), Http(api.url, facts={"items": ("/items", "total")}, **FEW)
        hybrid = Hybrid({"there": http, "here": BM25()})
        assert search_cached(hybrid, CORPUS, ["one"], 3, store).errors
        for items, searches in ((3, 2), (3, 2), (4, 3)):
            api.items = items
            assert not search_cached(hybrid, CORPUS, ["one"], 3, store).errors
            assert len(api.searches) == searches


def test_how_many_are_asked_at_a_time_is_no_part_of_what_it_is() -> None:
    http = Http("http://localhost")
    assert repr(replace(http, concurrency=1)) == repr(http)
    assert repr(replace(http, search_type="bm25")) != repr(http)
