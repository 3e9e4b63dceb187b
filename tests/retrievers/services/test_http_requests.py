"""What a search API is sent: the documented form, forms of one's own, and secrets."""

from __future__ import annotations

from typing import Any

import pytest

from retrievers.base import RetrieverError
from retrievers.services.http_api import Http
from retrievers.store import NoStore
from tests.retrievers.fake_api import Answer, Asked, fake_api, in_turn
from tests.retrievers.http_search import CORPUS, FORM, ONE, error_of, list_hits, search


def test_a_query_is_one_request_of_the_documented_form() -> None:
    with fake_api(in_turn(ONE)) as api:
        search(api, "where?", k=7, parameters={"search_type": "bm25-lc"})
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


def test_requests_and_replies_may_be_nested() -> None:
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


def test_an_api_may_take_get_parameters_and_return_a_bare_list() -> None:
    with fake_api(in_turn(Answer([["c", 9], ["a", 8]]))) as api:
        form: dict[str, Any] = {"method": "GET", "request": {"q": "{query}", "n": "{top_k}"}}
        assert list_hits(search(api, "a b&c", **form, results="", item_id="0", score="1")) == [("c", 9), ("a", 8)]
        (asked,) = api.searches
    assert asked.method == "GET"
    assert asked.parameters == {"q": ["a b&c"], "n": ["3"]}


def test_placeholders_within_a_text_are_filled_in_and_null_is_not_sent() -> None:
    """What is filled in is not looked through for placeholders again."""
    request = {"q": ["title:({query})^2 OR body:({query})"], "kind": "is:{search_type}", "size": "{top_k}"}
    with fake_api(in_turn(ONE)) as api:
        search(api, "ships {top_k}", request=request)
        search(api, "ships", request=request, parameters={"search_type": "old"})
        null, named = (asked.body for asked in api.searches)
    assert null == {"q": ["title:(ships {top_k})^2 OR body:(ships {top_k})"], "size": 3}
    assert named == {"q": ["title:(ships)^2 OR body:(ships)"], "kind": "is:old", "size": 3}


def test_a_request_in_the_address_stands_beside_what_the_path_asks_for() -> None:
    with fake_api(in_turn(ONE)) as api:
        search(api, "a b&c", method="GET", search_path="/search?index=golden%20one", request={"q": "{query}"})
        (asked,) = api.searches
    assert asked.parameters == {"index": ["golden one"], "q": ["a b&c"]}


def test_a_secret_is_sent_and_hidden_in_errors_and_reprs(monkeypatch: pytest.MonkeyPatch) -> None:
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
        assert "s3cr3t" not in repr(Http(api.url, **FORM, **secret))


def test_a_secret_that_is_not_there_or_no_header_is_named_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = Http("http://localhost:1", **FORM, secret_headers={"X-Api-Key": "SEARCH_KEY"})
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
        Http(**{"base_url": "http://localhost", **FORM, **settings})
    assert "pass@" not in str(raised.value)


def test_fields_that_only_resemble_secrets_are_accepted() -> None:
    request = {"keywords": "{query}", "author": "Melville", "max_tokens": 9, "tokenizer": "standard", "key": "{query}"}
    form = FORM | {"request": request, "search_path": "/search?keyword=1"}
    assert Http("http://localhost", **form).request == request


def test_a_secret_is_sent_only_to_its_fixed_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_AUTHORIZATION", "Bearer s3cr3t-token")
    with fake_api(in_turn(ONE), health=404) as wrong, fake_api(in_turn(ONE)) as other:
        how: dict[str, Any] = {
            "ports": [int(other.url.rpartition(":")[2])],
            "secret_headers": {"Authorization": "SEARCH_AUTHORIZATION"},
        }
        with pytest.raises(RetrieverError, match="no search API answered"):
            search(wrong, **how)
        with pytest.raises(ValueError, match="secret_headers: secrets are sent only to a fixed address; set base_url"):
            Http(**FORM, **how)
        assert other.asked == []
        assert list_hits(search(other, **how)) == [("a", 1)]
