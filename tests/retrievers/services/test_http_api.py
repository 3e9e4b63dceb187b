"""Search APIs over HTTP: how many queries at a time, which address, how many items, and what is stored."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from retrievers.base import RetrieverError
from retrievers.composed.fusion import Hybrid
from retrievers.composed.reranked import Reranked
from retrievers.lexical.bm25 import BM25
from retrievers.search import search_cached
from retrievers.services.http_api import Http
from retrievers.store import MemoryStore, NoStore
from tests.retrievers.fake_api import Answer, Asked, fake_api, hits, in_turn
from tests.retrievers.http_search import CORPUS, FEW, FORM, ONE, list_hits, search
from tests.retrievers.scripted import Overlap


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


def test_proxies_of_the_environment_are_used_and_no_proxy_excludes_addresses(
    monkeypatch: pytest.MonkeyPatch, closed: list[int]
) -> None:
    for name in ("all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with fake_api(in_turn(ONE)) as api:
        address = api.url.removeprefix("http://")
        monkeypatch.setenv("http_proxy", f"http://me:pass@{address}")
        searcher = Http("http://search.invalid", **FORM, headers={"X-Client": "tests"}).index(CORPUS, NoStore())
        assert list_hits(searcher.search(["q"], 3)) == [("a", 1)]
        assert {asked.headers["Host"] for asked in api.asked} == {"search.invalid"}
        assert {asked.headers["Proxy-Authorization"] for asked in api.asked} == {"Basic bWU6cGFzcw=="}
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{closed[0]}")
        with pytest.raises(RetrieverError, match="ConnectError"):
            Http(api.url, **FORM).index(CORPUS, NoStore())
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert list_hits(search(api)) == [("a", 1)]


def test_no_other_address_is_queried_than_the_one_that_was_given(closed: list[int]) -> None:
    with (
        fake_api(in_turn(ONE)) as other,
        pytest.raises(RetrieverError, match=f"answered at http://127.0.0.1:{closed[0]} "),
    ):
        port = int(other.url.rpartition(":")[2])
        Http(f"http://127.0.0.1:{closed[0]}", **FORM, ports=[port]).index(CORPUS, NoStore())
    assert other.asked == []


def test_rankings_of_composed_retrievers_list_the_addresses_of_all_services() -> None:
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
        Http(**FORM, ports=ports, headers={"host": "golden.localhost"}).index(CORPUS, NoStore())
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


def test_a_service_is_queried_each_time_also_as_a_part_of_a_hybrid() -> None:
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


def test_the_concurrency_is_not_part_of_the_identity() -> None:
    http = Http("http://localhost", **FORM)
    assert repr(replace(http, concurrency=1)) == repr(http)
    assert repr(replace(http, parameters={"search_type": "bm25"})) != repr(http)
